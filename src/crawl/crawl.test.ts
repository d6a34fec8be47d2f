/** The loop with a fake web: real frontiers, real channel, real handlers; only pages and rate limits are fake. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import * as z from 'zod'
import { ScrapeError } from '../core/errors.ts'
import { createEventBus, type EventOf, type RunEvent } from '../core/events.ts'
import type { Limits } from '../core/options.ts'
import type { Page } from '../core/page.ts'
import { defineScraper, type HandlerContext } from '../core/scraper.ts'
import type { Fetcher, RateLimit } from '../fetch/contract.ts'
import type { Frontier, Lease } from '../frontier/contract.ts'
import { openFrontier } from '../frontier/open.ts'
import { over } from '../frontier/over.ts'
import { Channel } from './channel.ts'
import { compileScraper } from './compile-scraper.ts'
import type { CrawlEnd, CrawlParts } from './contract.ts'
import { crawl } from './crawl.ts'
import { enqueuePolicy } from './enqueue.ts'
import type { Settled } from './settle.ts'

const Item = z.object({ id: z.string(), version: z.string() })
const routes = { page: {} }
type Handler = (context: HandlerContext<typeof Item, typeof routes, 'page', unknown>) => unknown
/** Responds with the page's text. `nth` counts the requests for this URL from 1. */
type Answer = (url: string, signal: AbortSignal, nth: number) => string | Promise<string>

const folder = mkdtempSync(join(tmpdir(), 'sluice-crawl-'))
after(() => rmSync(folder, { recursive: true }))

let files = 0
const newFile = () => join(folder, `${++files}.db`)

const seeds = (count: number, host = 'a.test') =>
  Array.from({ length: count }, (_, n) => ({ url: `https://${host}/${n}`, route: 'page', depth: 0 }))

async function frontierWith(engine: string, count: number): Promise<Frontier> {
  const frontier = await openFrontier(engine === 'memory:' ? engine : `sqlite:${newFile()}`)
  await frontier.add(seeds(count))
  return frontier
}

function pageOf(url: string, text: string): Page {
  const body = Buffer.from(text)
  return {
    requestedUrl: url,
    url,
    redirects: [],
    status: 200,
    headers: {},
    body,
    contentType: 'text/html',
    charset: 'UTF-8',
    text,
    bytes: { wire: body.length, decoded: body.length },
    timings: { firstByteMs: 0, totalMs: 0 },
    fromCache: false,
    fetchedAtMs: 0,
    release() {},
  }
}

class FakeWeb implements Fetcher {
  readonly asked: string[] = []
  inFlight = 0
  inFlightMost = 0
  readonly #answer: Answer

  constructor(answer: Answer = () => '') {
    this.#answer = answer
  }

