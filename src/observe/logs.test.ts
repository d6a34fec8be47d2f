import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { EventOf } from '../core/events.ts'
import { openRunLog, type RunLogOptions } from './logs.ts'

const folders: string[] = []
after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-logs-'))
  folders.push(folder)
  return folder
}

async function linesOf(folder: string, name: string): Promise<Record<string, unknown>[]> {
  const text = await readFile(join(folder, name), 'utf8')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

const failed: EventOf<'page'> = {
  type: 'page',
  outcome: 'failed',
  url: 'https://x.test/a?token=abc',
  host: 'x.test',
  route: 'book',
  attempt: 3,
  status: 404,
  error: { code: 'E_NOT_FOUND', class: 'not-found', message: 'via http://u:p@proxy' },
  snapshot: 'snapshots/1.html',
}

async function logged(options: Partial<RunLogOptions>, record: (log: Awaited<ReturnType<typeof openRunLog>>) => void) {
  const folder = await newFolder()
  {
    await using log = await openRunLog({ folder, runId: 'r1', now: () => 0, ...options })
    record(log)
  }
  return { log: await linesOf(folder, 'log.jsonl'), errors: await linesOf(folder, 'errors.jsonl') }
}

test('writes run events, failures and throttles, but no page that succeeded', async () => {
  const { log } = await logged({}, ({ record }) => {
    record({ type: 'run.started', runId: 'r1', scraper: 'books', resumed: false })
    record({ ...failed, outcome: 'ok', error: undefined })
    record({ ...failed, outcome: 'retried' })
    record(failed)
    record({ type: 'throttled', host: 'x.test', untilMs: 5, reason: '429' })
    const blocked = { type: 'blocked', url: 'https://x.test/', host: 'x.test', signal: 'title: just a moment' } as const
    record({ ...blocked, class: 'challenge', vendor: 'cloudflare' })
    record({ ...blocked, class: 'rate_limit', vendor: 'unknown' })
    record({ type: 'circuit', host: 'x.test', state: 'open', reason: '10 of 10 requests failed' })
    record({ type: 'circuit', host: 'x.test', state: 'closed', reason: 'the probe was answered' })
    record({ type: 'proxy', proxy: 'p:1', state: 'down', reason: 'refused', host: 'x.test' })
    record({ type: 'proxy', proxy: 'p:1', state: 'up', reason: 'answers' })
    record({ type: 'identity.retired', id: 'i1', reason: 'blocked' })
    record({ type: 'run.finished', runId: 'r1', scraper: 'books', state: 'finished' })
  })
  assert.deepEqual(
    log.map(({ level, message }) => [level, message]),
    [
      ['info', 'run started'],
      ['warn', 'failed: via http://***@proxy'],
      ['warn', 'x.test throttled: 429'],
      ['warn', 'x.test: challenged by cloudflare (title: just a moment)'],
      ['warn', 'circuit of x.test open: 10 of 10 requests failed'],
      ['info', 'circuit of x.test closed: the probe was answered'],
      ['warn', 'proxy p:1 down for x.test: refused'],
      ['info', 'proxy p:1 up: answers'],
      ['info', 'run finished'],
    ],
  )
  assert.deepEqual(
    [log[0]?.['run'], log[0]?.['time'], log[0]?.['event']],
    ['r1', '1970-01-01T00:00:00.000Z', 'run.started'],
  )
})

test('writes every page at level debug', async () => {
  const { log } = await logged({ level: 'debug' }, ({ record }) =>
    record({ ...failed, outcome: 'ok', error: undefined }),
  )
  assert.equal(log[0]?.['message'], 'page ok')
})

test('writes one line to errors.jsonl for each failed page and each invalid item', async () => {
  const { errors } = await logged({ level: 'silent' }, ({ record }) => {
    record({ ...failed, outcome: 'retried' })
    record(failed)
    record({
      type: 'item.invalid',
      url: 'https://x.test/b',
      route: 'book',
      problems: ['price: missing'],
      item: '{"a":1}',
    })
  })
  const time = '1970-01-01T00:00:00.000Z'
  assert.deepEqual(errors, [
    {
      time,
      url: 'https://x.test/a?token=***',
      route: 'book',
      code: 'E_NOT_FOUND',
      class: 'not-found',
      message: 'via http://***@proxy',
      attempt: 3,
      status: 404,
      snapshot: 'snapshots/1.html',
    },
    {
      time,
      url: 'https://x.test/b',
      route: 'book',
      code: 'E_ITEM_INVALID',
      class: 'item',
      message: 'price: missing',
      problems: ['price: missing'],
      item: '{"a":1}',
    },
  ])
})

test('writes no secret, wherever a scraper puts it', async () => {
  const secret = 'hunter2hunter2'
  const { log } = await logged({ level: 'debug' }, ({ record }) => {
    record({
      type: 'log',
      level: 'info',
      message: `login with password=${secret} at https://u:${secret}@x.test`,
      url: `https://x.test/?apikey=${secret}`,
      extra: {
        headers: { authorization: secret, Cookie: secret },
        deep: { proxyPassword: secret, note: `Bearer ${secret}` },
      },
    })
    record({
      ...failed,
      url: `https://x.test/?secret=${secret}`,
      error: { ...failed.error!, message: `token: ${secret}` },
    })
    record({
      type: 'run.finished',
      runId: 'r1',
      scraper: 'x',
      state: 'failed',
      reason: `cannot reach redis://:${secret}@h`,
    })
  })
  assert.equal(log.length, 3)
  assert.ok(!JSON.stringify(log).includes(secret), JSON.stringify(log))
})

test('appends to the log of a resumed run, on a new line', async () => {
  const folder = await newFolder()
  await writeFile(join(folder, 'log.jsonl'), '{"message":"first"}\n{"message":"cut by a cra')
  {
    await using log = await openRunLog({ folder })
    log.record({ type: 'run.started', runId: 'r1', scraper: 'books', resumed: true })
  }
  const lines = (await readFile(join(folder, 'log.jsonl'), 'utf8')).trimEnd().split('\n')
  assert.equal(lines.length, 3)
  assert.equal(JSON.parse(lines[2]!).message, 'run resumed')
})

test('has everything in the file after a flush, and may be closed twice', async () => {
  const folder = await newFolder()
  await using log = await openRunLog({ folder })
  for (let i = 0; i < 1000; i++) log.record(failed)
  await log.flush()
  assert.equal((await linesOf(folder, 'errors.jsonl')).length, 1000)
  await log.close()
  await log.close()
  log.record(failed)
})

test('gives each line the time of its event, not of its writing', async () => {
  let nowMs = 1000
  const { log, errors } = await logged({ now: () => nowMs }, ({ record }) => {
    record({ type: 'run.started', runId: 'r1', scraper: 'books', resumed: false })
    nowMs = 2000
    record(failed)
    nowMs = 3000
  })
  const times = [...log, ...errors].map((line) => Date.parse(line['time'] as string))
  assert.deepEqual(times, [1000, 2000, 2000])
})

test('keeps all lines when the process crashes', async () => {
  const folder = await newFolder()
  const script = `
    import { openRunLog } from ${JSON.stringify(new URL('./logs.ts', import.meta.url).href)}
    const log = await openRunLog({ folder: ${JSON.stringify(folder)} })
    log.record({ type: 'run.started', runId: 'r1', scraper: 'books', resumed: false })
    throw new Error('crash')`
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { stdio: 'pipe' })
  assert.equal(status, 1)
  assert.equal((await linesOf(folder, 'log.jsonl'))[0]?.['message'], 'run started')
})

test('leaves the exit code of the process alone if the folder is gone', async () => {
  const folder = await newFolder()
  const script = `
    import { rmSync } from 'node:fs'
    import { openRunLog } from ${JSON.stringify(new URL('./logs.ts', import.meta.url).href)}
    const log = await openRunLog({ folder: ${JSON.stringify(folder)} })
    log.record({ type: 'run.started', runId: 'r1', scraper: 'books', resumed: false })
    rmSync(${JSON.stringify(folder)}, { recursive: true })
    process.exit(4)`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  assert.deepEqual({ status, stderr }, { status: 4, stderr: '' })
})

test('reports E_OUTPUT if the folder is not writable', async () => {
  await assert.rejects(openRunLog({ folder: '/proc/nowhere' }), { code: 'E_OUTPUT' })
})
