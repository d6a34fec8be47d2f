/**
 * `--identity tls` as a user uses it: pages and robots.txt over the browser's handshake, and the error if its package is missing.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { AUTHORITY, CERTIFICATES } from './site/certificates.ts'
import { sluice, temporaryFolder } from './sluice.ts'

test('requests robots.txt and the page over HTTP/2, as a browser', async () => {
  using folder = temporaryFolder()
  const authority = join(folder.path, 'authority.pem')
  writeFileSync(authority, AUTHORITY)
  const asked: string[] = []
  const server = createSecureServer({ ...CERTIFICATES.good, allowHTTP1: true }, (request, response) => {
    asked.push(`${request.httpVersion} ${request.url} ${request.headers['user-agent']}`)
    response.setHeader('content-type', 'text/html')
    response.end(request.url === '/robots.txt' ? 'User-agent: *\n' : '<p>a page</p>')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `https://localhost:${(server.address() as AddressInfo).port}/`
  const env = { SSL_CERT_FILE: authority }
  const { code, stdout, stderr } = await sluice(['fetch', url, '--allow-private', '--identity', 'tls', '--json'], {
    env,
  })
  assert.equal(code, 0, stderr)
  assert.match(JSON.parse(stdout).as.profile, /^(?:chrome|edge|firefox|safari)-/)
  assert.equal(asked.length, 2)
  assert.match(asked[0]!, /^2\.0 \/robots\.txt Mozilla/)
  assert.match(asked[1]!, /^2\.0 \/ Mozilla/)
  const typed = await sluice(['fetch', url, '--identity', 'tls'], { env })
  assert.equal(typed.code, 0, typed.stderr)
  server.close()
})

test('says which package to install if it is missing, and requests nothing', async () => {
  const hook = `import { registerHooks } from 'node:module'
registerHooks({ resolve(name, context, next) {
  if (name === 'wreq-js') throw Object.assign(new Error("Cannot find package 'wreq-js'"), { code: 'ERR_MODULE_NOT_FOUND' })
  return next(name, context)
} })`
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` }
  const { code, stderr } = await sluice(['fetch', 'http://127.0.0.1:9/', '--identity', 'tls'], { env })
  assert.equal(code, 2, stderr)
  assert.match(stderr, /E_PACKAGE_MISSING/)
  assert.match(stderr, /npm install wreq-js@3\.1\.0/)
})
