import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { type HttpClient, openHttp } from '../http/http.ts'
import { PinnedIdentity } from './identity.ts'
import { brandsOf, PROFILES, type Profile, profiles } from './profiles.ts'

const never = new AbortController().signal
const heads: string[] = []
const sockets = new Set<Socket>()
/** Records the exact bytes of request heads, sets a cookie, and redirects /old. */
const server = createServer((socket) => {
  sockets.add(socket.on('error', () => {}))
  socket.on('data', (bytes) => {
    const head = bytes.toString('latin1').split('\r\n\r\n')[0]!
    heads.push(head)
    const isOld = head.startsWith('GET /old ')
    const status = isOld ? '302 Found\r\nlocation: /new\r\nset-cookie: moved=1' : '200 OK\r\nset-cookie: seen=1'
    socket.write(`HTTP/1.1 ${status}\r\ncontent-type: text/html\r\ncontent-length: 9\r\n\r\n<p>hi</p>`)
  })
})
let url: string
let http: HttpClient
before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  http = openHttp({
    userAgent: 'SluiceTest/1.0',
    timeoutMs: 5000,
    connectTimeoutMs: 5000,
    bodyBytesMax: 1e6,
    redirectsMax: 3,
    connectionsPerHost: 4,
    retryAfterMsMax: 1000,
    allowPrivate: true,
    allowAddresses: [],
  })
})
after(async () => {
  await http[Symbol.asyncDispose]()
  for (const socket of sockets) socket.destroy()
  server.close()
})

let born = 0
const as = (profile: Profile | undefined) =>
  new PinnedIdentity({ id: `i${++born}`, profile, proxy: undefined, bornAtMs: 0 })

async function head(request: object, identity: PinnedIdentity): Promise<string[]> {
  await http.exchange({ url, ...request }, never, undefined, identity)
  return heads.at(-1)!.split('\r\n').slice(1)
}

const namesOf = (lines: readonly string[]) => lines.map((line) => line.slice(0, line.indexOf(':')))

describe('the head of a request', () => {
  const CHROMIUM =
    'Host Connection sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform Upgrade-Insecure-Requests User-Agent Accept Sec-Fetch-Site Sec-Fetch-Mode Sec-Fetch-User Sec-Fetch-Dest Accept-Encoding Accept-Language'
  const FIREFOX =
    'Host User-Agent Accept Accept-Language Accept-Encoding Connection Upgrade-Insecure-Requests Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User Priority'
  const SAFARI =
    'Host Sec-Fetch-Dest User-Agent Accept Sec-Fetch-Site Sec-Fetch-Mode Accept-Language Priority Accept-Encoding Connection'

  for (const profile of profiles) {
    it(`has the names, spelling and order of ${profile.name}`, async () => {
      const expected = profile.isChromium ? CHROMIUM : profile.name.startsWith('firefox') ? FIREFOX : SAFARI
      assert.deepEqual(namesOf(await head({}, as(profile))), expected.split(' '))
    })
  }

  it('has the cookies of its identity where the browser puts them, from page to page and across redirects', async () => {
    const identity = as(PROFILES['firefox-linux'])
    await http.exchange({ url: `${url}old` }, never, undefined, identity)
    const names = namesOf(await head({}, identity))
    assert.equal(names[names.indexOf('Connection') + 1], 'Cookie')
    assert.match(heads.at(-1)!, /\r\nCookie: (?:moved=1; seen=1|seen=1; moved=1)\r\n/)
    assert.doesNotMatch((await head({}, as(PROFILES['firefox-linux']))).join('\n'), /Cookie/)
  })

  it('has the cookies of an honest identity too', async () => {
    const identity = as(undefined)
    await head({}, identity)
    assert.ok((await head({}, identity)).includes('cookie: seen=1'))
    assert.match(heads.at(-1)!, /user-agent: SluiceTest/)
  })

  it('uses headers of the route instead of its own, and appends the others', async () => {
    const lines = await head({ headers: { 'accept-language': 'de', 'x-own': '1' } }, as(PROFILES['chrome-windows']))
    assert.deepEqual(namesOf(lines), [...CHROMIUM.split(' '), 'X-Own'])
    assert.ok(lines.includes('Accept-Language: de'))
  })

  it('of a POST is that of a page’s own script', async () => {
    const lines = await head({ post: { q: 1 } }, as(PROFILES['chrome-macos']))
    for (const line of ['Sec-Fetch-Mode: cors', 'Accept: */*', 'Content-Type: application/json', 'Content-Length: 7'])
      assert.ok(lines.includes(line), `${line} in\n${lines.join('\n')}`)
    assert.equal(lines.some((line) => line.startsWith('Upgrade-')), false) // biome-ignore format: one line
  })

  it('has no client hints on plain http, as browsers send none there', () => {
    for (const profile of profiles) {
      const names = profile.headersFor({ isTrustworthy: false }).map(([name]) => name.toLowerCase())
      assert.equal(names.some((name) => /^sec-/.test(name)), false, profile.name) // biome-ignore format: one line
    }
  })
})

describe('profiles', () => {
  it('share no connection: two people on one socket would look like one', async () => {
    const before = sockets.size
    await head({}, as(PROFILES['chrome-linux']))
    await head({}, as(PROFILES['chrome-linux']))
    assert.equal(sockets.size, before + 2)
  })

  it('agree with themselves: platform, version and brand are the same everywhere', () => {
    for (const { name, userAgent, hints, platform } of profiles) {
      const [browser, system] = name.split('-') as [string, string]
      const words = { windows: /Windows NT/, macos: /Macintosh/, linux: /X11; Linux/ }[system]!
      assert.match(userAgent, words, name)
      assert.match(platform, { windows: /^Win32$/, macos: /^MacIntel$/, linux: /^Linux/ }[system]!)
      assert.match(userAgent, { chrome: /Chrome\/\d+\.0\.0\.0 Safari\/537\.36$/, edge: /Edg\/\d/, firefox: /Firefox\/\d/, safari: /Version\/\d.* Safari\/605/ }[browser]!) // biome-ignore format: one line
      if (hints === undefined) continue
      const major = /Chrome\/(\d+)/.exec(userAgent)![1]
      const brand = browser === 'edge' ? 'Microsoft Edge' : 'Google Chrome'
      assert.ok(hints.brands.some((one) => one.brand === brand && one.version === major), name) // biome-ignore format: one line
    }
    assert.ok(!profiles.some(({ name }) => name === 'safari-windows' || name === 'safari-linux'))
  })

  it('have the brands Chromium derives from its version', () => {
    const text = (major: number) =>
      brandsOf(major, 'Google Chrome', String(major)).map((one) => `"${one.brand}";v="${one.version}"`).join(', ') // biome-ignore format: one chain
    assert.equal(text(120), '"Not_A Brand";v="8", "Chromium";v="120", "Google Chrome";v="120"')
    assert.equal(text(131), '"Google Chrome";v="131", "Chromium";v="131", "Not_A Brand";v="24"')
  })
})
