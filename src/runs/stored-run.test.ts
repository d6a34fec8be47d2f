/** Fleet runs, read through the same interface as local runs, on a real database. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { postgresForTests, type TestDatabase } from '../../test/services/postgres.ts'
import { redisForTests } from '../../test/services/redis.ts'
import { temporaryFolder } from '../../test/sluice.ts'
import { NO_FILES, newRunId, type RunRecord } from '../core/run.ts'
import type { NewTask } from '../core/task.ts'
import { storeResult } from '../protocol/collect.ts'
import { resultSchema } from '../protocol/messages.ts'
import type { Store, WorkerReport } from '../store/contract.ts'
import { dropLetters, retryLetters } from './dead-letters.ts'
import { exportItems } from './export-items.ts'
import { openFleetFrontier, openStore } from './fleet-places.ts'
import { openRun } from './open-run.ts'
import { RunFolder } from './run-folder.ts'
import { listAllRuns } from './run-list.ts'
import { runStats, stuckWorkers } from './run-numbers.ts'
import { startRecord } from './run-record.ts'
import { cancelRun, pauseRun, resumeRun } from './steer-run.ts'

let database: TestDatabase
let store: Store
const out = temporaryFolder()
const places = () => ({ out: out.path, frontier: database.url, store: undefined })

before(async () => {
  database = await postgresForTests()
  store = await openStore(places())
})

after(async () => {
  await store[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  out[Symbol.dispose]()
})

let clockMs = Date.now() - 3_600_000

function newRecord(scraper: string): RunRecord {
  clockMs += 1000 // ids sort by time
  return startRecord({
    previous: undefined,
    runId: newRunId(clockMs),
    scraper,
    args: {},
    source: scraper,
    frontier: database.url,
    nowMs: clockMs,
  })
}

async function storedRun(scraper: string): Promise<RunRecord> {
  const record = newRecord(scraper)
  const options = { limits: {}, allowPrivate: false, allowAddress: [], userAgent: 'test' }
  await using _queue = await openFleetFrontier(places(), record.id, { store })
  await store.createRun({ record, definitionHash: 'hash', options })
  return record
}

const task = (n: number): NewTask => ({ url: `https://shop.example/${n}`, route: 'page', data: null, depth: 0 })

const REPORT: WorkerReport = {
  tally: {
    pages: { ok: 3, failed: 1, retried: 2, postponed: 0 },
    items: { new: 3, same: 0, changed: 0, invalid: 0 },
    files: NO_FILES,
    fieldFill: { title: 1 },
    bytes: 1000,
    latencyMs: { p50: 10, p95: 20 },
    rssBytesMax: 100,
    cpuMs: 5,
    errors: [{ code: 'E_NOT_FOUND', class: 'not-found', count: 1, example: 'https://shop.example/4' }],
  },
  inFlight: 2,
  rssBytes: 90,
  loopLagMs: 1,
}

/** Three pages are done with an item each, the fourth is dead, the fifth is waiting. */
async function worked(record: RunRecord): Promise<void> {
  await using store = await openStore(places())
  await using frontier = await openFleetFrontier({ ...places(), redis: undefined }, record.id, { store })
  await frontier.add([1, 2, 3, 4].map(task))
  const leases = await frontier.claim({ max: 4, workerId: 'w', leaseMs: 30_000 })
  await frontier.commit(
    leases.map((lease) => {
      const n = Number(new URL(lease.task.url).pathname.slice(1))
      if (n < 4)
        return { kind: 'done', lease, items: [{ key: `k${n}`, json: `{"id":"k${n}","title":"T, ${n}"}` }] } as const
      const error = { code: 'E_NOT_FOUND', class: 'not-found', message: 'gone' } as const
      return { kind: 'dead', lease, error, snapshot: 'snapshots/x.html', counts: { 'errors.E_NOT_FOUND': 1 } } as const
    }),
  )
  await frontier.add([task(5)])
}

async function textOf(pieces: AsyncIterable<string | Buffer>): Promise<string> {
  let text = ''
  for await (const piece of pieces) text += piece
  return text
}

