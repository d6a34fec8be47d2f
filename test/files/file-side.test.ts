/** The file side of a worker: which files it stores, and when it begins, waits and ends. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { WorkerFiles } from '../../src/app/run/worker-files.ts'
import { fileLoad } from '../../src/app/run/worker-resources.ts'
import type { ScrapeError } from '../../src/core/errors.ts'
import { createEventBus } from '../../src/core/events.ts'
import { limitsSchema } from '../../src/core/options.ts'
import { createRateLimit } from '../../src/fetch/rate/rate-limit.ts'
import type { FileRecords } from '../../src/files/contract.ts'
import { lazyRecords } from '../../src/files/lazy-records.ts'
import { openSqliteRecords } from '../../src/files/records.ts'
import type { Frontier } from '../../src/frontier/contract.ts'
import { openFrontier } from '../../src/frontier/open.ts'
import { until } from '../fleet.ts'
import { postgresForTests } from '../services/postgres.ts'
import { temporaryFolder } from '../sluice.ts'
import { fileTask } from './loop-rig.ts'

interface Side extends AsyncDisposable {
  side: WorkerFiles
  frontier: Frontier
  begun: () => number
}

interface SideOptions {
  /** The engine that an in-memory one pretends to be. */
  engine?: string
  /** The URL of a real one. */
  url?: string
  takesShared?: boolean
  silentMsMax?: number
}

async function start(folder: string, options: SideOptions = {}): Promise<Side> {
  const { engine = 'memory:', url, takesShared = true, silentMsMax } = options
  await using opening = new AsyncDisposableStack()
  const frontier = opening.use(await openFrontier(url ?? 'memory:'))
  if (url === undefined) Object.defineProperty(frontier, 'engine', { value: engine })
  const limits = limitsSchema.parse({})
  const rates = { perHost: { concurrency: 4, rps: 0, delayMs: 0 }, concurrency: 8, crawlDelayMsMax: 0 }
  let begun = 0
  const side = opening.use(
    new WorkerFiles(
      {
        spec: {
          store: join(folder, 'store'),
          spool: join(folder, 'spool'),
          records: join(folder, 'files.db'),
          workersMax: 1,
          bytesMax: 1_000_000,
          steps: [],
        },
        frontier,
        limits,
        rateLimit: opening.use(createRateLimit(rates)),
        sessions: { get: async () => undefined, keep: async () => {}, headers: () => ({}) },
        mayFetch: async () => {},
        http: { userAgent: 'SluiceTest/1.0', allowPrivate: true, allowAddresses: [] },
        bus: createEventBus(),
        runId: 'run-1',
        scraper: 'shop',
        workerId: 'w1',
        leaseMs: 30_000,
        drainMs: 0,
        takesShared,
        ...(silentMsMax === undefined ? {} : { silentMsMax }),
        onBegin: () => {
          begun++
        },
      },
      new AbortController().signal,
    ),
  )
  const held = opening.move()
  return { side, frontier, begun: () => begun, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

const upload = (lane: string, path: string) =>
  fileTask('http://shop.example/cart', { type: 'upload', path, name: 'cart.txt' }, { lane, key: `upload ${lane}` })

test('stores a browser’s download on the machine that has it, under whatever name it is restarted', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'download')
  writeFileSync(path, 'hello')
  let kept: { path: string; lane: string }
  {
    await using one = await start(folder.path, { engine: 'postgres:' })
    kept = await one.side.keep({ path })
  }
  await using rig = await start(folder.path, { engine: 'postgres:' })
  await rig.frontier.add([upload(kept.lane, kept.path)])
  await rig.side.drained()
  await using records = openSqliteRecords(join(folder.path, 'files.db'))
  const [record] = await records.list('run-1')
  assert.equal(readFileSync(fileURLToPath(record!.where), 'utf8'), 'hello')
})

