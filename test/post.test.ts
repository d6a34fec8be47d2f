/** Routes that POST: what is sent over the wire, through redirects, past the cache, and into recorded pages. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createMemoryCache } from '../src/fetch/cache/cache.ts'
import { createFetcher } from '../src/fetch/fetcher.ts'
import { openHttp } from '../src/fetch/http/http.ts'
import { createRateLimit } from '../src/fetch/rate/rate-limit.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const never = new AbortController().signal

interface Asked {
  method: string
  url: string
  type: string | undefined
  body: string
}

/** Echoes a POST; `/303`, `/307`, `/308` and `/301` redirect to `/echo` with that status. */
async function api(t: TestContext) {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    asked.push({ method: request.method!, url: request.url!, type: request.headers['content-type'], body })
    const status = Number(/^\/(30\d)/.exec(request.url!)?.[1])
    if (status > 0) response.writeHead(status, { location: '/echo' }).end()
    else if (request.url === '/robots.txt') response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ got: body }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

function chain(t: TestContext) {
  const http = openHttp({
    userAgent: 'MyBot/1.0',
    timeoutMs: 5000,
    connectTimeoutMs: 5000,
    bodyBytesMax: 1e6,
    redirectsMax: 10,
    connectionsPerHost: 8,
    retryAfterMsMax: 1000,
    allowPrivate: true,
    allowAddresses: [],
  })
  const rateLimit = createRateLimit({
    perHost: { concurrency: 8, rps: 0, delayMs: 0 },
    concurrency: 8,
    crawlDelayMsMax: 0,
  })
  const fetcher = createFetcher({ http, rateLimit, cache: createMemoryCache(), retryAfterMsMax: 1000 })
  t.after(async () => {
    await fetcher[Symbol.asyncDispose]()
    await http[Symbol.asyncDispose]()
  })
  return fetcher
}

test('sends the JSON unchanged, and answers no second POST from the cache', async (t) => {
  const site = await api(t)
  const fetcher = chain(t)
  for (const offset of [0, 20]) {
    const page = await fetcher.fetch({ url: `${site.url}/echo`, post: { offset, q: 'Zürich' } }, never)
    assert.equal(JSON.parse(page.text).got, JSON.stringify({ offset, q: 'Zürich' }))
  }
  assert.deepEqual(
    site.asked.map(({ method, type }) => [method, type]),
    [
      ['POST', 'application/json'],
      ['POST', 'application/json'],
    ],
  )
})

for (const [status, expected] of [
  [301, 'GET'],
  [302, 'GET'],
  [303, 'GET'],
  [307, 'POST'],
  [308, 'POST'],
] as const) {
  test(`follows a ${status} with a ${expected}, as browsers do`, async (t) => {
    const site = await api(t)
    const page = await chain(t).fetch({ url: `${site.url}/${status}`, post: [1] }, never)
    assert.equal(page.url, `${site.url}/echo`)
    const last = site.asked.at(-1)!
    assert.equal(last.method, expected)
    assert.deepEqual([last.body, last.type], expected === 'POST' ? ['[1]', 'application/json'] : ['', undefined])
  })
}

const SCRAPER = (origin: string) => `
import { defineScraper } from ${JSON.stringify(fileURLToPath(new URL('../src/index.ts', import.meta.url)))}
import * as z from ${JSON.stringify(fileURLToPath(new URL('../node_modules/zod/index.js', import.meta.url)))}
export default defineScraper({
  name: 'search',
  item: z.object({ got: z.string() }),
  key: 'got',
  routes: { page: { post: 'query', data: z.object({ query: z.object({ offset: z.number() }), wanted: z.number().default(1) }) } },
  start: ({ enqueue }) => enqueue('page', { url: '${origin}/search', data: { query: { offset: 0 } } }),
  handlers: {
    async page({ json, emit, enqueue, data }) {
      await emit(json())
      const offset = data.query.offset + 20
      if (offset < 60) await enqueue('page', { url: '${origin}/search', data: { query: { offset } } })
    },
  },
})
`

test('crawls, records and replays many POST pages of one URL', async (t) => {
  const site = await api(t)
  using folder = temporaryFolder()
  const file = join(folder.path, 'search.ts')
  writeFileSync(file, SCRAPER(site.url))
  const run = await sluice(['run', file, '--record', '--rps', '0', '--quiet', '--out', folder.path])
  assert.equal(run.code, 0, run.stderr)
  assert.deepEqual(
    site.asked.filter(({ method }) => method === 'POST').map(({ body }) => body),
    ['{"offset":0}', '{"offset":20}', '{"offset":40}'],
  )
  const index = readFileSync(join(folder.path, 'search.pages/pages.jsonl'), 'utf8').trim().split('\n')
  assert.equal(new Set(index.map((line) => JSON.parse(line).file)).size, 3)
  const replayed = await sluice(['test', file])
  assert.equal(replayed.code, 0, replayed.stdout + replayed.stderr)
  assert.match(replayed.stdout, /3 (?:pages|recorded)|3\b/)
})

test('rejects a task without the field to send', async (t) => {
  const site = await api(t)
  using folder = temporaryFolder()
  const file = join(folder.path, 'search.ts')
  writeFileSync(file, SCRAPER(site.url).replace("post: 'query'", "post: 'quest'"))
  const run = await sluice(['run', file, '--quiet', '--out', folder.path])
  assert.notEqual(run.code, 0)
  assert.match(run.stderr + run.stdout, /no field "quest"/)
  assert.deepEqual(site.asked, [])
})
