import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { parseListenAddress, serveMetrics } from './serve-metrics.ts'

const metrics = { contentType: 'text/plain; version=0.0.4', render: async () => 'sluice_pages_total 1\n' }

/** fetch() does not allow setting the Host header. */
function get(
  url: string,
  host?: string | Record<string, string>,
  method = 'GET',
): Promise<{ status: number; type: string; body: string }> {
  return new Promise((resolve, reject) => {
    const headers = typeof host === 'string' ? { host } : (host ?? {})
    const sent = request(url, { method, agent: false, headers }, (response) => {
      let body = ''
      response.on('data', (chunk) => {
        body += chunk
      })
      response.on('end', () =>
        resolve({ status: response.statusCode!, type: response.headers['content-type'] ?? '', body }),
      )
    })
    sent.on('error', reject)
    sent.end()
  })
}

test('serves metrics and health on loopback', async () => {
  let nowMs = 0
  await using server = await serveMetrics({ address: ':0', metrics, health: () => ({ runId: 'r1' }), now: () => nowMs })
  assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  nowMs = 65_000
  const scraped = await get(`${server.url}/metrics`)
  assert.deepEqual(scraped, { status: 200, type: metrics.contentType, body: 'sluice_pages_total 1\n' })
  const health = await get(`${server.url}/healthz?x=1`)
  assert.deepEqual(JSON.parse(health.body), { status: 'ok', runId: 'r1', uptimeSeconds: 65 })
  assert.equal((await get(`${server.url}/other`)).status, 404)
  assert.equal((await get(`${server.url}/metrics`, undefined, 'POST')).status, 405)
})

test('is alive but not healthy while a service it needs is down', async () => {
  const never = { ...metrics, render: () => new Promise<string>(() => {}) }
  const health = () => ({ problem: 'the store did not answer for 90 s' })
  await using server = await serveMetrics({ address: ':0', metrics: never, health })
  const live = await get(`${server.url}/livez`)
  assert.deepEqual([live.status, JSON.parse(live.body)], [200, { status: 'ok' }])
  assert.equal((await get(`${server.url}/healthz`)).status, 503)
})

test('rejects a foreign host name that points to loopback', async () => {
  await using server = await serveMetrics({ address: '127.0.0.1:0', metrics })
  for (const host of [
    'evil.example',
    `evil.example:${server.port}`,
    '127.evil.example',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
  ]) {
    assert.ok([400, 403].includes((await get(`${server.url}/metrics`, host)).status), host)
  }
  for (const host of ['localhost', `localhost:${server.port}`, '127.0.0.1', '[::1]:9090']) {
    assert.equal((await get(`${server.url}/metrics`, host)).status, 200, host)
  }
})

test('rejects requests that a page of another site makes a browser send', async () => {
  await using server = await serveMetrics({ address: '127.0.0.1:0', metrics })
  for (const [name, value] of [
    ['sec-fetch-site', 'cross-site'],
    ['sec-fetch-site', 'same-site'],
    ['origin', 'null'],
  ] as const)
    assert.equal((await get(`${server.url}/metrics`, { [name]: value })).status, 403, value)
})

test('listens beyond loopback only when told to, and warns', async () => {
  const warnings: string[] = []
  await using server = await serveMetrics({ address: '0.0.0.0:0', metrics, warn: (line) => warnings.push(line) })
  assert.equal(warnings.length, 1)
  assert.equal((await get(`http://127.0.0.1:${server.port}/metrics`, 'scrape.internal')).status, 200)
})

test('says what to do when the port is taken', async () => {
  await using server = await serveMetrics({ address: ':0', metrics })
  await assert.rejects(
    serveMetrics({ address: `:${server.port}`, metrics }),
    (error: Error & { code: string; fix: string }) => {
      assert.equal(error.code, 'E_OPTION')
      assert.match(error.message, /is taken/)
      assert.match(error.fix, /--metrics :\d+/)
      return true
    },
  )
})

test('closes twice and at once, including open connections', async () => {
  const server = await serveMetrics({ address: ':0', metrics })
  await fetch(`${server.url}/metrics`).then((response) => response.text()) // keeps its connection alive
  await server.close()
  await server.close()
  await assert.rejects(get(`${server.url}/metrics`))
})

test('parses the usual spellings of an address and rejects the others', () => {
  assert.deepEqual(parseListenAddress(':9090'), { host: '127.0.0.1', port: 9090, isLoopback: true })
  assert.deepEqual(parseListenAddress('9090'), { host: '127.0.0.1', port: 9090, isLoopback: true })
  assert.deepEqual(parseListenAddress('[::1]:9090'), { host: '::1', port: 9090, isLoopback: true })
  assert.deepEqual(parseListenAddress('0.0.0.0:9090'), { host: '0.0.0.0', port: 9090, isLoopback: false })
  assert.equal(parseListenAddress('127.example.org:9090').isLoopback, false)
  for (const bad of ['', 'x', ':99999', 'http://a:1', ':-1', '127.0.0.1:']) {
    assert.throws(() => parseListenAddress(bad), { code: 'E_OPTION' }, bad)
  }
})

test('reports the state of the machine, whole and in parts', async () => {
  const report = { cpu: { usage: 0.5 }, memory: { freeBytes: 7 }, batchSize: 16, workerCapacity: 3 }
  await using server = await serveMetrics({ address: ':0', metrics, snapshot: async () => report })
  const json = async (path: string) => JSON.parse((await get(`${server.url}${path}`)).body)
  assert.deepEqual(await json('/snapshot'), report)
  assert.deepEqual(await json('/cpu'), { usage: 0.5 })
  assert.deepEqual(await json('/memory'), { freeBytes: 7 })
  assert.deepEqual(await json('/batch-size'), { batchSize: 16 })
  assert.deepEqual(await json('/worker-capacity'), { workerCapacity: 3 })
})