test('stores only its own browsers’ downloads in a worker for pages, and leaves files that any machine can fetch', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'download')
  writeFileSync(path, 'hello')
  await using rig = await start(folder.path, { engine: 'postgres:', takesShared: false })
  await rig.frontier.add([fileTask('http://shop.example/a.bin')])
  rig.side.ordered()
  await rig.side.drained()
  assert.equal(rig.begun(), 0, 'no process for files of others')
  const kept = await rig.side.keep({ path })
  await rig.frontier.add([upload(kept.lane, kept.path)])
  rig.side.ordered()
  await rig.side.drained()
  const { lanes, completed } = await rig.frontier.stats()
  assert.equal(completed, 1)
  assert.deepEqual(lanes['files'], { pending: 2, claimed: 0 }, 'the download and the record of the upload')
})

test('reports kept files of a machine that is gone as missing, so that a local run ends', async () => {
  using folder = temporaryFolder()
  await using rig = await start(folder.path)
  await rig.frontier.add([upload('files@old-container', '/nowhere')])
  await rig.side.drained()
  const dead = await rig.frontier.dead.list()
  assert.deepEqual(
    dead.map(({ error }) => error.code),
    ['E_FILE_MISSING'],
  )
  assert.equal((await rig.frontier.stats()).remaining, 0)
})

test('waits only for its own files in a fleet worker', async () => {
  using folder = temporaryFolder()
  await using rig = await start(folder.path, { engine: 'postgres:' })
  await rig.frontier.add([upload('files@another-machine', '/nowhere')])
  await rig.side.drained()
  assert.equal((await rig.frontier.stats()).pending, 1)
  assert.deepEqual([rig.side.waiting, rig.begun()], [0, 0])
})

test('starts nothing after the end', async () => {
  using folder = temporaryFolder()
  const rig = await start(folder.path)
  await rig[Symbol.asyncDispose]()
  rig.side.wake()
  assert.equal(rig.begun(), 0)
})

test('gives up downloads of a machine that is gone, and stores them once it is back and they are retried', async () => {
  await using database = await postgresForTests()
  using there = temporaryFolder()
  using here = temporaryFolder()
  const path = join(there.path, 'download')
  writeFileSync(path, 'hello')
  {
    await using gone = await start(there.path, { url: database.url })
    const kept = await gone.side.keep({ path })
    await gone.frontier.add([upload(kept.lane, kept.path)])
  }
  {
    await using other = await start(here.path, { url: database.url, takesShared: false, silentMsMax: 1 })
    await until('nothing remains', async () => (await other.frontier.stats()).remaining === 0)
    const [dead] = await other.frontier.dead.list()
    assert.equal(dead?.error.code, 'E_FILE_LOST')
    await other.frontier.dead.retry()
  }
  await using back = await start(there.path, { url: database.url })
  await back.side.drained()
  const { remaining, completed } = await back.frontier.stats()
  assert.deepEqual([remaining, completed], [0, 2], 'the file and its record')
})

test('opens records later if their database is down at first', async () => {
  using folder = temporaryFolder()
  let tries = 0
  const open = async (): Promise<FileRecords> => {
    if (tries++ < 2) throw new Error('connection refused')
    return openSqliteRecords(join(folder.path, 'files.db'))
  }
  await using records = lazyRecords(open)
  for (let i = 0; i < 2; i++)
    await assert.rejects(records.findStored('x', 'y'), (error: ScrapeError) => error.code === 'E_FILE_RECORD')
  assert.equal(await records.findStored('x', 'y'), undefined)
  assert.deepEqual(await records.list('run-1'), [])
  assert.equal(tries, 3)
  mkdirSync(join(folder.path, 'folder'))
  await using wrong = lazyRecords(async () => openSqliteRecords(join(folder.path, 'folder')))
  await assert.rejects(wrong.list('run-1'), (error: ScrapeError) => error.code === 'E_OUTPUT')
})

test('counts a file process as busy when it has all the jobs it may have', () => {
  const pool = (busy: number) => ({ workers: 2, capacity: 8, busy }) as never
  assert.deepEqual(fileLoad({ pool: pool(3), waiting: 5 }), { size: 2, busy: 0, queued: 5 })
  assert.deepEqual(fileLoad({ pool: pool(4), waiting: 5 }), { size: 2, busy: 1, queued: 5 })
  assert.deepEqual(fileLoad({ pool: pool(20), waiting: 5 }), { size: 2, busy: 2, queued: 5 })
})
