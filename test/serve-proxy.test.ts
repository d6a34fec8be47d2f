/** A server behind a real nginx and a real Caddy, configured as in the how-to, and with nginx defaults. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { after, before, describe, it } from 'node:test'
import { blocksOf } from './docs/blocks.ts'
import { until } from './fleet.ts'
import { type Served, startServe } from './serve.ts'
import { caddyForTests } from './services/caddy.ts'
import { type Authority, type Certificate, createAuthority } from './services/certificates.ts'
import { nginxForTests } from './services/nginx.ts'
import { type BooksSite, startBooksSite } from './site/books.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const PAGE = 'docs/how-to/secure-a-deployment.md'
const NAME = 'sluice.internal'
/** Where the proxy's clients connect from: not the address of the proxy. */
const CLIENT = '127.0.0.3'
const OTHER_CLIENT = '127.0.0.4'

let folder: ReturnType<typeof temporaryFolder>
let site: BooksSite
let server: Served
let authority: Authority
let certificate: Certificate
let key: string
let events: string

before(async () => {
  folder = temporaryFolder()
  site = await startBooksSite({ products: 100, misbehave: false })
  authority = createAuthority()
  certificate = authority.sign(NAME, { alternatives: `DNS:${NAME}` })
  key = (await sluice(['key', 'create', 'admin', '--role', 'admin', '--quiet'], { cwd: folder.path })).stdout.trim()
  const flags = ['--trust-proxy', '127.0.0.1', '--allow-address', new URL(site.url).host]
  server = await startServe(flags, { cwd: folder.path })
  const slow = { scraper: 'books', args: { site: site.url, details: true }, limits: { perHost: { rps: 1 } } }
  const started = await fetch(`${server.url}/v1/runs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(slow),
  })
  events = `${((await started.json()) as { url: string }).url}/events`
})

after(async () => {
  await server[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
  authority[Symbol.dispose]()
  folder[Symbol.dispose]()
})

/** The block of the how-to that contains this mark, for the test's port, certificate and server. */
function documented(mark: RegExp, listen: [shown: string, real: string]): string {
  const found = blocksOf(PAGE, readFileSync(PAGE, 'utf8')).find(({ text }) => mark.test(text))!
  assert.ok(found.text.includes(listen[0]), listen[0])
  return found.text
    .replace(listen[0], listen[1])
    .replace(/\S+server\.pem/, certificate.cert)
    .replace(/\S+server\.key/, certificate.key)
    .replace('127.0.0.1:7700', new URL(server.url).host)
}

const asNginx = (port: number) => documented(/proxy_pass/, ['listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`])
const asCaddy = (port: number) =>
  documented(/reverse_proxy/, [`${NAME} {`, `https://${NAME}:${port} {\n  bind 127.0.0.1`])

interface Asked {
  key?: string
  method?: string
  headers?: Record<string, string>
  from?: string
  /** Disconnects once this much of the body has arrived. */
  enough?: (text: string) => boolean
}

function ask(port: number, path: string, asked: Asked = {}) {
  const { key: given, method = 'GET', headers = {}, from = CLIENT, enough } = asked
  const ca = readFileSync(authority.ca)
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method,
        servername: NAME,
        ca,
        localAddress: from,
        agent: false,
        headers: { host: NAME, ...(given && { authorization: `Bearer ${given}` }), ...headers },
      },
      (response) => {
        let text = ''
        const end = () => resolve({ status: response.statusCode!, text })
        response.setEncoding('utf8').on('data', (piece) => {
          text += piece
          if (enough?.(text) !== true) return
          end()
          sent.destroy()
        })
        response.once('end', end).once('error', reject)
      },
    )
    sent.once('error', reject).end()
  })
}

const addressesIn = async () => {
  const { stdout } = await sluice(['audit', '--json'], { cwd: folder.path })
  const entries = JSON.parse(stdout).entries as { status: number; address: string; action: string }[]
  return entries.map(({ status, address, action }) => `${status} ${address} ${action}`)
}

/** What must hold behind every proxy in the how-to. */
async function holds(port: number): Promise<void> {
  assert.equal((await ask(port, '/v1/runs')).status, 401)
  assert.equal((await ask(port, '/v1/audit', { key: 'slk_wrong' })).status, 401)
  const forged = { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=203.0.113.9', 'x-real-ip': '203.0.113.9' }
  assert.equal((await ask(port, '/v1/runs', { headers: forged })).status, 401)
  assert.equal((await ask(port, '/v1/runs', { key })).status, 200)
  assert.equal((await ask(port, '/livez')).status, 200)
  const path = '/v1/webhooks/none/rotate-secret'
  assert.equal((await ask(port, path, { key, method: 'POST', headers: forged })).status, 404)
  const isTold = (line: string) => line.startsWith(`404 ${CLIENT} POST`)
  await until('it is written down', async () => (await addressesIn()).some(isTold))
  assert.doesNotMatch((await addressesIn()).join('\n'), /203\.0\.113/, 'whatever the client says')
  // There is a page every second: two events arrive long before a buffering proxy has filled its buffer.
  const stream = await ask(port, events, { key, enough: (text) => text.split('\nevent: run').length > 2 })
  assert.equal(stream.status, 200)
}

describe('behind a proxy from the how-to', () => {
  it('nginx: a key is needed, the audit log has the client’s address, events arrive at once', async () => {
    await using nginx = await nginxForTests(asNginx)
    await holds(nginx.port)
  })

  it('Caddy: the same', async () => {
    await using caddy = await caddyForTests(asCaddy)
    await holds(caddy.port)
  })

  it('a flood from one address does not lock out others', async () => {
    await using nginx = await nginxForTests(asNginx)
    const from = OTHER_CLIENT
    for (let i = 0; i < 30; i++) await ask(nginx.port, '/v1/runs', { from })
    assert.equal((await ask(nginx.port, '/v1/runs', { from })).status, 429)
    assert.equal((await ask(nginx.port, '/v1/runs', { from, key })).status, 200)
    assert.equal((await ask(nginx.port, '/v1/runs')).status, 401)
    await until('it is written down', async () => (await addressesIn()).includes(`429 ${from} GET /v1/runs`))
  })
})

describe('behind nginx with its defaults', () => {
  it('needs a key once one exists, as without a proxy', async () => {
    using own = temporaryFolder()
    await using plain = await startServe([], { cwd: own.path })
    const { host } = new URL(plain.url)
    // biome-ignore format: one line reads better
    await using nginx = await nginxForTests((port) => `server { listen 127.0.0.1:${port} ssl; ssl_certificate ${certificate.cert}; ssl_certificate_key ${certificate.key}; location / { proxy_pass http://${host}; } }`)
    const made = (
      await sluice(['key', 'create', 'admin', '--role', 'admin', '--quiet'], { cwd: own.path })
    ).stdout.trim()
    assert.equal((await ask(nginx.port, '/v1/audit')).status, 401)
    assert.equal((await ask(nginx.port, '/v1/webhooks/x/rotate-secret', { method: 'POST' })).status, 401)
    assert.equal((await ask(nginx.port, '/v1/audit', { key: made })).status, 200)
  })
})