test('finds a stored run by id, by scraper and as the newest, with its numbers and workers', async () => {
  const record = await storedRun('shop')
  await worked(record)
  await store.registerWorker({ id: 'host_1_a', runId: record.id, scraper: 'shop', host: 'host', pid: 1 })
  await store.beat('host_1_a', REPORT)
  for (const word of [record.id, 'shop', undefined, 'latest']) {
    await using run = await openRun(word, places())
    assert.equal(run.record.id, record.id)
    assert.deepEqual([run.isAlive, run.isOver, run.workers?.length, run.folder], [true, false, 1, undefined])
    const { ok, failed, remaining } = run.record.pages
    assert.deepEqual([ok, failed, remaining, run.record.items.new], [3, 1, 1, 3])
    assert.deepEqual(run.record.errors, REPORT.tally.errors)
    assert.equal((await runStats(run)).pending, 1)
  }
  await store.endWorker('host_1_a', REPORT)
  await using run = await openRun('shop', places())
  assert.deepEqual([run.isAlive, run.isOver], [false, false])
})

test('opens a folder by its path, and the newest run in folders and store by scraper or without a name', async () => {
  using folders = temporaryFolder()
  const here = { ...places(), out: folders.path }
  const old = newRecord('both')
  const folder = RunFolder.create(folders.path, 'both', Date.parse(old.startedAt))
  folder.writeRecord({ ...old, id: folder.runId, state: 'stopped', frontier: 'memory:' })
  const stored = await storedRun('both')
  {
    await using named = await openRun(folder.runId, here)
    assert.equal(named.folder, folder.path)
    await using ofScraper = await openRun('both', here)
    assert.equal(ofScraper.record.id, stored.id)
    await using newest = await openRun(undefined, here)
    assert.equal(newest.record.id, stored.id)
  }
  const newer = RunFolder.create(folders.path, 'both', Date.now())
  newer.writeRecord({ ...old, id: newer.runId, state: 'stopped', frontier: 'memory:' })
  await using newest = await openRun(undefined, here)
  assert.equal(newest.folder, newer.path)
})

test('searches both places for an unknown run, and the error names them without a password', async () => {
  const url = new URL(database.url)
  url.password = 'secret'
  await assert.rejects(openRun('nonsense', { ...places(), frontier: url.href }), (error: Error) => {
    assert.match(error.message, /no run "nonsense" under .*, nor in postgres:/)
    assert.ok(!error.message.includes('secret'))
    return true
  })
})

test('returns the items as JSON lines and CSV, with their keys', async () => {
  const record = await storedRun('items')
  await worked(record)
  await using run = await openRun(record.id, places())
  const items = (await run.items())!
  assert.equal(items.isKeyed, true)
  const lines = (await textOf(exportItems({ run, format: 'jsonl', formulaSafe: false }))).trimEnd().split('\n')
  assert.deepEqual(
    lines.sort(),
    [1, 2, 3].map((n) => `{"id":"k${n}","title":"T, ${n}"}`),
  )
  const csv = await textOf(exportItems({ run, format: 'csv', formulaSafe: false }))
  assert.deepEqual(csv.trimEnd().split('\r\n').sort(), ['id,title', 'k1,"T, 1"', 'k2,"T, 2"', 'k3,"T, 3"'])
})

test('shows dead letters with their snapshots, and reopens a finished run to retry them', async () => {
  const record = await storedRun('letters')
  await worked(record)
  await store.putSnapshot(record.id, 'snapshots/x.html', Buffer.from('<h1>Sorry</h1>'))
  await store.saveRun({ ...record, state: 'finished', exitCode: 0, finishedAt: record.startedAt }, ['running'])
  {
    await using run = await openRun(record.id, places())
    const [letter] = await run.frontier!.dead.list()
    assert.deepEqual(await run.snapshot(letter!.snapshot!), { place: 'snapshots/x.html', head: '<h1>Sorry</h1>' })
    assert.equal((await run.snapshot('snapshots/none')).head, undefined)
    assert.equal(await retryLetters(run, { class: 'not-found' }), 1)
    assert.deepEqual([run.record.state, run.record.finishedAt], ['running', null])
    assert.deepEqual(run.resumeCommand(), ['worker', '--scraper', 'letters', '--run-id', record.id])
  }
  assert.equal((await store.findRun(record.id))?.record.state, 'running')
  await using run = await openRun(record.id, places())
  assert.equal(await dropLetters(run, {}), 0)
})

