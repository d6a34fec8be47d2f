import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import { createEventBus, type RunEvent } from '../core/events.ts'
import { createMemoryCache } from './cache/cache.ts'
import { createFetcher, type FetcherParts } from './fetcher.ts'
import { openHttp } from './http/http.ts'
import { createRateLimit, type RateLimitOptions } from './rate/rate-limit.ts'

const never = new AbortController().signal

type Handler = (request: IncomingMessage, response: ServerResponse) => void

/** A loopback site that records the requests it receives. */
async function site(t: TestContext, handler: Handler) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url!)
    handler(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return { asked, host, url: `http://${host}` }
}

interface Given extends Partial<Omit<FetcherParts, 'http' | 'rateLimit'>> {
  limit?: Partial<RateLimitOptions>
}

function given(t: TestContext, { limit, ...parts }: Given = {}) {
  const http = openHttp({
    userAgent: 'MyBot/1.0',
    timeoutMs: 2000,
    connectTimeoutMs: 2000,
    bodyBytesMax: 1e6,
    redirectsMax: 10,
    connectionsPerHost: 8,
    retryAfterMsMax: 3_600_000,
    allowPrivate: true,
    allowAddresses: [],
  })
  const rateLimit = createRateLimit({
    perHost: { concurrency: 8, rps: 0, delayMs: 0 },
    concurrency: 16,
    crawlDelayMsMax: 10_000,
    ...limit,
  })
  const events: RunEvent[] = []
  const bus = createEventBus()
  bus.on((event) => events.push(event))
  const fetcher = createFetcher({ http, rateLimit, events: bus, retryAfterMsMax: 3_600_000, ...parts })
  t.after(async () => {
    await fetcher[Symbol.asyncDispose]()
    rateLimit[Symbol.dispose]()
    await http[Symbol.asyncDispose]()
  })
  return { fetcher, rateLimit, events }
}

async function errorOf(promise: Promise<unknown>): Promise<ScrapeError> {
  const error = await promise.then(
    () => assert.fail('should have failed'),
    (e: unknown) => e,
  )
  assert.ok(error instanceof ScrapeError, String(error))
  return error
}

const answer =
  (robots: string, page: Handler = (_, response) => response.end('page')): Handler =>
  (request, response) =>
    request.url === '/robots.txt' ? response.end(robots) : page(request, response)

const robots = { userAgent: 'MyBot/1.0' }

test('requests robots.txt once, then the pages it allows', async (t) => {
  const { url, asked } = await site(t, answer('User-agent: *\nDisallow: /private'))
  const { fetcher } = given(t, { robots })
  const pages = await Promise.all(['/a', '/b'].map((path) => fetcher.fetch({ url: url + path }, never)))
  assert.deepEqual(
    pages.map((page) => page.text),
    ['page', 'page'],
  )
  const error = await errorOf(fetcher.fetch({ url: `${url}/private/x` }, never))
  assert.equal(error.code, 'E_ROBOTS')
  assert.deepEqual(asked.toSorted(), ['/a', '/b', '/robots.txt'])
})

test('takes its slot synchronously once the rules of the host are known', async (t) => {
  const { url, host } = await site(t, answer('User-agent: *\nDisallow: /private'))
  const { fetcher, rateLimit } = given(t, { robots, limit: { perHost: { concurrency: 1, rps: 0, delayMs: 0 } } })
  await fetcher.fetch({ url: `${url}/a` }, never)
  const fetching = fetcher.fetch({ url: `${url}/b` }, never)
  assert.equal(rateLimit.waitMs(host), Number.POSITIVE_INFINITY, 'or the crawl loop would start a second one')
  await fetching
})

test('does not request robots.txt when it is ignored', async (t) => {
  const { url, asked } = await site(t, answer('User-agent: *\nDisallow: /'))
  const { fetcher } = given(t)
  await fetcher.fetch({ url: `${url}/a` }, never)
  assert.deepEqual(asked, ['/a'])
})

test('leaves the crawl-delay of robots.txt between its requests', async (t) => {
  const { url } = await site(t, answer('User-agent: *\nCrawl-delay: 0.15'))
  const { fetcher } = given(t, { robots })
  const startedMs = performance.now()
  for (const path of ['/a', '/b']) await fetcher.fetch({ url: url + path }, never)
  assert.ok(performance.now() - startedMs >= 295, 'robots.txt, a and b: two gaps of 150 ms')
})

