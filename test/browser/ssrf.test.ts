/** A browser reaches only what our HTTP client would reach: not by redirect, script, socket, name or scheme. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import '../services/chromium.ts' // tells the test runner what this file needs
import { promisify } from 'node:util'
import { openEgress } from '../../src/fetch/net/egress.ts'
import { socksForTests } from '../services/socks.ts'
import { openTestPool, type TestPool } from './pool.ts'
import { openSite, redirect, type Site } from './site.ts'

const run = promisify(execFile)

let site: Site
/** Must never be reached. */
let internal: Site
let pool: TestPool

/** Tries everything a page can open a connection with, and shows the result of each. */
const TRY_ALL = (
  http: string,
) => `<body><pre id=seen></pre><img src="${http}/img"><link rel=stylesheet href="${http}/css">
<link rel=preconnect href="${http}"><link rel=prefetch href="${http}/prefetch"><link rel=dns-prefetch href="${http}">
<iframe src="${http}/frame"></iframe><script src="${http}/script"></script><video src="${http}/video"></video>
<script>
  const outcome = (work) => work.then(() => 'REACHED', () => 'refused')
  const socket = () => new Promise((ok, no) => { const ws = new WebSocket('${http}/ws'.replace('http', 'ws')); ws.onopen = ok; ws.onerror = no })
  const source = () => new Promise((ok, no) => { const es = new EventSource('${http}/sse'); es.onopen = ok; es.onerror = no })
  const worker = () => new Promise((ok, no) => {
    const code = 'fetch("${http}/worker", { mode: "no-cors" }).then(() => postMessage(1), () => postMessage(0))'
    new Worker(URL.createObjectURL(new Blob([code]))).onmessage = ({ data }) => (data ? ok() : no())
  })
  navigator.sendBeacon('${http}/beacon', 'x')
  Promise.all([outcome(fetch('${http}/fetch', { mode: 'no-cors' })), outcome(socket()), outcome(source()), outcome(worker())])
    .then((all) => { seen.className = 'done'; seen.textContent = all })
</script>`

