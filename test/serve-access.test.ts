/** Access to a real server: keys created and revoked while it runs, streams, and trusted proxies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FRESH_MS } from '../src/app/serve/access/known-keys.ts'
import { LOOK_EVERY_MS } from '../src/server/api/open-streams.ts'
import { until } from './fleet.ts'
import { startServe } from './serve.ts'
import { startBooksSite } from './site/books.ts'
import { sluice, temporaryFolder } from './sluice.ts'

test('locks out everyone without a key once the first exists, and ends the stream of a revoked key', async () => {
  using folder = temporaryFolder()
  const cwd = folder.path
  await using site = await startBooksSite({ products: 100, misbehave: false })
  await using server = await startServe(['--allow-address', new URL(site.url).host], { cwd })
  const ask = (path: string, key?: string, init: RequestInit = {}) => {
    const json = init.body === undefined ? {} : { 'content-type': 'application/json' }
    const headers = { ...json, ...(key && { authorization: `bearer ${key}` }) }
    return fetch(server.url + path, { ...init, headers })
  }
  const status = async (path: string, key?: string) => {
    const response = await ask(path, key)
    await response.body?.cancel()
    return response.status
  }
  const slow = { scraper: 'books', args: { site: site.url, details: true }, limits: { perHost: { rps: 1 } } }
  const started = await ask('/v1/runs', undefined, { method: 'POST', body: JSON.stringify(slow) })
  const { url } = (await started.json()) as { url: string }
  const open = (await ask(`${url}/events`)).body!.getReader()
  await open.read()

  const make = async (name: string, role: string) =>
    JSON.parse((await sluice(['key', 'create', name, '--role', role, '--json'], { cwd })).stdout)
  const admin = await make('admin', 'admin')
  assert.equal(await status('/v1/runs'), 401, 'also for requests from this machine')
  assert.equal(await status('/v1/runs', admin.key), 200)
  assert.deepEqual([await status('/livez'), await status('/healthz'), await status('/readyz')], [200, 200, 200])
  await assert.rejects(readAll(open), 'a stream that was opened without a key')

  const watcher = await make('watcher', 'read')
  const events = (await ask(`${url}/events`, watcher.key)).body!.getReader()
  await events.read()
  await sluice(['key', 'revoke', watcher.id], { cwd })
  await assert.rejects(readAll(events))
  assert.ok(
    FRESH_MS + LOOK_EVERY_MS < 5_000,
    'what is known of keys is so old at most, and streams are looked at so often',
  )

  const wrong = await ask('/v1/runs', watcher.key)
  assert.match(((await wrong.json()) as { detail: string }).detail, /unknown or revoked/)
  await ask(`${url}/cancel`, admin.key, { method: 'POST' })
  await until('it is over', async () => {
    const { isAlive } = (await (await ask(url, admin.key)).json()) as { isAlive: boolean }
    return !isAlive
  })
})

async function readAll(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}

test('logs at its start who needs a key, and trusts a proxy in --trust-proxy', async () => {
  using folder = temporaryFolder()
  const cwd = folder.path
  const env = { SLUICE_API_KEY: 'the-key-of-the-admin' }
  const flags = ['--no-key-on-loopback', '--trust-proxy', '127.0.0.1']
  const server = await startServe(flags, { cwd, env })
  try {
    const headers = { authorization: `Bearer ${env.SLUICE_API_KEY}`, 'x-forwarded-for': '198.51.100.7, 203.0.113.9' }
    assert.equal((await fetch(`${server.url}/v1/webhooks/none/rotate-secret`, { method: 'POST', headers })).status, 404)
    assert.equal((await fetch(`${server.url}/v1/runs`)).status, 401, 'what comes from a proxy is not local')
    const lines = async () => JSON.parse((await sluice(['audit', '--json'], { cwd })).stdout).entries
    await until('both are written down', async () => (await lines()).length >= 2)
    const addresses = (await lines()).map(({ address, status }: { address: string; status: number }) => [
      status,
      address,
    ])
    assert.deepEqual(addresses, [
      [401, '127.0.0.1'],
      [404, '203.0.113.9'],
    ])
  } finally {
    await server[Symbol.asyncDispose]()
  }
  assert.match(
    (await server.result).stderr,
    /need no key \(--no-key-on-loopback\), all others do; requests from 127\.0\.0\.1 come through a proxy/,
  )
  const refused = await sluice(['serve', '--trust-proxy', 'localhost', '--port', '0'], { cwd })
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /--trust-proxy "localhost" is not an address/)
})