test('pauses, resumes and cancels with or without workers, and says how to continue', async () => {
  const record = await storedRun('steered')
  await worked(record)
  await using run = await openRun(record.id, places())
  assert.equal((await pauseRun(run, 'lunch')).isChanged, true)
  assert.deepEqual(await pauseRun(run), { isChanged: false, reason: 'lunch' })
  const [listed] = (await listAllRuns({ places: places(), isAll: false, max: 1 })).runs
  assert.deepEqual([listed?.state, listed?.workers, listed?.why], ['paused', 0, 'paused: lunch'])
  assert.equal((await resumeRun(run)).isChanged, true)
  assert.equal((await resumeRun(run)).isChanged, false)
  assert.equal((await cancelRun(run, 'enough')).isChanged, true)
  assert.equal(await run.frontier!.getMeta('stop'), 'enough')
  const { record: saved } = (await store.findRun(record.id))!
  assert.deepEqual([saved.state, saved.reason, saved.exitCode], ['stopped', 'enough', 4])
  assert.deepEqual(run.resumeCommand(), ['start', 'steered', '--mode', 'distributed', '--resume', record.id])
  assert.equal((await cancelRun(run)).isChanged, false)
})

test('says that a run has no workers, and how long its workers have been silent', async () => {
  const record = await storedRun('silent')
  await worked(record)
  const why = async () => (await listAllRuns({ places: places(), isAll: false, max: 1 })).runs[0]?.why
  assert.equal(await why(), '0 workers')
  await store.registerWorker({ id: 'silent_1', runId: record.id, scraper: 'silent', host: 'host', pid: 1 })
  assert.equal(await why(), undefined)
  const { Client } = await import('pg')
  const client = new Client(database.url)
  await client.connect()
  await client.query(`update sluice.worker set beat_ms = beat_ms - 41000 where id = 'silent_1'`)
  await client.end()
  assert.match((await why())!, /^stuck: 1 worker silent for (?:4[1-9]|[5-9]\d) s$/)
  await using run = await openRun(record.id, places())
  assert.deepEqual([run.isAlive, stuckWorkers(run).length], [false, 1])
})

test('reads the log once, in order, and then only what is new', async () => {
  const record = await storedRun('logged')
  await using run = await openRun(record.id, places())
  const read = async () => {
    const lines: string[] = []
    for await (const some of run.log.read()) lines.push(...some)
    return lines
  }
  await store.addLogs(
    record.id,
    Array.from({ length: 1200 }, (_, i) => `{"n":${i}}`),
  )
  assert.deepEqual((await read()).map((line) => JSON.parse(line).n).slice(-2), [1198, 1199])
  await store.addLogs(record.id, ['{"n":1200}\n'])
  assert.deepEqual(await read(), ['{"n":1200}'])
  assert.equal(run.log.isComplete(), false)
})

test('looks for a task of the task protocol in Redis, even if the runs are in PostgreSQL', async () => {
  await using redis = await redisForTests()
  const result = resultSchema.parse({
    task_id: crypto.randomUUID(),
    status: 'success',
    scraper_type: 'things',
    execution_time: 1,
    jobs_found: 1,
    items: [{ id: 'a' }],
    metadata: { pages_scraped: 3 },
    completed_at: new Date().toISOString(),
  })
  await storeResult(store, result, redis.url)
  await using run = await openRun(result.task_id, { ...places(), redis: redis.url })
  assert.equal(run.trouble?.code, 'E_QUEUE_LOST', 'a finished task has no queue, and needs none')
  assert.deepEqual([run.record.pages.ok, run.record.items.new], [3, 1])
  const lines: string[] = []
  for await (const rows of (await run.items())!.batches()) lines.push(...rows.map(({ json }) => json))
  assert.deepEqual(lines, ['{"id":"a"}'])
})
