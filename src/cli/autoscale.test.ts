/** Scales workers by queue depth: real processes, a real database, the demo shop. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { postgresForTests, type TestDatabase } from '../../test/services/postgres.ts'
import { type BooksSite, startBooksSite } from '../../test/site/books.ts'
import { sluice, startSluice, temporaryFolder } from '../../test/sluice.ts'
import { shortened } from './autoscale.ts'

const folder = temporaryFolder()
let database: TestDatabase
let site: BooksSite
let env: NodeJS.ProcessEnv

before(async () => {
  database = await postgresForTests()
  site = await startBooksSite({ products: 500, delayMs: 20 })
  env = { SLUICE_OUT: join(folder.path, 'runs'), SLUICE_FRONTIER: database.url, SLUICE_ALLOW_PRIVATE: 'yes' }
})

after(async () => {
  await site[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

async function json(...args: string[]) {
  const { code, stdout, stderr } = await sluice([...args, '--json'], { env })
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

const NEW_RUN = ['start', 'books', '--mode', 'distributed', '--arg', 'details=true', '--rps', '0']
const start = async (...args: string[]) => (await json(...NEW_RUN, '--site', site.url, ...args)).run_id

const FAST = ['--interval', '200ms', '--cooldown', '500ms']

interface Line {
  target: number
  workers: number
  pending: number
  done: string[]
  runs: { run: string; target: number; workers: number }[]
}

/** Yields each decision once, as it is made. */
function autoscale(...args: string[]) {
  const started = startSluice(['autoscale', '--scraper', 'books', '--json', ...FAST, ...args], { env })
  const lines: Line[] = []
  let rest = ''
  let onLine = () => {}
  started.child.stdout!.on('data', (text: string) => {
    const parts = (rest + text).split('\n')
    rest = parts.pop()!
    lines.push(...parts.map((part) => JSON.parse(part) as Line))
    onLine()
  })
  const until = (isSo: (line: Line) => boolean) =>
    new Promise<Line>((resolve, reject) => {
      onLine = () => {
        const found = lines.find(isSo)
        if (found !== undefined) resolve(found)
      }
      onLine()
      void started.result.then(({ stderr }) => reject(new Error(`it ended before: ${stderr}`)))
    })
  return { ...started, lines, until }
}

test('starts workers as the queue grows, and ends with the run and its workers', async () => {
  const id = await start()
  const scaling = autoscale('--max', '3', '--per-worker', '100', '--', '--concurrency', '2')
  const { code, stderr } = await scaling.result
  assert.equal(code, 0, stderr)
  assert.equal(scaling.lines[0]?.target, 1)
  assert.equal(Math.max(...scaling.lines.map(({ workers }) => workers)), 3)
  assert.deepEqual([scaling.lines.at(-1)?.target, scaling.lines.at(-1)?.workers], [0, 0])
  const { state, items, fleet } = await json('stats', id)
  assert.deepEqual([state, items, fleet], ['finished', 500, []])
})

test('replaces a killed worker, and on SIGTERM drains all and leaves the run resumable', async () => {
  const id = await start()
  const scaling = autoscale('--run-id', id, '--max', '2', '--min', '2', '--', '--concurrency', '1', '--lease', '2s')
  try {
    const { done } = await scaling.until(({ workers }) => workers === 2)
    const pid = Number(/process (\d+)/.exec(done[0]!)![1])
    const count = scaling.lines.length
    process.kill(pid, 'SIGKILL')
    await scaling.until((line) => scaling.lines.indexOf(line) >= count && line.done.some((one) => /^started/.test(one)))
  } finally {
    scaling.child.kill('SIGTERM')
  }
  const { code, stderr } = await scaling.result
  assert.equal(code, 4, stderr)
  assert.match(stderr, /worker \d ended: SIGKILL/)
  const { state, workers, remaining } = await json('stats', id)
  assert.deepEqual([state, workers, remaining > 0], ['running', 0, true])
  await json('cancel', id)
})

test('gives a second run its share of workers from the first, and all of them while that one is paused', async () => {
  const first = await start()
  const scaling = autoscale('--max', '2', '--min', '2', '--', '--concurrency', '1')
  const staffed = (...expected: [run: string, workers: number][]) =>
    scaling.until(({ runs }) =>
      expected.every(([id, workers]) => runs.some((one) => one.run === id && one.workers === workers)),
    )
  try {
    await staffed([first, 2])
    const second = await start()
    await staffed([first, 1], [second, 1])
    await json('pause', first)
    await staffed([first, 0], [second, 2])
    await json('cancel', first)
    await json('cancel', second)
    const { code, stderr } = await scaling.result
    assert.equal(code, 0, stderr)
    assert.ok(scaling.lines.every(({ workers }) => workers <= 2))
  } finally {
    scaling.child.kill('SIGTERM')
  }
})

test('does not count workers that stop at a limit of their run as dead', async () => {
  const id = await start('--pages', '10')
  const { code, stderr } = await autoscale('--run-id', id, '--min', '8', '--cooldown', '0s').result
  assert.equal(code, 0, stderr)
  assert.equal((await json('stats', id)).state, 'stopped')
})

test('gives up on workers that cannot start, with their own error', async () => {
  const id = await start()
  const { code, stderr } = await autoscale('--run-id', id, '--', '--nonsense').result
  assert.equal(code, 1)
  assert.match(stderr, /E_WORKERS_DIE/)
  assert.match(stderr, /cannot begin \(exit code 2\)/)
  assert.match(stderr, /unknown option '--nonsense'/)
  await json('cancel', id)
})

test('runs a command with the number instead of its own processes', async () => {
  const id = await start()
  const file = join(folder.path, 'asked')
  const scaling = autoscale('--run-id', id, '--exec', `echo scale={n} >> ${file}`)
  try {
    await scaling.until(({ target }) => target === 1)
    await json('pause', id)
    await scaling.until(({ target }) => target === 0)
    await json('cancel', id)
    assert.equal((await scaling.result).code, 0)
  } finally {
    scaling.child.kill('SIGTERM')
  }
  assert.equal(readFileSync(file, 'utf8'), 'scale=1\nscale=0\n')
})

test('reports all invalid flags, and when there is nothing to do', async () => {
  const wrong = await sluice(['autoscale', '--scraper', 'books', '--min', '9', '--max', '2', '--interval', 'soon'], {
    env,
  })
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /--interval takes a time/)
  assert.match(wrong.stderr, /--min 9 is more than --max 2/)
  const idle = await sluice(['autoscale', '--scraper', 'books'], { env })
  assert.equal(idle.code, 2)
  assert.match(idle.stderr, /no run of "books" is going on/)
})

test('shortens the reasons of many runs to five and a number', () => {
  const reasons = (count: number) => Array.from({ length: count }, (_, i) => `run${i}: the first look`).join('; ')
  assert.equal(shortened(reasons(5)), reasons(5))
  assert.equal(shortened(`${reasons(20)}; fair shares of 8`), `${reasons(5)}; … and 16 more`)
})
