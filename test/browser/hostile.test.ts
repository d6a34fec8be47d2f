/** Whatever a page does, its visit ends in time with a code, its slot is free again, and its neighbours continue. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import '../services/chromium.ts' // tells the test runner what this file needs
import { isRenderer, treeOf } from '../../src/fetch/browser/processes.ts'
import { openTestPool, type TestPool, until } from './pool.ts'
import { openSite, type Site } from './site.ts'

/** Plenty for a page that ends by itself, even on a busy machine. */
const TIMEOUT_MS = 120_000
/** For pages that only a time limit ends. */
const SHORT_TIMEOUT_MS = 10_000
const MIB = 1024 ** 2

let site: Site
let pool: TestPool
let hastyPool: TestPool

before(async () => {
  site = await openSite({
    '/fine': '<p>fine</p>',
    '/loop': '<script>while (true) {}</script>',
    '/popups': '<script>for (;;) window.open("/fine")</script>',
    '/one-popup': '<p>fine</p><script>window.open("/fine?popup")</script>',
    '/alerts': '<script>for (;;) alert(1)</script>',
    '/one-alert': '<p id=p></p><script>p.textContent = String(confirm("sure?")) + prompt("name?")</script>',
    '/stay': '<p>fine</p><script>onbeforeunload = (event) => { event.preventDefault(); return "stay" }</script>',
    '/buffers': '<script>const all = []; for (;;) all.push(new Uint8Array(8e6).fill(1))</script>',
    '/objects': '<script>const all = []; for (;;) all.push(Array.from({ length: 1e5 }, () => ({})))</script>',
    '/self': '<script>location = "/self?" + Math.random()</script>',
    '/self-later': '<script>setTimeout(() => { location = "/self-later?" + Math.random() })</script>',
    '/reload': '<script>setTimeout(() => location.reload())</script>',
    '/large': '<body><script>document.body.append(document.createComment("x".repeat(1.5e6)))</script>',
    '/huge': '<body><script>document.body.innerHTML = "<p>x</p>".repeat(1e6)</script>',
    '/closes': '<script>window.close()</script><script>while (true) {}</script>',
    '/deep': `${'<div>'.repeat(50_000)}deep`,
    '/endless': (request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' })
      const chunk = '<p>more</p>'.repeat(20_000)
      const more = () => {
        while (!request.socket.destroyed && response.write(chunk));
        if (!request.socket.destroyed) response.once('drain', more)
      }
      more()
    },
    '/many-downloads': `<p>fine</p><script>
      for (let i = 0; i < 200; i++) { const a = document.createElement('a'); a.href = '/endless-file?' + i; a.download = 'x'; a.click() }
    </script>`,
    '/endless-file': (_request, response) =>
      void response.writeHead(200, { 'content-type': 'application/zip' }).write('PK'),
  })
  const limits = { slots: 3, pageBytesMax: 256 * MIB, trafficBytesMax: 3 * MIB }
  pool = await openTestPool({ ...limits, timeoutMs: TIMEOUT_MS })
  hastyPool = await openTestPool({ ...limits, timeoutMs: SHORT_TIMEOUT_MS })
})
after(async () => {
  await pool[Symbol.asyncDispose]()
  await hastyPool[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})

/** Checks a good page in the same browser, while the bad one is open. */
async function neighbourIsFine(inPool = pool): Promise<void> {
  const page = await inPool.visit(`${site.url}/fine`)
  assert.match(page.text, /<p>fine<\/p>/)
  page.release()
}

describe('a page that', () => {
  const cases: [what: string, path: string, code: string][] = [
    ['opens windows for ever', '/popups', 'E_BROWSER_FLOOD'],
    ['shows dialogs for ever', '/alerts', 'E_BROWSER_FLOOD'],
    ['fills memory with buffers', '/buffers', 'E_BROWSER_CRASHED'],
    ['fills memory with objects', '/objects', 'E_BROWSER_CRASHED'],
    ['sends itself on for ever', '/self', 'E_REDIRECT_LIMIT'],
    ['has a document larger than is taken', '/large', 'E_TOO_LARGE'],
    ['never ends', '/endless', 'E_TOO_LARGE'],
  ]
  for (const [what, path, code] of cases) {
    it(`${what} is ${code}`, async () => {
      const [error] = await Promise.all([pool.failure(site.url + path), neighbourIsFine()])
      assert.equal(error.code, code, error.message)
      await until(() => pool.pool.busy === 0, 'all slots free')
    })
  }

  it('loops in a script forever is E_TIMEOUT_TOTAL', async () => {
    const [error] = await Promise.all([hastyPool.failure(`${site.url}/loop`), neighbourIsFine(hastyPool)])
    assert.equal(error.code, 'E_TIMEOUT_TOTAL', error.message)
    await until(() => hastyPool.pool.busy === 0, 'all slots free')
  })

  it('closes itself, reloads, moves on forever or has a million elements ends one way or another, in time', async () => {
    const ends = ['/closes', '/reload', '/self-later', '/huge'].map(async (path) => {
      const end = await hastyPool.visit(site.url + path).catch((error) => error)
      if ('release' in end) end.release()
      else assert.match(end.code, /^E_(?:BROWSER_CRASHED|TIMEOUT_TOTAL|REDIRECT_LIMIT|TOO_LARGE)$/)
    })
    await Promise.all(ends)
  })

  it('nests endlessly is read', async () => {
    const page = await pool.visit(`${site.url}/deep`)
    assert.match(page.text, /deep/)
    page.release()
  })

  it('shows dialogs and opens windows within reason is a page, without its window', async () => {
    const asking = await pool.visit(`${site.url}/one-alert`)
    assert.match(asking.text, />falsenull</)
    asking.release()
    const opening = await pool.visit(`${site.url}/one-popup`)
    const { driver } = opening.live!
    await until(() => driver.browserContext().targets().length === 1, 'the window is closed')
    opening.release()
  })

  it('does not want to be left is left anyway', async () => {
    const page = await pool.visit(`${site.url}/stay`)
    await page.live!.driver.goto(`${site.url}/fine`)
    assert.match(await page.live!.content(), /fine/)
    page.release()
    await until(() => pool.pool.busy === 0, 'all slots free')
  })

  it('hangs after it was read does not respond any more, and is gone when released', async () => {
    await using own = await openTestPool({ timeoutMs: 1500 })
    const page = await own.visit(`${site.url}/fine`)
    const looping = page.live!.driver.evaluate('while (true) {}').catch(() => {})
    await assert.rejects(page.live!.content(), { code: 'E_TIMEOUT_TOTAL' })
    assert.equal(await page.live!.screenshot(), undefined)
    page.release()
    await looping
    await until(() => own.pool.busy === 0, 'its slot free')
    await until(() => treeOf(own.pid).filter(isRenderer).length <= 1, 'its process gone') // a spare one may stay
  })

  it('downloads forever affects nothing but itself', async () => {
    const page = await pool.visit(`${site.url}/many-downloads`)
    const downloads = await page.live!.downloads()
    assert.ok(downloads.length <= 50 && downloads.every(({ kind }) => kind === 'link'))
    page.release()
    await neighbourIsFine()
  })

  it('is hostile does not end the browser', () => {
    for (const { events } of [pool, hastyPool]) assert.deepEqual(events.map(({ what }) => what), ['launched']) // biome-ignore format: one line reads better
  })
})
