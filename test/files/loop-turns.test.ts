/** What the file loop claims and starts, and when: with a pool that only records its jobs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ScrapeError } from '../../src/core/errors.ts'
import { createEventBus, type EventOf } from '../../src/core/events.ts'
import { decide } from '../../src/crawl/retry.ts'
import { createRateLimit } from '../../src/fetch/rate/rate-limit.ts'
import type { FileJob, FilePool, JobHooks, StoredFile } from '../../src/files/contract.ts'
import { type FileLoopParts, runFiles } from '../../src/files/loop.ts'
import { pinnedLane } from '../../src/files/orders.ts'
import { openFrontier } from '../../src/frontier/open.ts'
import { fileTask } from './loop-rig.ts'
import { never } from './rig.ts'

type Run = (job: FileJob, signal: AbortSignal, hooks: JobHooks) => Promise<void>

const LANE = pinnedLane('here')
const upload = (n: number) =>
  fileTask(
    `http://a.example/cart/${n}`,
    { type: 'upload', path: `/nowhere/${n}`, name: 'x' },
    { lane: LANE, key: `u${n}` },
  )

async function turns(run: Run, options: { perHost?: number; rps?: number; parts?: Partial<FileLoopParts> } = {}) {
  const { perHost = 16, rps = 0, parts = {} } = options
  const frontier = await openFrontier('memory:')
  const counts = { claims: 0 }
  const { claim } = frontier
  frontier.claim = (request) => {
    counts.claims++
    return claim.call(frontier, request)
  }
  const bus = createEventBus()
  const events: EventOf<'file'>[] = []
  bus.on((event) => {
    if (event.type === 'file') events.push(event)
  })
  const rateLimit = createRateLimit({
    perHost: { concurrency: perHost, rps, delayMs: 0 },
    concurrency: 16,
    crawlDelayMsMax: 0,
  })
  const started: string[] = []
  const pool: FilePool = {
    workers: 1,
    capacity: 4,
    busy: 0,
    resize() {},
    async run(job, signal, hooks = {}): Promise<StoredFile> {
      started.push(`${job.order.type} ${new URL(job.task.url).pathname}`)
      await run(job, signal, hooks)
      const { id } = job.task
      return { name: 'a', bytes: 1, sha256: id, contentType: 'text/plain', where: 'file:///x', isSame: false, extra: {}, fetchedBytes: 1 } // biome-ignore format: one line reads better
    },
    async [Symbol.asyncDispose]() {},
  }
  const records = {
    put: async () => {},
    findStored: async () => undefined,
    count: async () => ({ stored: 0, same: 0, bytes: 0 }),
    list: async () => [],
    async [Symbol.asyncDispose]() {},
  }
  const stop = new AbortController()
  const limits = { retries: 0, backoff: 10, backoffMax: 50, retryAfterMax: 100 }
  const loop = runFiles(
    {
      frontier,
      pool,
      records,
      rateLimit,
      decide: (error, attempt) => decide(error, { attempt }, limits, Date.now()),
      bus,
      runId: 'run-1',
      scraper: 'shop',
      workerId: 'w/files',
      leaseMs: 30_000,
      drainMs: 0,
      pinnedLanes: () => [LANE],
      ...parts,
    },
    stop.signal,
  )
  return {
    frontier,
    rateLimit,
    bus,
    counts,
    started,
    events,
    async until(isIt: () => boolean | Promise<boolean>) {
      while (!(await isIt())) await sleep(5)
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('stop'))
      await loop.ended
      rateLimit[Symbol.dispose]()
      await frontier[Symbol.asyncDispose]()
    },
  }
}

test('does not ask for files because pages come and go', async () => {
  await using rig = await turns(async () => {}, { parts: { pinnedLanes: () => [] } })
  await rig.until(() => rig.counts.claims >= 6) // the lane is known to be empty
  const before = rig.counts.claims
  const startMs = performance.now()
  for (let pages = 0; pages < 1000; pages++) {
    using _page = await rig.rateLimit.acquire('a.example', never)
    if (pages % 50 === 0) await sleep(1)
  }
  const polls = Math.ceil((performance.now() - startMs) / 500)
  assert.ok(rig.counts.claims - before <= polls + 1, `${rig.counts.claims - before} claims for 1,000 pages`)
})

test('notices pages that add tasks, a few times a second', async () => {
  await using rig = await turns(async () => {}, { parts: { pinnedLanes: () => [] } })
  await rig.until(() => rig.counts.claims >= 8) // now it waits a second
  await rig.frontier.add([fileTask('http://a.example/1')])
  const before = rig.counts.claims
  const startMs = performance.now()
  const event = { type: 'committed', settled: 1, stale: 0, added: 1, seen: 0, items: { new: 0, same: 0, changed: 0, backlog: 0 }, ms: 1 } as never // biome-ignore format: one line reads better
  for (let i = 0; i < 100; i++) rig.bus.emit(event)
  await rig.until(() => rig.started.length === 1)
  assert.ok(performance.now() - startMs < 900, 'before it would have looked by itself')
  assert.ok(rig.counts.claims - before < 10, `${rig.counts.claims - before} claims`)
})

test('does not let kept downloads wait for downloads from a busy host', async () => {
  const release = Promise.withResolvers<void>()
  await using rig = await turns(async ({ order }) => void (order.type === 'download' && (await release.promise)), {
    perHost: 2,
  })
  await rig.frontier.add(Array.from({ length: 50 }, (_, n) => fileTask(`http://a.example/${n}`)))
  await rig.until(() => rig.started.length === 1) // all the slots that a host with two has for files
  await rig.frontier.add([upload(1), upload(2)])
  await rig.until(() => rig.started.filter((what) => what.startsWith('upload')).length === 2)
  assert.equal(rig.started.length, 3)
  release.resolve()
})

test('does not let files of one host wait for those of a slow one', async () => {
  const release = Promise.withResolvers<void>()
  const isSlow = ({ task }: FileJob) => /^http:\/\/slow\.example\/[3-9]/.test(task.url)
  await using rig = await turns(async (job) => void (isSlow(job) && (await release.promise)), { perHost: 2 })
  await rig.frontier.add(Array.from({ length: 10 }, (_, n) => fileTask(`http://slow.example/${n}`)))
  await rig.until(() => rig.started.length === 4) // the fourth holds the host's only slot for files
  await sleep(600) // time enough to claim the others, if it were going to
  assert.equal((await rig.frontier.stats()).claimed, 1, 'nobody holds what cannot start')
  await rig.frontier.add([fileTask('http://fast.example/x')])
  await rig.until(() => rig.started.includes('download /x'))
  release.resolve()
})

test('releases the host when the bytes have arrived, before they are stored', async () => {
  const received = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  await using rig = await turns(
    async (_job, _signal, hooks) => {
      hooks.onReceived?.()
      received.resolve()
      await release.promise
    },
    { perHost: 1 },
  )
  await rig.frontier.add([fileTask('http://a.example/1')])
  await received.promise
  assert.equal(rig.rateLimit.waitMs('a.example'), 0)
  release.resolve()
})

test('hands back files that wait for their host when the run is paused', async () => {
  const let_: (() => void)[] = []
  await using rig = await turns(() => new Promise((resolve) => let_.push(resolve)), { perHost: 2 })
  await rig.frontier.add(Array.from({ length: 8 }, (_, n) => fileTask(`http://a.example/${n}`)))
  await rig.until(async () => (await rig.frontier.stats()).claimed > 1)
  await rig.frontier.pause('for a test')
  await rig.until(async () => (await rig.frontier.stats()).claimed === 1)
  for (const one of let_) one()
  await rig.until(async () => (await rig.frontier.stats()).completed === 1)
  await sleep(50)
  assert.equal(rig.started.length, 1)
})

test('costs no tries while the store is down, even with short waits', async () => {
  let isAway = true
  const run = async () => {
    if (isAway) throw new ScrapeError('E_FILE_STORE', 'away')
  }
  const patience = { waitMsMin: 300, waitMsMax: 300, awayMsMax: 60_000 }
  await using rig = await turns(run, { parts: { patience, retryAfterMsMax: 100 } })
  await rig.frontier.add([fileTask('http://a.example/1')])
  await rig.until(() => rig.events.some(({ outcome }) => outcome !== 'recorded'))
  assert.equal(rig.events[0]!.outcome, 'postponed')
  isAway = false
  await rig.until(() => rig.events.some(({ outcome }) => outcome === 'recorded'))
})

test('ends a job that takes too long, and leaves no timer for one that has ended', async (t) => {
  const timeout = t.mock.method(AbortSignal, 'timeout')
  const run: Run = (_job, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  await using rig = await turns(run, { parts: { jobMsMax: 20 } })
  await rig.frontier.add([fileTask('http://a.example/1')])
  await rig.until(() => rig.events.length > 0)
  assert.equal(rig.events[0]!.error?.code, 'E_TIMEOUT_TOTAL')
  assert.equal(timeout.mock.callCount(), 0)
})
