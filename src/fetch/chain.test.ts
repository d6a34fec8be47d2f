/** The whole chain: which host is requested under which identity, and the effect of a block, a failure or per-site settings. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import type { ScrapeError } from '../core/errors.ts'
import { createEventBus, type RunEvent } from '../core/events.ts'
import { createJudge } from './block/to-error.ts'
import { createCircuit } from './circuit/circuit.ts'
import { createFetcher, type FetcherParts } from './fetcher.ts'
import { openHttp } from './http/http.ts'
import { createIdentities } from './identity/identities.ts'
import { identityOf } from './identity/with-identity.ts'
import { createRateLimit } from './rate/rate-limit.ts'

const never = new AbortController().signal

async function given(
  t: TestContext,
  handler: (request: IncomingMessage, response: ServerResponse) => void,
  parts: Partial<FetcherParts> = {},
) {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const http = openHttp({
    userAgent: 'MyBot/1.0 (+https://example.com)',
    timeoutMs: 5000,
    connectTimeoutMs: 5000,
    bodyBytesMax: 1e6,
    redirectsMax: 10,
    connectionsPerHost: 8,
    retryAfterMsMax: 60_000,
    allowPrivate: true,
    allowAddresses: [],
  })
  const bus = createEventBus()
  const events: RunEvent[] = []
  bus.on((event) => events.push(event))
  const perHost = { concurrency: 8, rps: 0, delayMs: 0 }
  const rateLimit = createRateLimit({ perHost, concurrency: 8, crawlDelayMsMax: 0 })
  const judge = createJudge({ retryAfterMsMax: 60_000, events: bus })
  const identities = createIdentities({ mode: 'browser', events: bus })
  const chain = { http, rateLimit, judge, identities, events: bus, retryAfterMsMax: 60_000, ...parts }
  const fetcher = createFetcher(chain)
  t.after(async () => {
    identities[Symbol.dispose]()
    await fetcher[Symbol.asyncDispose]()
    rateLimit[Symbol.dispose]()
    await http[Symbol.asyncDispose]()
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const failure = async (at = url) => (await fetcher.fetch({ url: at }, never).catch((error) => error)) as ScrapeError
  return { fetcher, events, url, failure }
}

const CHALLENGE =
  '<html><head><title>Just a moment...</title></head><body><script src="/cdn-cgi/challenge-platform/x"></script></body></html>'

test('a challenge instead of a page retires the identity that met it, and the next attempt uses another one', async (t) => {
  const agents: string[] = []
  const { fetcher, events, url, failure } = await given(t, (request, response) => {
    agents.push(request.headers['user-agent']!)
    if (agents.length === 1)
      response.writeHead(403, { 'cf-mitigated': 'challenge', 'content-type': 'text/html' }).end(CHALLENGE) // biome-ignore format: one line
    else response.writeHead(200, { 'content-type': 'text/html' }).end('<p>a page</p>')
  })
  const error = await failure()
  assert.deepEqual([error.code, error.verdict], ['E_CAPTCHA', 'rotate'])
  const page = await fetcher.fetch({ url }, never)
  assert.notEqual(agents[0], agents[1])
  assert.notEqual(identityOf(page), identityOf(error))
  assert.deepEqual(
    events.map(({ type }) => type),
    ['blocked', 'identity.retired'],
    'told once each',
  )
  assert.equal(events.find((event) => event.type === 'blocked')!.vendor, 'cloudflare')
})

test('a block page with status 200 is a block, and does not count as an answer of the host', async (t) => {
  const { failure, events } = await given(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(CHALLENGE)
  })
  const error = await failure()
  assert.equal(error.code, 'E_CAPTCHA')
  assert.deepEqual(events.filter(({ type }) => type === 'blocked').length, 1)
})

test('a host that only fails is left alone, and no attempt is charged for that', async (t) => {
  let asked = 0
  const circuit = createCircuit({ openAfter: 3 })
  const { failure, url } = await given(
    t,
    (_request, response) => {
      asked++
      response.writeHead(500).end()
    },
    { circuit },
  )
  for (let i = 0; i < 3; i++) assert.equal((await failure(`${url}${i}`)).code, 'E_SERVER')
  const error = await failure()
  assert.deepEqual([error.code, error.verdict, asked], ['E_CIRCUIT_OPEN', 'later', 3])
})

test('robots.txt is obeyed under our own name, whatever identity requests the page', async (t) => {
  const agents: string[] = []
  const { failure, url } = await given(
    t,
    (request, response) => {
      agents.push(`${request.url} ${request.headers['user-agent']}`)
      response.end('User-agent: MyBot\nDisallow: /private\n\nUser-agent: *\nAllow: /\n')
    },
    { robots: { userAgent: 'MyBot/1.0 (+https://example.com)' } },
  )
  assert.equal((await failure(`${url}private`)).code, 'E_ROBOTS')
  assert.deepEqual(agents.length, 1)
})

test('a site with its own settings is requested at its own pace, drawn from a range', async () => {
  let chance = 0
  const rateLimit = createRateLimit({
    perHost: { concurrency: 8, rps: 0, delayMs: 0 },
    concurrency: 8,
    crawlDelayMsMax: 0,
    siteOf: (host) => (host === 'slow.test' ? { concurrency: 1, delayMs: [2000, 6000] } : undefined),
    monotonicNow: () => 1000,
    setTimer: () => () => {},
    random: () => chance,
  })
  const gapMs = async (host: string) => {
    const slot = await rateLimit.acquire(host, never)
    const whileBusy = rateLimit.waitMs(host)
    slot[Symbol.dispose]()
    return [whileBusy, rateLimit.waitMs(host)]
  }
  assert.deepEqual(await gapMs('slow.test'), [Number.POSITIVE_INFINITY, 2000])
  assert.deepEqual(await gapMs('other.test'), [0, 0])
  rateLimit[Symbol.dispose]()
  chance = 0.75
  const again = createRateLimit({
    perHost: { concurrency: 1, rps: 0, delayMs: [2000, 6000] },
    concurrency: 8,
    crawlDelayMsMax: 0,
    monotonicNow: () => 1000,
    random: () => chance,
  })
  ;(await again.acquire('a.test', never))[Symbol.dispose]()
  assert.equal(again.waitMs('a.test'), 5000)
  again[Symbol.dispose]()
})