  async fetch({ url }: { url: string }, signal: AbortSignal): Promise<Page> {
    this.asked.push(url)
    this.inFlightMost = Math.max(this.inFlightMost, ++this.inFlight)
    try {
      await new Promise(setImmediate)
      return pageOf(url, await this.#answer(url, signal, this.asked.filter((other) => other === url).length))
    } finally {
      this.inFlight--
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

const freeHosts: RateLimit = {
  waitMs: () => 0,
  acquire: () => Promise.reject(new Error('the loop does not take slots')),
  pause() {},
  setDelay() {},
  busyHosts: () => [],
  pauses: () => [],
  onFree() {},
}

/** A fetch that ends only when it is aborted. */
const never = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

interface Given extends Partial<Omit<CrawlParts, 'fetcher'>> {
  frontier: Frontier
  web?: FakeWeb
  handler?: Handler
  limits?: Limits
  /** Receives every event during the crawl. */
  onEvent?: (event: RunEvent) => void
}

function partsOf({ web = new FakeWeb(), handler = () => {}, limits = {}, onEvent, ...own }: Given) {
  const compiled = compileScraper(
    defineScraper({ name: 'shop', item: Item, key: 'id', routes, start() {}, handlers: { page: handler } }),
    { backoff: 0, ...limits },
  )
  const bus = createEventBus()
  const events: RunEvent[] = []
  bus.on((event) => events.push(event))
  if (onEvent !== undefined) bus.on(onEvent)
  const parts: CrawlParts = {
    compiled,
    fetcher: web,
    rateLimit: freeHosts,
    channel: new Channel<Settled>(64),
    bus,
    runId: 'run-1',
    workerId: 'w1',
    args: {},
    policy: enqueuePolicy(compiled.limits, ['a.test']),
    concurrency: 4,
    claimMax: () => 2 * (own.concurrency ?? 4),
    sessions: { get: async () => undefined, keep: async () => {}, headers: () => ({}) },
    keepDownload: async ({ path }) => ({ path, lane: 'files@here' }),
    pagesMax: Number.POSITIVE_INFINITY,
    leaseMs: 60_000,
    drainMs: 60_000,
    backlogMax: 1000,
    keepSnapshot: (task, page) => `${task.url} ${page?.text}`,
    save: async () => '',
    now: Date.now,
    random: Math.random,
    ...own,
  }
  const pages = () => events.filter((event): event is EventOf<'page'> => event.type === 'page')
  const end = (stop: AbortSignal = new AbortController().signal): Promise<CrawlEnd> => crawl(parts, stop)
  return { parts, events, pages, web, end }
}

const errorOf = (end: CrawlEnd): ScrapeError => {
  assert.equal(end.how, 'halted')
  return (end as { error: ScrapeError }).error
}

const titlesOf = async (frontier: Frontier) =>
  (await frontier.items.read({ afterSeq: 0, max: 1000 })).map(({ json }) => JSON.parse(json))

for (const engine of ['memory:', 'sqlite:']) {
  describe(`a crawl on ${engine}`, () => {
    it('visits every task and the tasks it leads to once, and ends when nothing remains', async () => {
      await using frontier = await frontierWith(engine, 3)
      const { end, web, pages } = partsOf({
        frontier,
        async handler({ url, depth, enqueue, emit }) {
          await emit({ id: url.pathname, version: '1' })
          if (depth < 3) await enqueue('page', [`${url.pathname}/x`, `${url.pathname}/y`, '/0'])
        },
      })
      assert.deepEqual(await end(), { how: 'finished' })
      const stats = await frontier.stats()
      assert.deepEqual([stats.completed, stats.remaining, stats.items], [45, 0, 45])
      assert.equal(web.asked.length, 45)
      assert.equal(new Set(web.asked).size, 45)
      assert.equal(pages().filter(({ outcome }) => outcome === 'ok').length, 45)
    })

    it('ends at once when there is nothing to do', async () => {
      await using frontier = await frontierWith(engine, 0)
      const { end, web } = partsOf({ frontier })
      assert.deepEqual(await end(), { how: 'finished' })
      assert.equal(web.asked.length, 0)
    })

    it('has exactly as many requests in flight as allowed', async () => {
      await using frontier = await frontierWith(engine, 40)
      const full = Promise.withResolvers<string>()
      const web: FakeWeb = new FakeWeb(() => {
        if (web.inFlight === 4) full.resolve('')
        return full.promise
      })
      assert.deepEqual(await partsOf({ frontier, web, concurrency: 4 }).end(), { how: 'finished' })
      assert.equal(web.inFlightMost, 4)
    })

    it('finishes exactly pagesMax pages, failed ones counted, and hands the rest back', async () => {
      await using frontier = await frontierWith(engine, 30)
      const web = new FakeWeb((url) => {
        if (/[369]$/.test(url)) throw new ScrapeError('E_NOT_FOUND', 'gone')
        return ''
      })
      assert.deepEqual(await partsOf({ frontier, web, pagesMax: 7 }).end(), { how: 'limit' })
      const { completed, failed, pending, claimed } = await frontier.stats()
      assert.deepEqual([completed + failed, pending, claimed], [7, 23, 0])
      assert.equal(web.asked.length, 7)
    })

    it('does not count an attempt that is retried as a page', async () => {
      await using frontier = await frontierWith(engine, 10)
      const web = new FakeWeb((_url, _signal, nth) => {
        if (nth === 1) throw new ScrapeError('E_SERVER', 'busy')
        return ''
      })
      assert.deepEqual(await partsOf({ frontier, web, pagesMax: 10 }).end(), { how: 'limit' })
      assert.equal((await frontier.stats()).completed, 10)
      assert.equal(web.asked.length, 20)
    })

    it('tries a failing page as often as allowed, then sends it to the dead letters', async () => {
      await using frontier = await frontierWith(engine, 3)
      const web = new FakeWeb((url) => {
        if (url.endsWith('/1')) throw new ScrapeError('E_SERVER', 'it broke', { status: 503 })
        return ''
      })
      const { end, pages } = partsOf({ frontier, web, limits: { retries: 2 } })
      assert.deepEqual(await end(), { how: 'finished' })
      const failing = pages().filter(({ url }) => url.endsWith('/1'))
      assert.deepEqual(
        failing.map(({ outcome, attempt }) => `${outcome} ${attempt}`),
        ['retried 1', 'retried 2', 'failed 3'],
      )
      const [letter, ...others] = await frontier.dead.list()
      assert.equal(others.length, 0)
      assert.deepEqual(
        [letter!.task.url, letter!.attempts, letter!.error.code, letter!.error.status],
        ['https://a.test/1', 3, 'E_SERVER', 503],
      )
      assert.equal((await frontier.stats()).completed, 2)
    })

    it('keeps the page a handler failed on, and continues with the others', async () => {
      await using frontier = await frontierWith(engine, 3)
      const { end } = partsOf({
        frontier,
        web: new FakeWeb((url) => `text of ${url}`),
        handler({ url }) {
          if (url.pathname === '/1') throw new TypeError('a bug')
        },
      })
      assert.deepEqual(await end(), { how: 'finished' })
      const [letter] = await frontier.dead.list()
      assert.deepEqual([letter!.error.code, letter!.error.message], ['E_HANDLER', 'TypeError: a bug'])
      assert.equal(letter!.snapshot, 'https://a.test/1 text of https://a.test/1')
      assert.equal((await frontier.stats()).completed, 2)
    })

    it('charges no attempt for “later”', async () => {
      await using frontier = await frontierWith(engine, 1)
      const web = new FakeWeb((_url, _signal, nth) => {
        if (nth <= 5) throw new ScrapeError('E_RATE_LIMITED', 'slow down', { retryAfterMs: 0 })
        return ''
      })
      const { end, pages } = partsOf({ frontier, web, limits: { retries: 1 } })
      assert.deepEqual(await end(), { how: 'finished' })
      assert.deepEqual(
        pages().map(({ outcome, attempt }) => `${outcome} ${attempt}`),
        [...Array(5).fill('postponed 1'), 'ok 1'],
      )
    })

    it('waits for a task that is due later and then visits it', async () => {
      await using frontier = await frontierWith(engine, 0)
      const dueMs = Date.now() + 60
      await frontier.add([{ url: 'https://a.test/later', route: 'page', depth: 0, notBeforeMs: dueMs }])
      let atMs = 0
      const web = new FakeWeb(() => {
        atMs = Date.now()
        return ''
      })
      assert.deepEqual(await partsOf({ frontier, web }).end(), { how: 'finished' })
      assert.ok(atMs >= dueMs)
    })

    it('halts when a handler says stop, hands everything back, and can be resumed later', async () => {
      await using frontier = await frontierWith(engine, 20)
      let isClosed = true
      const handler: Handler = ({ url, stop }) => {
        if (isClosed && url.pathname === '/5') stop('the shop is closed')
      }
      // Another page hangs: the end must not wait for it.
      const web = new FakeWeb((url, signal) => (isClosed && url.endsWith('/6') ? never(signal) : ''))
      const error = errorOf(await partsOf({ frontier, web, handler, concurrency: 2 }).end())
      assert.deepEqual([error.code, error.message], ['E_STOPPED', 'the shop is closed'])
      const stats = await frontier.stats()
      assert.equal(stats.claimed, 0)
      assert.equal(stats.completed + stats.pending, 20)
      assert.ok(stats.pending >= 2, 'the page that said stop, and the one that hung')
      isClosed = false
      const again = partsOf({ frontier, handler })
      assert.deepEqual(await again.end(), { how: 'finished' })
      assert.equal((await frontier.stats()).completed, 20)
      assert.deepEqual(new Set(again.pages().map(({ attempt }) => attempt)), new Set([1]))
    })

    it('gives requests in flight time to finish when it is stopped', async () => {
      await using frontier = await frontierWith(engine, 20)
      const stop = new AbortController()
      const afterStop = Promise.withResolvers<string>()
      const web: FakeWeb = new FakeWeb(() => {
        if (web.inFlight === 3) {
          stop.abort()
          setImmediate(() => afterStop.resolve(''))
        }
        return afterStop.promise
      })
      assert.deepEqual(await partsOf({ frontier, web, concurrency: 3 }).end(stop.signal), { how: 'stopped' })
      const { completed, pending, claimed } = await frontier.stats()
      assert.deepEqual([completed, pending, claimed], [3, 17, 0])
      assert.equal(web.asked.length, 3)
    })

    it('hands back requests that never finish within drainMs, without charging an attempt', async () => {
      await using frontier = await frontierWith(engine, 20)
      const stop = new AbortController()
      const web: FakeWeb = new FakeWeb((_url, signal) => {
        if (web.inFlight === 3) stop.abort()
        return never(signal)
      })
      const { end, pages } = partsOf({ frontier, web, concurrency: 3, drainMs: 30 })
      assert.deepEqual(await end(stop.signal), { how: 'stopped' })
      const { completed, pending, claimed, failed } = await frontier.stats()
      assert.deepEqual([completed, pending, claimed, failed], [0, 20, 0, 0])
      assert.deepEqual(pages(), [])
      assert.equal(web.inFlight, 0)
      const leases = await frontier.claim({ max: 20, workerId: 'w2', leaseMs: 1000 })
      assert.equal(leases.length, 20)
      assert.ok(leases.every(({ attempt, losses }) => attempt === 1 && losses === 0))
    })

    it('ends with the error of a commit that fails, without waiting for pages that never answer', async () => {
      await using inner = await frontierWith(engine, 20)
      const full = new ScrapeError('E_OUTPUT', 'disk full')
      const frontier = over(inner, { commit: () => Promise.reject(full) })
      const web = new FakeWeb((url, signal) => (url.endsWith('/0') ? '' : never(signal)))
      assert.equal(errorOf(await partsOf({ frontier, web }).end()), full)
      assert.equal(web.inFlight, 0)
    })

    it('ends with the error of a commit that fails while the channel is full', async () => {
      await using inner = await frontierWith(engine, 100)
      const isFull = Promise.withResolvers<void>()
      const channel = new Channel<Settled>(1)
      const push = channel.push.bind(channel)
      channel.push = (settled) => {
        const waiting = push(settled)
        if (waiting !== undefined) isFull.resolve()
        return waiting
      }
      const broken = new Error('connection lost')
      const frontier = over(inner, {
        async commit() {
          await isFull.promise
          throw broken
        },
      })
      const { end, web } = partsOf({ frontier, channel })
      assert.equal(errorOf(await end()).cause, broken)
      assert.ok(web.asked.length < 20, `${web.asked.length} requests went out although nothing was committed`)
    })

    it('ends with the error of a claim that fails, the first one or a later one', async () => {
      for (const failing of [1, 3]) {
        await using inner = await frontierWith(engine, 30)
        const broken = new Error('connection lost')
        let claims = 0
        const frontier = over(inner, {
          claim: (request) => (++claims === failing ? Promise.reject(broken) : inner.claim({ ...request, max: 2 })),
        })
        // The last page handed out never answers: the end must not wait for it.
        const web = new FakeWeb((url, signal) => (url.endsWith('/3') ? never(signal) : ''))
        const error = errorOf(await partsOf({ frontier, web }).end())
        assert.deepEqual([error.code, error.cause], ['E_SERVICE', broken])
        assert.equal((await inner.stats()).claimed, 0)
        assert.equal(web.inFlight, 0)
      }
    })

    it('ends with the error of a heartbeat that fails', async () => {
      await using inner = await frontierWith(engine, 1)
      const broken = new Error('connection lost')
      const frontier = over(inner, { extend: () => Promise.reject(broken) })
      const web = new FakeWeb((_url, signal) => never(signal))
      assert.equal(errorOf(await partsOf({ frontier, web, leaseMs: 15 }).end()).cause, broken)
    })

    it('keeps the leases of slow pages alive', async () => {
      await using inner = await frontierWith(engine, 2)
      const beats: number[] = []
      const third = Promise.withResolvers<string>()
      const frontier = over(inner, {
        extend(leases: readonly Lease[], leaseMs: number) {
          if (beats.push(leases.length) === 3) third.resolve('')
          return inner.extend(leases, leaseMs)
        },
      })
      const web = new FakeWeb(() => third.promise)
      const { end, events } = partsOf({ frontier, web, leaseMs: 150, concurrency: 1 })
      assert.deepEqual(await end(), { how: 'finished' })
      assert.deepEqual(beats.slice(0, 3), [2, 2, 2], 'the one in flight and the one that waits')
      assert.equal(
        events.some(({ type }) => type === 'lease.lost'),
        false,
      )
      assert.equal((await frontier.stats()).completed, 2)
    })

    it('ignores the outcome of a lease it lost, and visits the page again', async () => {
      await using frontier = await frontierWith(engine, 1)
      const answered = Promise.withResolvers<string>()
      const web = new FakeWeb((url, _signal, nth) => {
        if (nth > 1 || !url.endsWith('/0')) return 'second'
        void frontier.sweep({ lossesMax: 3, workerIds: 'all' }).then(() => answered.resolve('first'))
        return answered.promise
      })
      const { end, pages } = partsOf({
        frontier,
        web,
        concurrency: 1,
        async handler({ html, depth, emit, enqueue }) {
          if (depth > 0) return
          await emit({ id: '1', version: html })
          await enqueue('page', `/found-by-${html}`)
        },
      })
      assert.deepEqual(await end(), { how: 'finished' })
      assert.deepEqual(await titlesOf(frontier), [{ id: '1', version: 'second' }])
      assert.deepEqual(web.asked, ['https://a.test/0', 'https://a.test/0', 'https://a.test/found-by-second'])
      assert.deepEqual(
        pages().map(({ url, outcome, attempt }) => `${url.slice(15)} ${outcome} ${attempt}`),
        ['0 stale 1', '0 ok 1', 'found-by-second ok 1'],
      )
      assert.equal((await frontier.stats()).completed, 2)
    })

    it('reports leases that the heartbeat finds lost', async () => {
      await using frontier = await frontierWith(engine, 1)
      const noticed = Promise.withResolvers<string>()
      const web = new FakeWeb(async (_url, _signal, nth) => {
        if (nth > 1) return ''
        await frontier.sweep({ lossesMax: 3, workerIds: 'all' })
        return noticed.promise
      })
      const { end, events } = partsOf({
        frontier,
        web,
        concurrency: 1,
        leaseMs: 90,
        onEvent: (event) => event.type === 'lease.lost' && noticed.resolve(''),
      })
      assert.deepEqual(await end(), { how: 'finished' })
      const lost = events.filter(({ type }) => type === 'lease.lost')
      assert.deepEqual(lost[0], { type: 'lease.lost', url: 'https://a.test/0', count: 1 })
      assert.equal((await frontier.stats()).completed, 1)
    })

    it('runs a suspect alone', async () => {
      await using frontier = await frontierWith(engine, 12)
      const taken = await frontier.claim({ max: 3, workerId: 'dead', leaseMs: 60_000 })
      await frontier.sweep({ lossesMax: 3, workerIds: ['dead'] })
      const suspects = new Set(taken.map(({ task }) => task.url))
      const company: number[] = []
      const web: FakeWeb = new FakeWeb(async (url) => {
        const others = () => web.inFlight - 1
        if (!suspects.has(url)) return ''
        company.push(others())
        await new Promise(setImmediate) // time for the loop to start another one, if it were going to
        company.push(others())
        return ''
      })
      assert.deepEqual(await partsOf({ frontier, web }).end(), { how: 'finished' })
      assert.deepEqual(company, [0, 0, 0, 0, 0, 0])
      assert.ok(web.inFlightMost > 1, 'the others run together')
      assert.equal((await frontier.stats()).completed, 12)
    })

    it('gives back leases of a host that is paused for long, and serves the other hosts', async () => {
      await using frontier = await frontierWith(engine, 3)
      await frontier.add(seeds(3, 'paused.test'))
      const stop = new AbortController()
      const rateLimit: RateLimit = {
        ...freeHosts,
        // It is paused only after its tasks were claimed.
        waitMs: (host) => (host === 'paused.test' ? (web.asked.length === 0 ? 1 : 30_000) : 0),
        busyHosts: () => (web.asked.length === 0 ? [] : ['paused.test']),
      }
      const { end, web } = partsOf({
        frontier,
        rateLimit,
        onEvent: async ({ type }) => {
          if (type !== 'committed') return
          const { completed, claimed } = await frontier.stats()
          if (completed === 3 && claimed === 0) stop.abort()
        },
      })
      assert.deepEqual(await end(stop.signal), { how: 'stopped' })
      assert.deepEqual(web.asked.toSorted(), ['https://a.test/0', 'https://a.test/1', 'https://a.test/2'])
      assert.equal((await frontier.stats()).pending, 3)
    })

    it('requests a host again when its wait is over', async () => {
      await using frontier = await frontierWith(engine, 3)
      let freeAtMs = 0
      const rateLimit: RateLimit = { ...freeHosts, waitMs: () => Math.max(0, freeAtMs - performance.now()) }
      const startsMs: number[] = []
      const web = new FakeWeb(() => '')
      const fetch = web.fetch.bind(web)
      web.fetch = (request, signal) => {
        startsMs.push(performance.now())
        freeAtMs = performance.now() + 20
        return fetch(request, signal)
      }
      assert.deepEqual(await partsOf({ frontier, web, rateLimit }).end(), { how: 'finished' })
      assert.equal(startsMs.length, 3)
      assert.ok(startsMs[1]! - startsMs[0]! >= 20 && startsMs[2]! - startsMs[1]! >= 20)
    })

    it('waits for the sinks if they are too far behind, and continues when they have caught up', async () => {
      await using frontier = await frontierWith(engine, 60)
      const isFull = Promise.withResolvers<void>()
      const channel = new Channel<Settled>(2)
      const push = channel.push.bind(channel)
      let isBehind = false
      let commitsBehind = 0
      channel.push = (settled) => {
        const waiting = push(settled)
        if (waiting !== undefined && isBehind) isFull.resolve()
        return waiting
      }
      const { end, web } = partsOf({
        frontier,
        channel,
        backlogMax: 5,
        handler: ({ url, emit }) => emit({ id: url.pathname, version: '1' }),
        onEvent: (event) => {
          if (event.type !== 'committed') return
          if (isBehind) commitsBehind++
          isBehind = event.backlog > 5
        },
      })
      const ended = end()
      await isFull.promise
      assert.equal(commitsBehind, 0)
      assert.ok(web.asked.length < 50, `${web.asked.length} asked`)
      const confirming = setInterval(() => {
        isBehind = false
        void frontier.items.confirm(1000, {})
      }, 5)
      assert.deepEqual(await ended, { how: 'finished' })
      clearInterval(confirming)
      assert.equal((await frontier.stats()).completed, 60)
    })

    it('does not wait for the sinks when it is stopped', async () => {
      await using frontier = await frontierWith(engine, 50)
      const stop = new AbortController()
      const { end } = partsOf({
        frontier,
        backlogMax: 3,
        handler: ({ url, emit }) => emit({ id: url.pathname, version: '1' }),
        onEvent: (event) => event.type === 'committed' && event.backlog > 3 && stop.abort(),
      })
      assert.deepEqual(await end(stop.signal), { how: 'stopped' })
      const { completed, items, claimed } = await frontier.stats()
      assert.deepEqual([items, claimed], [completed, 0])
    })

    it('does not count the outcome of a lost lease as a page', async () => {
      await using frontier = await frontierWith(engine, 4)
      const web = new FakeWeb(async (url, _signal, nth) => {
        if (nth === 1 && url.endsWith('/0')) await frontier.sweep({ lossesMax: 3, workerIds: 'all' })
        return ''
      })
      assert.deepEqual(await partsOf({ frontier, web, concurrency: 1, pagesMax: 2 }).end(), { how: 'limit' })
      assert.equal((await frontier.stats()).completed, 2)
    })

    it('keeps the new lease of a page when the heartbeat finds the old one lost', async () => {
      await using frontier = await frontierWith(engine, 1)
      const noticed = Promise.withResolvers<string>()
      let onFree = () => {}
      const web: FakeWeb = new FakeWeb(async (_url, _signal, nth) => {
        if (nth > 1) return ''
        await frontier.sweep({ lossesMax: 3, workerIds: 'all' })
        onFree() // the loop claims the page again, and must wait for its host
        return noticed.promise
      })
      const rateLimit: RateLimit = {
        ...freeHosts,
        waitMs: () => (web.inFlight > 0 ? Number.POSITIVE_INFINITY : 0),
        onFree: (listener) => {
          onFree = listener
        },
      }
      const { end, pages } = partsOf({
        frontier,
        web,
        rateLimit,
        concurrency: 2,
        leaseMs: 90,
        onEvent: (event) => event.type === 'lease.lost' && noticed.resolve(''),
      })
      assert.deepEqual(await end(), { how: 'finished' })
      assert.deepEqual(
        pages().map(({ outcome }) => outcome),
        ['stale', 'ok'],
      )
    })

    it('waits while the frontier is paused, and continues soon after it is resumed', async () => {
      await using inner = await frontierWith(engine, 5)
      await inner.pause('by hand')
      let emptyClaims = 0
      const frontier = over(inner, {
        async claim(request) {
          const leases = await inner.claim(request)
          if (leases.length === 0 && ++emptyClaims === 2) {
            assert.equal(web.asked.length, 0)
            setImmediate(() => void inner.resume())
          }
          return leases
        },
      })
      const { end, web } = partsOf({ frontier })
      assert.deepEqual(await end(), { how: 'finished' })
      assert.equal(web.asked.length, 5)
      assert.ok(emptyClaims >= 2)
    })

    it('reports nothing in flight when it is over', async () => {
      await using frontier = await frontierWith(engine, 5)
      const { end, events } = partsOf({ frontier })
      await end()
      const reports = events.filter((event): event is EventOf<'worker.in-flight'> => event.type === 'worker.in-flight')
      assert.deepEqual([reports.at(-1)!.inFlight, reports.at(-1)!.workerId], [0, 'w1'])
      assert.equal(events.at(-1), reports.at(-1))
    })
  })
}

describe('a crawl on a shared frontier', () => {
  it('shares the work with another loop without doing any of it twice', async () => {
    const file = newFile()
    await using first = await openFrontier(`sqlite:${file}`)
    await using second = await openFrontier(`sqlite:${file}`)
    await first.add(seeds(60))
    // There is no answer before both are working, so both do some of the work.
    const atWork = new Set<string>()
    const both = Promise.withResolvers<string>()
    const webOf = (name: string) =>
      new FakeWeb(() => {
        if (atWork.add(name).size === 2) both.resolve('')
        return both.promise
      })
    const handler: Handler = async ({ url, depth, emit, enqueue }) => {
      await emit({ id: url.pathname, version: '1' })
      if (depth === 0) await enqueue('page', `${url.pathname}/more`)
    }
    const one = partsOf({ frontier: first, web: webOf('w1'), handler, workerId: 'w1' })
    const other = partsOf({ frontier: second, web: webOf('w2'), handler, workerId: 'w2' })
    assert.deepEqual(await Promise.all([one.end(), other.end()]), [{ how: 'finished' }, { how: 'finished' }])
    const asked = [...one.web.asked, ...other.web.asked]
    assert.equal(asked.length, 120)
    assert.equal(new Set(asked).size, 120)
    assert.ok(one.web.asked.length > 0 && other.web.asked.length > 0)
    const { completed, items, remaining } = await first.stats()
    assert.deepEqual([completed, items, remaining], [120, 120, 0])
    assert.equal([...one.pages(), ...other.pages()].filter(({ outcome }) => outcome === 'ok').length, 120)
  })

  it('takes over tasks that another loop handed back', async () => {
    const file = newFile()
    await using first = await openFrontier(`sqlite:${file}`)
    await using second = await openFrontier(`sqlite:${file}`)
    await first.add(seeds(10))
    const stop = new AbortController()
    const stuck: FakeWeb = new FakeWeb((_url, signal) => {
      if (stuck.inFlight === 4) stop.abort()
      return never(signal)
    })
    const leaving = partsOf({ frontier: first, web: stuck, workerId: 'w1', drainMs: 10 })
    const staying = partsOf({ frontier: second, workerId: 'w2' })
    const left = await leaving.end(stop.signal)
    assert.deepEqual([left, await staying.end()], [{ how: 'stopped' }, { how: 'finished' }])
    assert.equal(staying.web.asked.length, 10)
    assert.deepEqual(new Set(staying.pages().map(({ attempt }) => attempt)), new Set([1]))
  })
})

describe('a pause', () => {
  it('takes effect on tasks that were claimed but not started', async () => {
    await using frontier = await frontierWith('memory:', 400)
    const web = new FakeWeb(async () => {
      if (web.asked.length === 5) await frontier.pause('lunch')
      await new Promise((resolve) => setTimeout(resolve, 5))
      return ''
    })
    const { end } = partsOf({ frontier, web, concurrency: 1, claimMax: () => 400 })
    const ended = end()
    for (;;) {
      const { isPaused, claimed } = await frontier.stats()
      if (isPaused && claimed === 0) break
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    assert.ok(web.asked.length < 390, 'all that was claimed was fetched')
    await frontier.resume()
    assert.deepEqual(await ended, { how: 'finished' })
    assert.equal(web.asked.length, 400)
  })
})

describe('lanes', () => {
  const manual = (n: number) => ({ url: `https://a.test/manual/${n}`, route: 'page', depth: 0, lane: 'manual' })
  const isManual = (url: string) => url.includes('/manual/')

  it('fetches manual tasks before those it has already claimed', async () => {
    await using frontier = await frontierWith('memory:', 400)
    const web = new FakeWeb(async () => {
      if (web.asked.length === 5) await frontier.add([manual(1)])
      await new Promise((resolve) => setTimeout(resolve, 5))
      return ''
    })
    const { end } = partsOf({ frontier, web, concurrency: 1, claimMax: () => 400 })
    assert.deepEqual(await end(), { how: 'finished' })
    assert.equal(web.asked.length, 401)
    assert.ok(web.asked.findIndex(isManual) < 390, 'the manual page was fetched last')
  })

  it('claims no more manual tasks than it can handle', async () => {
    await using frontier = await frontierWith('memory:', 10)
    await frontier.add(Array.from({ length: 200 }, (_, n) => manual(n)))
    const web = new FakeWeb((_, signal) => never(signal))
    const { end } = partsOf({ frontier, web, concurrency: 2, claimMax: () => 4, drainMs: 0 })
    const stop = new AbortController()
    const ended = end(stop.signal)
    await new Promise((resolve) => setTimeout(resolve, 1_600)) // three checks
    const { claimed } = await frontier.stats()
    stop.abort()
    await ended
    assert.ok(claimed <= 8, `${claimed} are claimed`)
  })

  it('does not let manual tasks starve the rest', async () => {
    await using frontier = await frontierWith('memory:', 20)
    await frontier.add(Array.from({ length: 400 }, (_, n) => manual(n)))
    const { end, web } = partsOf({ frontier, concurrency: 1, claimMax: () => 4 })
    assert.deepEqual(await end(), { how: 'finished' })
    const places = web.asked.flatMap((url, place) => (isManual(url) ? [] : [place]))
    assert.equal(places.length, 20)
    assert.ok(places[0]! < 100 && places.at(-1)! < 400, `bulk pages were fetched at ${places.join(' ')}`)
  })

  it('continues if everything it held was done while it looked for manual tasks', async () => {
    await using frontier = await frontierWith('memory:', 3)
    const { promise: looksFor, resolve: look } = Promise.withResolvers<void>()
    const { promise: isDone, resolve: done } = Promise.withResolvers<void>()
    const slow = over(frontier, {
      async claim(request) {
        if (request.lanes?.[0] !== 'manual') return await frontier.claim(request)
        look()
        await isDone
        return []
      },
    })
    const web = new FakeWeb(async () => {
      await looksFor
      return ''
    })
    const { end, events } = partsOf({
      frontier: slow,
      web,
      concurrency: 1,
      onEvent(event) {
        const committed = events.reduce((sum, one) => sum + (one.type === 'committed' ? one.outcomes : 0), 0)
        if (event.type === 'committed' && committed === 2) setImmediate(done) // the third is still to be claimed
      },
    })
    assert.deepEqual(await end(), { how: 'finished' })
  })

  it('leaves files to the file workers, and does not end before they are stored', async () => {
    await using frontier = await frontierWith('memory:', 3)
    await frontier.add([{ url: 'https://a.test/file', route: '$file', depth: 0, lane: 'files' }])
    const { end, web, pages } = partsOf({ frontier })
    const ended = end()
    while (pages().length < 3) await new Promise(setImmediate)
    const [lease] = await frontier.claim({ max: 1, workerId: 'w2', leaseMs: 60_000, lanes: ['files'] })
    await frontier.commit([{ kind: 'done', lease: lease! }])
    assert.deepEqual(await ended, { how: 'finished' })
    assert.equal(web.asked.length, 3)
  })
})

describe('a crawl with a handler that never ends', () => {
  it('hands its page back after drainMs and a short grace period', async () => {
    await using frontier = await frontierWith('memory:', 5)
    const stop = new AbortController()
    const handler: Handler = () => {
      stop.abort()
      return new Promise(() => {})
    }
    assert.deepEqual(await partsOf({ frontier, handler, drainMs: 10, concurrency: 2 }).end(stop.signal), {
      how: 'stopped',
    })
    const { pending, claimed } = await frontier.stats()
    assert.deepEqual([pending, claimed], [5, 0])
  })
})
