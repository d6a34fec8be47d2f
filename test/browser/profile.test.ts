/** A browser and our HTTP requests present the same identity. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openHttp } from '../../src/fetch/http/http.ts'
import { PinnedIdentity } from '../../src/fetch/identity/identity.ts'
import { PROFILES, type Profile, profiles } from '../../src/fetch/identity/profiles.ts'
import { chromiumForTests } from '../services/chromium.ts'
import { sluice, temporaryFolder } from '../sluice.ts'
import { never, openTestPool, type TestPool } from './pool.ts'
import { openSite } from './site.ts'

/** Records the heads of requests byte by byte. */
async function openHeadSite() {
  const heads: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.on('data', (bytes) => {
      heads.push(bytes.toString('latin1').split('\r\n\r\n')[0]!)
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 9\r\n\r\n<p>hi</p>')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/`
  return {
    url,
    heads,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const as = (profile: Profile) => new PinnedIdentity({ id: 'i1', profile, proxy: undefined, bornAtMs: 0 })

async function headOverHttp(profile: Profile, url: string, heads: string[]): Promise<string[]> {
  await using http = openHttp({
    userAgent: 'SluiceTest/1.0',
    timeoutMs: 5000,
    connectTimeoutMs: 5000,
    bodyBytesMax: 1e6,
    redirectsMax: 3,
    connectionsPerHost: 1,
    retryAfterMsMax: 1000,
    allowPrivate: true,
    allowAddresses: [],
  })
  await http.exchange({ url }, never, undefined, as(profile))
  return heads.at(-1)!.split('\r\n')
}

let pool: TestPool
before(async () => {
  pool = await openTestPool()
})
after(() => pool[Symbol.asyncDispose]())

test('sends the same request head over HTTP as a real Chromium, name by name', async () => {
  await using site = await openHeadSite()
  const profile = PROFILES['chrome-linux']
  const seen = async (identity?: PinnedIdentity) => {
    const page = await pool.pool.visit({ url: site.url, browser: {} }, never, identity)
    page.release()
    return site.heads.findLast((head) => head.startsWith('GET / '))!.split('\r\n')
  }
  const names = (lines: readonly string[]) => lines.map((line) => line.split(':')[0])
  const plain = await seen()
  const shown = await seen(as(profile))
  const ours = await headOverHttp(profile, site.url, site.heads)
  // A headless shell sends no language by default; a browser with a window sends it last.
  assert.deepEqual(names(ours), [...names(plain), 'Accept-Language'])
  assert.deepEqual(ours.toSorted(), shown.toSorted(), 'what it sends as the same identity')
})

for (const profile of profiles.filter(({ isChromium }) => isChromium)) {
  test(`shows a page opened as ${profile.name} what the headers say`, async () => {
    await using site = await openHeadSite()
    const page = await pool.pool.visit({ url: site.url, browser: {} }, never, as(profile))
    const seen = await page.live!.driver.evaluate(async () => {
      const navigator = globalThis.navigator as Navigator & { userAgentData: never }
      const { brands, platform, mobile } = navigator.userAgentData as Record<string, unknown>
      const { userAgent, languages } = navigator
      const { timeZone, locale } = new Intl.DateTimeFormat().resolvedOptions()
      return { userAgent, languages, brands, hint: platform, mobile, platform: navigator.platform, timeZone, locale }
    })
    const size = await page.live!.driver.evaluate('({ width: innerWidth, height: innerHeight })')
    page.release()
    const head = await headOverHttp(profile, site.url, site.heads)
    const header = (name: string) =>
      head.find((line) => line.toLowerCase().startsWith(`${name}: `))?.slice(name.length + 2)
    assert.equal(header('user-agent'), seen.userAgent)
    const brands = (seen.brands as { brand: string; version: string }[]).map(
      (one) => `"${one.brand}";v="${one.version}"`,
    )
    assert.equal(header('sec-ch-ua'), brands.join(', '))
    assert.equal(header('sec-ch-ua-platform'), JSON.stringify(seen.hint))
    assert.equal(header('sec-ch-ua-mobile'), seen.mobile ? '?1' : '?0')
    assert.equal(header('accept-language')!.replace(/;q=[\d.]+/g, ''), seen.languages.join(','))
    assert.equal(seen.platform, profile.platform)
    assert.deepEqual(size, profile.viewport)
    assert.deepEqual([seen.timeZone, seen.locale], ['America/New_York', 'en-US'])
  })
}

test('retries a blocked page in a browser', async () => {
  const asked: string[] = []
  await using site = await openSite({
    '/app': (request, response) => {
      asked.push(request.headers['sec-fetch-mode'] ?? 'plain')
      const isBrowser = request.headers['sec-fetch-mode'] !== undefined
      response.writeHead(isBrowser ? 200 : 403, { 'content-type': 'text/html' })
      response.end(isBrowser ? '<p>an app</p>' : '<p>no</p>')
    },
  })
  using folder = temporaryFolder()
  const file = join(folder.path, 'fallback.ts')
  writeFileSync(
    file,
    `import { defineScraper } from 'sluice'
import * as z from 'zod'
export default defineScraper({
  name: 'fallback',
  item: z.object({ text: z.string(), attempt: z.number() }),
  routes: { app: { match: '/app', fallback: 'browser' } },
  start: ({ enqueue }) => enqueue('app', '${site.url}/app'),
  handlers: { app: ({ $, emit, attempt }) => emit({ text: $.text('p'), attempt }) },
})`,
  )
  const args = ['run', file, '--rps', '0', '--robots', 'ignore', '--out', folder.path, '--json']
  const { code, stdout, stderr } = await sluice(args, { env: { SLUICE_CHROME: await chromiumForTests() } })
  assert.equal(code, 0, stdout + stderr)
  assert.deepEqual(asked, ['plain', 'navigate'])
  assert.equal(JSON.parse(stdout).items.new, 1)
})
