/** Users of one browser know nothing of each other, and find their own data again. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import '../services/chromium.ts' // tells the test runner what this file needs
import type { SessionState } from '../../src/core/session-state.ts'
import { openTestPool, type TestPool, until } from './pool.ts'
import { openSite, type Site } from './site.ts'

const USERS = 20
const LOADS = 10
/** Shows what it finds (cookies, local storage, the cached number), then leaves the user's name everywhere. */
const ROOM = `<pre id=seen></pre><script src=/cached.js></script><script>
  const user = new URL(location).searchParams.get('user')
  seen.textContent = JSON.stringify({ cookie: document.cookie, stored: { ...localStorage }, cached: window.cached })
  document.cookie = 'user=' + user + '; path=/'
  localStorage.setItem('user', user)
</script>`

let site: Site
let other: Site
let pool: TestPool
let served = 0

before(async () => {
  other = await openSite({ '/frame': '<script>localStorage.setItem("frame", "of another site")</script>' })
  site = await openSite({
    '/room': ROOM,
    '/cached.js': (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/javascript', 'cache-control': 'max-age=3600' })
      response.end(`window.cached = ${++served}`)
    },
    '/sign-in': `<iframe src="${other.url.replace('127.0.0.1', 'localhost')}/frame"></iframe>
      <script>localStorage.setItem('token', 'é"<t>'); document.cookie = 'plain=1'; document.cookie = 'kept=2; max-age=1000'</script>`,
    '/secret': (_request, response) => {
      response.setHeader('set-cookie', 'hidden=3; HttpOnly; SameSite=Lax; Path=/').end('<p>')
    },
    '/who': (request, response) => {
      const cookie = JSON.stringify(request.headers.cookie ?? '')
      response.setHeader('content-type', 'text/html')
      response.end(`<p id=p></p><script>p.textContent = JSON.stringify([${cookie}, localStorage.token])</script>`)
    },
    '/out': '<script>localStorage.clear(); location = "/who"</script>',
  })
  pool = await openTestPool({ slots: 4, pagesPerBrowserMax: 1000 })
})
after(async () => {
  await pool[Symbol.asyncDispose]()
  await Promise.all([site[Symbol.asyncDispose](), other[Symbol.asyncDispose]()])
})

const textOf = (html: string) => html.replace(/^.*?<(?:pre|p)[^>]*>(.*?)<\/(?:pre|p)>.*$/s, '$1').replaceAll('&lt;', '<').replaceAll('&gt;', '>') // biome-ignore format: one chain

describe('users', () => {
  it(`do not find a cookie, an item or a cached file of another (${USERS} × ${LOADS} loads)`, async () => {
    const numbers = new Set<number>()
    const live = async (user: number) => {
      for (let load = 0; load < LOADS; load++) {
        const page = await pool.visit(`${site.url}/room?user=${user}`)
        const { cookie, stored, cached } = JSON.parse(textOf(page.text))
        assert.deepEqual([cookie, stored], ['', {}])
        numbers.add(cached)
        page.release()
      }
    }
    await Promise.all(Array.from({ length: USERS }, (_, user) => live(user)))
    assert.equal(numbers.size, USERS * LOADS, 'a script came from another user’s cache')
    await until(() => pool.pool.busy === 0, 'all slots free')
  })
})

describe('a session', () => {
  let state: SessionState

  it('is taken with cookies and the local storage of all origins', async () => {
    const page = await pool.visit(`${site.url}/sign-in`)
    const framed = (await page.live!.state()).origins.find(({ origin }) => origin.includes('localhost'))
    assert.deepEqual(framed?.localStorage, [{ name: 'frame', value: 'of another site' }])
    await page.live!.driver.goto(`${site.url}/secret`)
    await page.live!.driver.goto(`${other.url}/frame`) // the page has left the site, but its storage is still found
    state = await page.live!.state()
    page.release()
    assert.deepEqual(state.cookies.map(({ name, value }) => `${name}=${value}`).sort(), [
      'hidden=3',
      'kept=2',
      'plain=1',
    ])
    const hidden = state.cookies.find(({ name }) => name === 'hidden')!
    assert.deepEqual([hidden.httpOnly, hidden.sameSite, hidden.expires, hidden.path], [true, 'Lax', -1, '/'])
    assert.ok(state.cookies.find(({ name }) => name === 'kept')!.expires > Date.now() / 1000)
    const stored = Object.fromEntries(state.origins.map(({ origin, localStorage }) => [origin, localStorage]))
    assert.deepEqual(stored[site.url], [{ name: 'token', value: 'é"<t>' }])
    assert.deepEqual(stored[other.url], [{ name: 'frame', value: 'of another site' }])
  })

  it('is restored before the first request', async () => {
    const before = site.asked.length
    const page = await pool.visit(`${site.url}/who`, { state })
    const [cookie, token] = JSON.parse(textOf(page.text))
    assert.deepEqual(cookie.split('; ').sort(), ['hidden=3', 'kept=2', 'plain=1'])
    assert.equal(token, 'é"<t>')
    assert.deepEqual(site.asked.slice(before), ['GET /who'])
    const again = await page.live!.state()
    assert.deepEqual(again.origins, state.origins.filter(({ origin }) => origin === site.url)) // biome-ignore format: one line reads better
    page.release()
  })

  it('stays logged out after it logged out', async () => {
    const page = await pool.visit(`${site.url}/who`, { state })
    await page.live!.driver.evaluate('localStorage.setItem("token", "changed")')
    await page.live!.driver.goto(`${site.url}/who`)
    assert.match(await page.live!.content(), /"changed"/)
    page.release()
  })

  it('belongs to no user without a state', async () => {
    const page = await pool.visit(`${site.url}/who`)
    assert.equal(textOf(page.text), '["",null]')
    page.release()
  })
})
