/** Pages of a real browser fulfil the same contract as pages fetched over HTTP. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import '../services/chromium.ts' // tells the test runner what this file needs
import { pageOf } from '../../src/core/failed-page.ts'
import { never, openTestPool, type TestPool, until } from './pool.ts'
import { openSite, redirect, type Site, status } from './site.ts'

let site: Site
let pool: TestPool

const isPng = (bytes: Buffer | undefined) => bytes?.subarray(1, 4).toString() === 'PNG'

before(async () => {
  site = await openSite({
    '/plain': '<!doctype html><title>Plain</title><p id=p>one</p><script>p.textContent = "two"</script>',
    '/agent': '<p id=p></p><script>p.textContent = navigator.userAgent</script>',
    '/hop1': redirect('/hop2'),
    '/hop2': redirect('/plain?a=1#x'),
    '/script-hop': '<script>location = "/plain"</script>',
    '/round': redirect('/round'),
    '/to-file': redirect('file:///etc/hostname'),
    '/missing': status(404, { 'content-type': 'text/html' }, '<p>gone fishing'),
    '/empty-500': status(500),
    '/slow-down': status(429, { 'retry-after': '7' }, 'slow'),
    '/later': status(503, { 'retry-after': '5' }, 'later'),
    '/nothing': status(204),
    '/partial': status(206, { 'content-type': 'text/html' }, '<p>part'),
    '/login': status(401, { 'www-authenticate': 'Basic realm=x' }, 'who are you?'),
    '/data': status(200, { 'content-type': 'application/json' }, '{"a":[1,2]}'),
    '/feed': status(200, { 'content-type': 'text/xml' }, '<?xml version="1.0"?><a><b/></a>'),
    '/old': (_request, response) =>
      void response.writeHead(200, { 'content-type': 'text/plain; charset=iso-8859-1' }).end(Buffer.from([0xe9])),
    '/picture': (_request, response) => {
      const gif = Buffer.from('R0lGODlhAQABAAAAACwAAAAAAQABAAA=', 'base64')
      response.writeHead(200, { 'content-type': 'image/gif' }).end(gif)
    },
    '/headers': (_request, response) => {
      const headers = { 'content-type': 'text/html', 'set-cookie': ['a=1', 'b=2'], 'x-two': ['1', '2'] }
      response.writeHead(200, headers).end('<p>')
    },
    '/echo': (request, response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(request.headers))
    },
    '/file.bin': status(200, { 'content-type': 'application/octet-stream' }, 'bytes'),
    '/short': (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html', 'content-length': '1000' })
      response.write('<p>only a part', () => response.destroy())
    },
    '/cut': (request) => {
      const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n'
      request.socket.write(`${head}<p>only a part</p>`, () => request.socket.resetAndDestroy())
    },
    '/silent': () => {},
    '/mute': () => {},
    '/drip': (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).write('<p>more to come')
    },
    '/late': '<script>setTimeout(() => { document.body.innerHTML = "<b class=late>here</b>" }, 300)</script><body>',
    '/large': `<p>${'x'.repeat(1_100_000)}`,
    '/large.json': status(200, { 'content-type': 'application/json' }, JSON.stringify('x'.repeat(1_100_000))),
    '/parts':
      '<link rel=stylesheet href=/a.css><script src=/a.js></script><img src=/a.png><script>fetch("/a.xhr")</script>',
    '/a.css': status(200, { 'content-type': 'text/css' }),
    '/a.js': status(200, { 'content-type': 'text/javascript' }),
  })
  pool = await openTestPool({ timeoutMs: 10_000 })
})
after(async () => {
  await pool[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})

describe('a page', () => {
  it('is the document as scripts have made it', async () => {
    const page = await pool.visit(`${site.url}/plain`)
    assert.equal(page.status, 200)
    assert.equal(page.contentType, 'text/html')
    assert.match(page.text, /^<!DOCTYPE html><html><head><title>Plain<\/title>.*<p id="p">two<\/p>/)
    assert.ok(page.bytes.wire > 0 && page.timings.firstByteMs > 0 && page.timings.totalMs >= page.timings.firstByteMs)
    assert.match(await page.live!.content(), /<p id="p">two/)
    page.release()
    assert.equal(page.live, undefined)
  })

  it('is requested under our own name, visible to server and script', async () => {
    const echo = await pool.visit(`${site.url}/echo`)
    assert.match(echo.text, /"user-agent":"SluiceTest\/1\.0/)
    echo.release()
    const page = await pool.visit(`${site.url}/agent`)
    assert.match(page.text, /SluiceTest\/1\.0/)
    page.release()
  })

  it('knows its redirects, from servers and from scripts', async () => {
    const page = await pool.visit(`${site.url}/hop1`)
    assert.equal(page.url, `${site.url}/plain?a=1`)
    assert.deepEqual(page.redirects, [`${site.url}/hop1`, `${site.url}/hop2`])
    page.release()
    const sent = await pool.visit(`${site.url}/script-hop`)
    assert.equal(sent.url, `${site.url}/plain`)
    assert.deepEqual(sent.redirects, [`${site.url}/script-hop`])
    sent.release()
  })

  it('has headers like those of HTTP', async () => {
    const page = await pool.visit(`${site.url}/headers`)
    assert.deepEqual(page.headers['set-cookie'], ['a=1', 'b=2'])
    assert.equal(page.headers['x-two'], '1, 2')
    page.release()
  })

  it('returns the bytes as received if it is not HTML', async () => {
    const cases = [
      ['/data', 'application/json', '{"a":[1,2]}'],
      ['/feed', 'text/xml', '<?xml version="1.0"?><a><b/></a>'],
      ['/old', 'text/plain', 'é'],
    ] as const
    for (const [path, type, text] of cases) {
      const page = await pool.visit(site.url + path)
      assert.deepEqual([page.contentType, page.text], [type, text])
      page.release()
    }
    const picture = await pool.visit(`${site.url}/picture`)
    assert.equal(picture.body.toString('latin1', 0, 6), 'GIF89a')
    picture.release()
  })

  it('is empty without a document', async () => {
    const page = await pool.visit(`${site.url}/nothing`)
    assert.deepEqual([page.status, page.body.length], [204, 0])
    page.release()
  })

  it('is ready when its wait condition is met', async () => {
    const page = await pool.visit(`${site.url}/late`, { waitUntil: 'domcontentloaded', waitFor: '.late' })
    assert.match(page.text, /<b class="late">here/)
    page.release()
    const idle = await pool.visit(`${site.url}/parts`, { waitUntil: 'networkidle' })
    idle.release()
    assert.ok(site.asked.includes('GET /a.xhr'))
  })

  it('sends the headers of its request, including cookies', async () => {
    const headers = { 'x-key': 'k', cookie: 'a=1; b=2', 'user-agent': 'Other/1' }
    const page = await pool.visit(`${site.url}/echo`, {}, { headers })
    const seen = JSON.parse(page.text)
    assert.deepEqual([seen['x-key'], seen.cookie, seen['user-agent']], ['k', 'a=1; b=2', 'Other/1'])
    page.release()
  })

  it('does not request blocked resources', async () => {
    const before = site.asked.length
    const page = await pool.visit(`${site.url}/parts`, { block: ['image', 'script', 'xhr'], waitUntil: 'networkidle' })
    page.release()
    assert.deepEqual(site.asked.slice(before), ['GET /parts', 'GET /a.css'])
  })

  it('can be captured as a screenshot', async () => {
    const page = await pool.visit(`${site.url}/plain`)
    const picture = await page.live!.screenshot()
    assert.equal(picture?.toString('latin1', 1, 4), 'PNG')
    page.release()
  })
})

describe('a failed page', () => {
  const cases: [path: string, code: string, status?: number][] = [
    ['/missing', 'E_NOT_FOUND', 404],
    ['/empty-500', 'E_SERVER', 500],
    ['/slow-down', 'E_RATE_LIMITED', 429],
    ['/later', 'E_SERVER', 503],
    ['/partial', 'E_STATUS', 206],
    ['/login', 'E_UNAUTHORIZED', 401],
    ['/round', 'E_REDIRECT_LIMIT'],
    ['/to-file', 'E_REDIRECT_BAD'],
    ['/file.bin', 'E_BROWSER_DOWNLOAD'],
    ['/short', 'E_BODY_SHORT'],
    ['/cut', 'E_BODY_SHORT'],
    ['/large', 'E_TOO_LARGE'],
    ['/large.json', 'E_TOO_LARGE'],
  ]
  for (const [path, code, status] of cases) {
    it(`${path} is ${code}`, async () => {
      const error = await pool.failure(site.url + path)
      assert.deepEqual([error.code, error.details.status], [code, status], error.message)
    })
  }

  it('comes with its response and the requested wait', async () => {
    const missing = await pool.failure(`${site.url}/missing`)
    assert.match(pageOf(missing)!.text, /gone fishing/)
    assert.ok(isPng(pageOf(missing)!.screenshot))
    assert.equal((await pool.failure(`${site.url}/slow-down`)).details.retryAfterMs, 7000)
    assert.equal((await pool.failure(`${site.url}/later`)).details.retryAfterMs, 5000)
  })

  it('is a page if the route accepts it', async () => {
    const page = await pool.visit(`${site.url}/missing`, {}, { accept: [404] })
    assert.match(page.text, /gone fishing/)
    page.release()
  })

  it('has network codes for network errors', async () => {
    assert.equal((await pool.failure('http://no-such-host.invalid/')).code, 'E_DNS')
    assert.equal((await pool.failure('http://127.0.0.1:9/')).code, 'E_URL_INVALID') // a port that Chromium blocks
    assert.equal((await pool.failure('file:///etc/hostname')).code, 'E_URL_SCHEME')
    const shut = await openSite({})
    await shut[Symbol.asyncDispose]()
    assert.equal((await pool.failure(`${shut.url}/`)).code, 'E_CONNECTION')
    assert.equal((await pool.failure(site.url.replace('http', 'https'))).code, 'E_TLS')
  })

  it('frees its slot', async () => {
    await until(() => pool.pool.busy === 0, 'all slots free')
  })
})

describe('time', () => {
  it('that runs out is reported with what was waited for', async () => {
    await using slow = await openTestPool({ timeoutMs: 1500 })
    assert.equal((await slow.failure(`${site.url}/silent`)).code, 'E_TIMEOUT_HEADERS')
    const dripping = await slow.failure(`${site.url}/drip`)
    assert.equal(dripping.code, 'E_TIMEOUT_TOTAL')
    assert.match(pageOf(dripping)!.text, /more to come/)
    assert.ok(isPng(pageOf(dripping)!.screenshot))
    const error = await slow.failure(`${site.url}/plain`, { waitFor: '.never' })
    assert.equal(error.code, 'E_SELECTOR_EMPTY')
    assert.match(pageOf(error)!.text, /<p id="p">two/)
    assert.ok(isPng(pageOf(error)!.screenshot))
  })

  it('ends with the signal', async () => {
    const controller = new AbortController()
    const visit = pool.pool.visit({ url: `${site.url}/mute`, browser: {} }, controller.signal)
    await site.wasAsked('/mute')
    controller.abort(new Error('enough'))
    await assert.rejects(visit, /enough/)
    await assert.rejects(pool.pool.visit({ url: `${site.url}/plain`, browser: {} }, controller.signal), /enough/)
  })
})

describe('slots', () => {
  it('are waited for in order, freed by release, and reported', async () => {
    await using small = await openTestPool({ slots: 1 })
    let told = 0
    small.pool.onFree(() => told++)
    const first = await small.visit(`${site.url}/plain`)
    const second = small.visit(`${site.url}/data`)
    assert.equal(small.pool.busy, 1)
    const stop = new AbortController()
    const third = small.pool.visit({ url: `${site.url}/plain`, browser: {} }, stop.signal)
    stop.abort(new Error('no more'))
    await assert.rejects(third, /no more/)
    first.release()
    first.release()
    const page = await second
    assert.equal(page.text, '{"a":[1,2]}')
    small.pool.resize(2)
    assert.equal(small.pool.slots, 2)
    assert.ok(told > 0)
    const other = await small.visit(`${site.url}/plain`)
    assert.equal(small.pool.busy, 2)
    page.release()
    other.release()
    await until(() => small.pool.busy === 0, 'all slots free')
  })

  it('are gone with the pool', async () => {
    const closed = await openTestPool()
    const page = await closed.visit(`${site.url}/plain`)
    const waiting = closed.visit(`${site.url}/silent`)
    const ended = assert.rejects(waiting)
    await closed[Symbol.asyncDispose]()
    await ended
    await assert.rejects(closed.pool.visit({ url: `${site.url}/plain`, browser: {} }, never), /closed/)
    page.release()
  })
})