test('pauses a host that answers 429 for as long as the host says', async (t) => {
  const { url, host, asked } = await site(t, (_, response) => response.writeHead(429, { 'retry-after': '120' }).end())
  const { fetcher, rateLimit, events } = given(t)
  const error = await errorOf(fetcher.fetch({ url: `${url}/a` }, never))
  assert.equal(error.code, 'E_RATE_LIMITED')
  assert.equal(error.details.retryAfterMs, 120_000)
  assert.ok(rateLimit.waitMs(host) > 119_000)
  assert.deepEqual(
    events.map((event) => event.type === 'throttled' && [event.host, event.reason]),
    [[host, '429, Retry-After 120 s']],
  )
  const next = await errorOf(fetcher.fetch({ url: `${url}/b` }, never))
  assert.equal(next.verdict, 'later')
  assert.deepEqual(asked, ['/a'], 'the paused host was left alone')
})

test('pauses a host that answers 503 with Retry-After, and not one without', async (t) => {
  const { url, host } = await site(t, (request, response) => {
    response.writeHead(503, request.url === '/b' ? { 'retry-after': '60' } : {}).end()
  })
  const { fetcher, rateLimit } = given(t)
  assert.equal((await errorOf(fetcher.fetch({ url: `${url}/a` }, never))).code, 'E_SERVER')
  assert.equal(rateLimit.waitMs(host), 0)
  assert.equal((await errorOf(fetcher.fetch({ url: `${url}/b` }, never))).code, 'E_SERVER')
  assert.ok(rateLimit.waitMs(host) > 59_000)
})

test('gives a redirect the slot and the robots check of the host it leads to', async (t) => {
  const there = await site(t, answer('User-agent: *\nDisallow: /private'))
  const here = await site(
    t,
    answer('', (request, response) => response.writeHead(302, { location: there.url + request.url }).end()),
  )
  const { fetcher } = given(t, { robots })
  const page = await fetcher.fetch({ url: `${here.url}/open` }, never)
  assert.equal(page.url, `${there.url}/open`)
  const error = await errorOf(fetcher.fetch({ url: `${here.url}/private` }, never))
  assert.equal(error.code, 'E_ROBOTS')
  assert.deepEqual(there.asked, ['/robots.txt', '/open'])
})

test('checks a redirect within the host as well', async (t) => {
  const { url, asked } = await site(
    t,
    answer('User-agent: *\nDisallow: /private', (_, response) =>
      response.writeHead(302, { location: '/private' }).end(),
    ),
  )
  const { fetcher } = given(t, { robots })
  assert.equal((await errorOf(fetcher.fetch({ url: `${url}/a` }, never))).code, 'E_ROBOTS')
  assert.deepEqual(asked, ['/robots.txt', '/a'])
})

test('lets requests that lead to each other’s hosts through with one slot in all', async (t) => {
  let otherUrl = ''
  const a = await site(t, (request, response) =>
    request.url === '/end' ? response.end('a') : response.writeHead(302, { location: `${otherUrl}/end` }).end(),
  )
  const b = await site(t, (request, response) =>
    request.url === '/end' ? response.end('b') : response.writeHead(302, { location: `${a.url}/end` }).end(),
  )
  otherUrl = b.url
  const { fetcher } = given(t, { limit: { concurrency: 1, perHost: { concurrency: 1, rps: 0, delayMs: 0 } } })
  const urls = [a.url, b.url, a.url, b.url].map((url) => `${url}/start`)
  const pages = await Promise.all(urls.map((url) => fetcher.fetch({ url }, never)))
  assert.equal(pages.map((page) => page.text).join(''), 'baba')
})

test('pauses the host that answered, not the one that led to it', async (t) => {
  const there = await site(t, (_, response) => response.writeHead(429, { 'retry-after': '60' }).end())
  const here = await site(t, (_, response) => response.writeHead(302, { location: there.url }).end())
  const { fetcher, rateLimit } = given(t)
  await errorOf(fetcher.fetch({ url: `${here.url}/` }, never))
  assert.equal(rateLimit.waitMs(here.host), 0)
  assert.ok(rateLimit.waitMs(there.host) > 59_000)
})

test('answers a repeated request from the cache', async (t) => {
  const { url, asked } = await site(t, (_, response) => response.end('page'))
  const { fetcher } = given(t, { cache: createMemoryCache() })
  assert.equal((await fetcher.fetch({ url: `${url}/a` }, never)).fromCache, false)
  const again = await fetcher.fetch({ url: `${url}/a` }, never)
  assert.equal(again.fromCache, true)
  assert.equal(again.text, 'page')
  assert.deepEqual(asked, ['/a'])
})

test('fails with nothing but E_STOPPED when it is aborted, wherever it waits', async (t) => {
  const { url } = await site(t, () => {})
  for (const parts of [{}, { robots }]) {
    const { fetcher, rateLimit } = given(t, parts)
    const stop = new AbortController()
    const waiting = errorOf(fetcher.fetch({ url: `${url}/a` }, stop.signal))
    setImmediate(() => stop.abort())
    assert.equal((await waiting).code, 'E_STOPPED')
    await fetcher[Symbol.asyncDispose]()
    assert.deepEqual(rateLimit.busyHosts(), [])
  }
})
