/** ps, watch, logs, pause, resume, cancel, retry and diff: real processes on real local runs. */
import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { placesIn, statsOf, until } from '../../test/fleet.ts'
import { type BooksSite, startBooksSite } from '../../test/site/books.ts'
import { type SluiceProcess, sluice, startSluice, temporaryFolder } from '../../test/sluice.ts'
import { listRuns } from '../runs/run-folder.ts'

const folder = temporaryFolder()
const out = join(folder.path, 'runs')
const env = { SLUICE_OUT: out }
const numbersOf = (id: string) => statsOf(id, placesIn(folder.path))
let site: BooksSite
let slow: BooksSite

before(async () => {
  site = await startBooksSite({ products: 70, misbehave: true })
  slow = await startBooksSite({ products: 2000, delayMs: 25 })
})

after(async () => {
  await site[Symbol.asyncDispose]()
  await slow[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

async function json(...args: string[]) {
  const { code, stdout, stderr } = await sluice([...args, '--json'], { env })
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

const runBooks = (on: BooksSite, ...more: string[]) => [
  'run',
  'books',
  '--site',
  on.url,
  '--arg',
  'details=true',
  '--rps',
  '0',
  '--fail-at',
  '50%',
  '--quiet',
  ...more,
]

/** A run that would take half a minute, and already has its first items. */
async function startLongRun(...more: string[]): Promise<{ run: SluiceProcess; id: string }> {
  const run = startSluice(runBooks(slow, '--concurrency', '2', '--lease', '2s', ...more), { env })
  let id: string | undefined
  await until('the run has items', async () => {
    for (const { runId } of listRuns(out)) {
      const { isAlive, items } = await numbersOf(runId)
      if (isAlive && items > 0) id = runId
    }
    return id !== undefined
  })
  return { run, id: id! }
}

test('a run can be paused, resumed and cancelled from another process, and resumed later', async () => {
  const { run, id } = await startLongRun()
  try {
    const paused = await json('pause', id)
    assert.deepEqual([paused.isChanged, paused.isAlive], [true, true])
    assert.match(paused.reason, /^paused by hand \(.+@.+\)$/)
    let numbers = await numbersOf(id)
    await until('nothing is in flight', async () => {
      const before = numbers.completed
      numbers = await numbersOf(id)
      return numbers.claimed === 0 && numbers.completed === before
    })
    const [listed] = (await json('ps')).runs
    assert.deepEqual([listed.id, listed.state, listed.why], [id, 'paused', `paused: ${paused.reason}`])
    assert.equal((await json('resume', id)).isChanged, true)
    await until('it goes on', async () => (await numbersOf(id)).completed > numbers.completed)
    const { stdout } = await sluice(['cancel', id, '--reason', 'enough of it'], { env })
    assert.match(stdout, /its workers hand back what they hold and end/)
    const [next] = /run books --resume .*/.exec(stdout)!
    const { code } = await run.result
    assert.equal(code, 4)
    const record = JSON.parse(readFileSync(join(out, 'books', id, 'run.json'), 'utf8'))
    assert.deepEqual([record.state, record.reason], ['stopped', 'enough of it'])
    const again = startSluice([...next.split(' '), '--pages', '60', '--rps', '0', '--quiet'], { env })
    await again.result
    assert.match((await json('stats', id)).reason, /limit of 60 pages/)
    assert.equal((await json('cancel', id)).isChanged, false)
  } finally {
    run.child.kill('SIGKILL')
  }
})

test('cancel ends a run of several processes', async () => {
  const { run, id } = await startLongRun('--processes', '2')
  try {
    await json('cancel', id)
    assert.equal((await run.result).code, 4)
    assert.match((await json('stats', id)).reason, /cancelled by hand/)
  } finally {
    run.child.kill('SIGTERM')
  }
})

test('watch and logs -f follow a run to its end and end with it', async () => {
  const { run, id } = await startLongRun()
  const watch = startSluice(['watch', id], { env })
  const lines = startSluice(['watch', id, '--json'], { env })
  const logs = startSluice(['logs', id, '-f', '--json'], { env })
  lines.child.stdout!.once('data', () => run.child.kill('SIGTERM'))
  await run.result
  const [watched, looked, logged] = await Promise.all([watch.result, lines.result, logs.result])
  assert.deepEqual([watched.code, looked.code, logged.code], [0, 0, 0])
  assert.match(watched.stdout, /stopped: SIGTERM received/)
  const looks = looked.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual([looks[0].state, looks.at(-1).state], ['running', 'stopped'])
  const events = logged.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).event)
  assert.deepEqual([events[0], events.at(-1)], ['run.started', 'run.finished'])
})

test('watch leaves the run alone when it is ended with Ctrl-C', async () => {
  const { run, id } = await startLongRun()
  try {
    const watch = startSluice(['watch', id], { env })
    watch.child.stdout!.once('data', () => watch.child.kill('SIGINT'))
    assert.equal((await watch.result).code, 0)
    assert.equal((await json('stats', id)).isAlive, true)
  } finally {
    run.child.kill('SIGTERM')
    await run.result
  }
})

test('a finished run: logs by level, retry by class, ps --all, diff with another', async () => {
  const { code, stderr } = await sluice(runBooks(site), { env })
  assert.equal(code, 0, stderr)
  const { id } = await json('stats', 'books')
  const warnings = await sluice(['logs', id, '--level', 'warn'], { env })
  assert.match(warnings.stdout, /^\S+Z warn {2}.*404.*$/m)
  assert.ok(!/ info /.test(warnings.stdout))
  appendFileSync(
    join(out, 'books', id, 'log.jsonl'),
    '{"level":"error","message":"\\u001b[2Jtorn\\nline","time":"t"}\n',
  )
  assert.equal((await sluice(['logs', id, '--level', 'error'], { env })).stdout, 't error torn line\n')
  assert.match((await sluice(['logs', id, '--level', 'wran'], { env })).stderr, /did you mean warn\?/)

  assert.ok(!(await json('ps')).runs.some((run: { id: string }) => run.id === id))
  assert.ok((await json('ps', '--all')).runs.some((run: { id: string }) => run.id === id))

  assert.equal((await sluice(['retry', id], { env })).code, 2)
  const { retried, next } = await json('retry', id, '--failed', '--class', 'not-found')
  assert.equal(retried, 1)
  assert.match(next, new RegExp(`run books --resume ${id}`))
  assert.ok(
    (await json('ps')).runs.some((run: { id: string; state: string }) => run.id === id && run.state === 'stopped'),
  )

  const items = join(out, 'books', id, 'items.jsonl')
  const [first, ...rest] = readFileSync(items, 'utf8').split('\n')
  await sluice(runBooks(site), { env })
  const { id: other } = await json('stats', 'books')
  const same = await sluice(['diff', id, other, '--exit-code'], { env })
  const unchanged = `0 added, 0 removed, 0 changed, ${rest.length} unchanged; not compared: scraped_at\n`
  assert.deepEqual([same.code, same.stdout], [0, unchanged])
  const whole = await sluice(['diff', id, other, '--all-fields', '--exit-code'], { env })
  assert.equal(whole.code, 1)
  assert.match(whole.stdout, new RegExp(`^0 added, 0 removed, ${rest.length} changed, 0 unchanged\n$`, 'm'))

  const changed = JSON.parse(rest[0]!)
  writeFileSync(items, `${[JSON.stringify({ ...changed, price: 'was more' }), ...rest.slice(1)].join('\n')}`)
  const args = ['diff', id, other]
  const text = await sluice([...args, '--exit-code'], { env })
  assert.equal(text.code, 1)
  assert.match(text.stdout, new RegExp(`^\\+ ${JSON.parse(first!).url}  `, 'm'))
  assert.match(text.stdout, new RegExp(`^~ ${changed.url}\n    price: was more → ${changed.price}\n`, 'm'))
  assert.match(
    text.stdout,
    new RegExp(`^1 added, 0 removed, 1 changed, ${rest.length - 2} unchanged; not compared: scraped_at\n$`, 'm'),
  )
  const parsed = (await sluice([...args, '--json'], { env })).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(parsed.at(-1), {
    kind: 'totals',
    added: 1,
    removed: 0,
    changed: 1,
    unchanged: rest.length - 2,
    repeated: 0,
    leftOut: ['scraped_at'],
    fieldsAdded: [],
    fieldsRemoved: [],
  })
})