before(async () => {
  internal = await openSite({ '/': '<p>internal secrets' })
  const { port } = internal
  site = await openSite({
    '/try-ip': TRY_ALL(`http://127.0.0.1:${port}`),
    '/try-name': TRY_ALL(`http://rebound.test:${port}`),
    '/try-v6': TRY_ALL(`http://[::ffff:7f00:1]:${port}`),
    '/try-local': TRY_ALL(`http://localhost:${port}`),
    '/to-ip': redirect(`http://127.0.0.1:${port}/`),
    '/to-short': redirect(`http://127.1:${port}/`),
    '/to-number': redirect(`http://2130706433:${port}/`),
    '/to-name': redirect(`http://rebound.test:${port}/`),
    '/script-to': `<script>location = 'http://127.0.0.1:${port}/'</script>`,
    '/meta-to': `<meta http-equiv=refresh content="0;url=http://127.0.0.1:${port}/"><p>`,
    '/file-frame': '<iframe src="file:///etc/hostname"></iframe><p>fine</p>',
    '/fine': '<p>fine</p>',
    '/parties': '<img src="http://cdn.shop.test:PORT/own.png"><img src="http://ads.test:PORT/foreign.png"><p>fine</p>',
    '/to-other-site': redirect('http://other.test:PORT/fine'),
  })
  pool = await openTestPool({
    timeoutMs: 8000,
    allowPrivate: false,
    allowAddresses: [`127.0.0.1:${site.port}`],
    // A public name that has started to resolve to a private address.
    lookup: (_name, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
  })
})
after(async () => {
  await pool[Symbol.asyncDispose]()
  await Promise.all([site[Symbol.asyncDispose](), internal[Symbol.asyncDispose]()])
})

describe('the private network', () => {
  for (const path of ['/to-ip', '/to-short', '/to-number', '/to-name', '/script-to', '/meta-to']) {
    it(`is not reached by ${path}`, async () => {
      const waitFor = path === '/meta-to' ? { waitFor: 'never' } : {}
      const error = await pool.failure(site.url + path, waitFor)
      assert.equal(error.code, 'E_PRIVATE_ADDRESS', error.message)
    })
  }

  for (const path of ['/try-ip', '/try-name', '/try-v6', '/try-local']) {
    it(`is not reached by anything a page does (${path})`, async () => {
      const page = await pool.visit(site.url + path, { waitFor: '.done' })
      assert.match(page.text, />refused,refused,refused,refused</)
      page.release()
    })
  }

  it('is not reached by a handler, which gets the reason', async () => {
    const page = await pool.visit(`${site.url}/fine`)
    const { driver } = page.live!
    for (const url of [`http://127.0.0.1:${internal.port}/`, 'http://10.1.2.3/', `${site.url}/to-ip`]) {
      await assert.rejects(driver.goto(url), { code: 'E_PRIVATE_ADDRESS' })
    }
    assert.equal((await driver.goto(`${site.url}/fine`))?.status(), 200)
    page.release()
  })

  it('has received no request', () => {
    assert.deepEqual(internal.asked, [])
  })

  it('gets no packet of a call either', async () => {
    const udp = createSocket('udp4')
    let packets = 0
    udp.on('message', () => packets++)
    udp.bind(0, '127.0.0.1')
    await once(udp, 'listening')
    const page = await pool.visit(`${site.url}/fine`)
    const gathered = await page.live!.driver.evaluate(`new Promise((done) => {
      const call = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${udp.address().port}' }] })
      call.onicegatheringstatechange = () => call.iceGatheringState === 'complete' && done(call.localDescription.sdp)
      call.createDataChannel('x')
      call.createOffer().then((offer) => call.setLocalDescription(offer))
    })`)
    assert.doesNotMatch(String(gathered), /a=candidate/)
    assert.equal(packets, 0)
    page.release()
    udp.close()
    await once(udp, 'close')
  })
})

describe('this machine', () => {
  it('shows its files to no page and no handler', async () => {
    const secret = readFileSync('/etc/passwd', 'utf8').slice(0, 20)
    const page = await pool.visit(`${site.url}/file-frame`)
    const { driver } = page.live!
    for (const url of [
      'file:///etc/passwd',
      'view-source:file:///etc/passwd',
      'chrome://version',
      'chrome://gpu',
      'devtools://x',
      'about:version',
      ' FILE:///etc/passwd',
    ]) {
      await assert.rejects(driver.goto(url), { code: 'E_URL_SCHEME' })
    }
    // By the protocol itself, bypassing our own checks.
    const session = await driver.createCDPSession()
    const { errorText } = await session.send('Page.navigate', { url: 'file:///etc/passwd' })
    assert.equal(errorText, 'net::ERR_BLOCKED_BY_CLIENT')
    const frames = await Promise.all(driver.frames().map((frame) => frame.content().catch(() => '')))
    assert.ok(frames.every((html) => !html.includes(secret)))
    page.release()
  })

  it('does not let other users of the machine use the user’s proxy', {
    skip: process.getuid?.() !== 0 && 'needs root',
  }, async () => {
    const proxy = 'socks5://127.0.0.1:9'
    const guarded = openEgress({ allowPrivate: true, allowAddresses: [], connectTimeoutMs: 1000, proxy })
    await using door = await guarded.open({ bytesMax: 1000, onFlood: () => {} })
    // As another user: sends a greeting to the proxy and prints the reply, if there is one.
    const knock = `const s = require('node:net').connect(${new URL(door.proxyServer).port}, '127.0.0.1')
      s.on('connect', () => s.write(Buffer.from([5, 1, 0]))); s.on('data', (d) => { console.log(d.toString('hex')); s.end() })
      s.on('error', () => {})`
    const asUser = async (uid: number) => (await run(process.execPath, ['-e', knock], { uid, cwd: '/' })).stdout.trim()
    assert.equal(await asUser(0), '0500')
    assert.equal(await asUser(65_534), '')
  })

  it('has no debugging port', () => {
    const line = readFileSync(`/proc/${pool.pid}/cmdline`, 'latin1')
    assert.match(line, /--remote-debugging-pipe/)
    assert.doesNotMatch(line, /--remote-debugging-port/)
    const environment = readFileSync(`/proc/${pool.pid}/environ`, 'latin1').split('\0')
    const names = environment.map((entry) => entry.split('=')[0]!).filter(Boolean)
    assert.deepEqual(names.filter((name) => !/^(?:HOME|TMPDIR|XDG_\w+|PATH|PWD|OLDPWD|_|SHLVL|LANG|LC_ALL|TZ|LD_LIBRARY_PATH|FONTCONFIG_\w+|CHROME_\w+|DBUS_\w+)$/.test(name)), []) // biome-ignore format: one line reads better
  })
})

describe('other sites', () => {
  it('are not requested when only the page’s own site is allowed', async () => {
    const asked: string[] = []
    await using shop = await openSite({
      '/parties': (request, response) => {
        const { port } = new URL(`http://${request.headers.host}`)
        const images = ['cdn.shop.test', 'ads.test'].map((host) => `<img src="http://${host}:${port}/${host}.png">`)
        response.setHeader('content-type', 'text/html').end(`${images.join('')}<p>fine</p>`)
      },
      '/to-other-site': (request, response) => {
        const { port } = new URL(`http://${request.headers.host}`)
        response.writeHead(302, { location: `http://other.test:${port}/fine` }).end()
      },
      '/fine': (request, response) => {
        asked.push(request.headers.host!.split(':')[0]!)
        response.setHeader('content-type', 'text/html').end('<p>fine</p>')
      },
    })
    await using named = await openTestPool({
      lookup: (_name, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
    })
    const page = await named.visit(`http://www.shop.test:${shop.port}/parties`, { blockThirdParties: true })
    page.release()
    assert.deepEqual(shop.asked, ['GET /parties', 'GET /cdn.shop.test.png'])
    const moved = await named.visit(`http://www.shop.test:${shop.port}/to-other-site`, { blockThirdParties: true })
    assert.equal(moved.url, `http://other.test:${shop.port}/fine`)
    assert.deepEqual(moved.redirects, [`http://www.shop.test:${shop.port}/to-other-site`])
    assert.deepEqual(asked, ['other.test'])
    moved.release()
  })
})

describe('a proxy', () => {
  it('carries everything, including name lookups', async () => {
    await using proxy = await socksForTests({ user: 'sluice', password: 'secret' })
    await using through = await openTestPool({
      proxy: `socks5://sluice:secret@127.0.0.1:${proxy.port}`,
      lookup: () => assert.fail('looked up here'),
    })
    const page = await through.visit(`${site.url}/fine`)
    assert.match(page.text, /fine/)
    page.release()
    await proxy.stop()
    assert.equal((await through.failure(`${site.url}/fine`)).code, 'E_PROXY')
  })
})
