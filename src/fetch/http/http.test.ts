/** The transport against a misbehaving server: test/site/hostile.ts has the cases, this file the expected results. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type HostileSite, openHostileSite, redirect, respond } from '../../../test/site/hostile.ts'
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import { pageOf } from '../../core/failed-page.ts'
import type { Page } from '../../core/page.ts'
import type { FetchRequest } from '../contract.ts'
import { type HttpClient, type HttpOptions, openHttp } from './http.ts'

const PAGE = '<html><h1>whole page</h1></html>'
const never = new AbortController().signal
/** Long enough for a busy machine to answer what should be answered. */
const DEADLINE_MS = 1000

function options(site: HostileSite, more: Partial<HttpOptions> = {}): HttpOptions {
  return {
    userAgent: 'SluiceTest/1.0 (+https://example.com/bot)',
    timeoutMs: 5000,
    connectTimeoutMs: 1000,
    bodyBytesMax: 2_000_000,
    redirectsMax: 10,
    connectionsPerHost: 8,
    retryAfterMsMax: 3_600_000,
    allowPrivate: false,
    allowAddresses: [`127.0.0.1:${site.port}`],
    ...more,
  }
}

async function errorOf(page: Promise<Page>): Promise<ScrapeError> {
  const error = await page.then(
    (page) => assert.fail(`a page of status ${page.status}: ${page.text.slice(0, 80)}`),
    (error: unknown) => error,
  )
  if (!(error instanceof ScrapeError)) throw new Error('not a ScrapeError', { cause: error })
  return error
}

let site: HostileSite
let http: HttpClient
before(async () => {
  site = await openHostileSite()
  http = openHttp(options(site))
})
after(async () => {
  await http[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})

const get = (name: string, more: Omit<FetchRequest, 'url'> = {}, query?: Record<string, string>) =>
  http.exchange({ url: site.url(name, query), ...more }, never)

/** Each name is fetched and must end with this code, in time and without a page. */
function fails(expected: Partial<Record<ErrorCode, readonly string[]>>): void {
  for (const [code, names] of Object.entries(expected)) {
    for (const name of names) {
      it(`ends ${name} with ${code}`, async () => {
        const error = await errorOf(get(name))
        assert.equal(error.code, code, error.message)
        assert.ok(error.details.url?.startsWith(site.origin), `names the URL: ${error.details.url}`)
      })
    }
  }
}

function delivers(names: readonly string[], text = PAGE): void {
  for (const name of names) {
    it(`delivers ${name} whole`, async () => assert.equal((await get(name)).text, text))
  }
}

describe('a page', () => {
  it('has the request, the response and the timings', async () => {
    const page = await get('page')
    assert.equal(page.requestedUrl, site.url('page'))
    assert.equal(page.url, site.url('page'))
    assert.deepEqual(page.redirects, [])
    assert.equal(page.status, 200)
    assert.equal(page.contentType, 'text/html')
    assert.equal(page.charset, 'utf-8')
    assert.equal(page.text, PAGE)
    assert.deepEqual(page.bytes, { wire: 32, decoded: 32 })
    assert.ok(page.timings.firstByteMs > 0 && page.timings.totalMs >= page.timings.firstByteMs)
    assert.ok(Math.abs(page.fetchedAtMs - Date.now()) < 5000)
    assert.equal(page.fromCache, false)
  })

  it('counts bytes on the wire and after decoding separately', async () => {
    const page = await get('gzip')
    assert.equal(page.bytes.decoded, 32)
    assert.notEqual(page.bytes.wire, 32)
  })

  it('decodes its text once', async () => {
    const page = await get('charset-windows-1252')
    assert.equal(page.text, page.text)
    assert.equal(page.headers, page.headers)
  })

  it('sends who we are, and no other headers', async () => {
    const lines = (await get('echo')).text.split('\n')
    assert.deepEqual(lines, [
      `host: 127.0.0.1:${site.port}`,
      'connection: keep-alive',
      'user-agent: SluiceTest/1.0 (+https://example.com/bot)',
      'accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
      'accept-language: en,*;q=0.5',
      'accept-encoding: gzip, deflate, br, zstd',
    ])
  })

  it('lets the caller add and replace headers', async () => {
    const { text } = await get('echo', { headers: { authorization: 'Bearer x', 'accept-language': 'de' } })
    assert.match(text, /^authorization: Bearer x$/m)
    assert.match(text, /^accept-language: de$/m)
    assert.doesNotMatch(text, /en,/)
  })

  for (const name of ['host', 'connection', 'content-length', 'transfer-encoding', 'proxy-authorization']) {
    it(`does not let the caller set ${name}`, async () => {
      assert.equal((await errorOf(get('echo', { headers: { [name]: '1' } }))).code, 'E_DEFINITION')
    })
  }

  it('does not let a header value break out of its line', async () => {
    const error = await errorOf(get('echo', { headers: { 'x-a': 'b\r\nx-injected: 1' } }))
    assert.equal(error.code, 'E_DEFINITION')
  })

  it('keeps its connection for the next page', async () => {
    await using other = await openHostileSite()
    await using client = openHttp(options(other, { connectionsPerHost: 1 }))
    for (const name of ['page', 'gzip', 'redirect-relative', 'no-content', 'page']) {
      await client.exchange({ url: other.url(name) }, never)
    }
    assert.equal(other.connections, 1)
  })

  it('retries once if the server closed the kept-alive connection just then', async () => {
    await using other = await openHostileSite()
    await using client = openHttp(options(other, { connectionsPerHost: 1 }))
    let asked = 0
    other.on('moody', (socket, request, site) => {
      if (++asked === 2) socket.destroy()
      else respond(200, PAGE)(socket, request, site)
    })
    await client.exchange({ url: other.url('moody') }, never)
    assert.equal((await client.exchange({ url: other.url('moody') }, never)).text, PAGE)
    assert.equal(asked, 3)
  })
})

describe('slow servers', () => {
  let hasty: HttpClient
  before(() => {
    hasty = openHttp(options(site, { timeoutMs: DEADLINE_MS }))
  })
  after(() => hasty[Symbol.asyncDispose]())

  const expected: Partial<Record<ErrorCode, readonly string[]>> = {
    E_TIMEOUT_HEADERS: ['silent', 'slow-head'],
    E_TIMEOUT_BODY: ['stalled-body'],
    E_TIMEOUT_TOTAL: ['slow-body', 'slow-chain'],
    E_FORBIDDEN: ['slow-error-body'], // the status is what matters
  }
  describe('that never finish', { concurrency: true }, () => {
    for (const [code, names] of Object.entries(expected)) {
      for (const name of names) {
        it(`ends ${name} with ${code} at the deadline`, async () => {
          const startedAtMs = performance.now()
          const error = await errorOf(hasty.exchange({ url: site.url(name) }, never))
          const tookMs = performance.now() - startedAtMs
          assert.equal(error.code, code, error.message)
          assert.ok(tookMs > DEADLINE_MS - 20, `took ${tookMs} ms`)
        })
      }
    }
  })
  fails({ E_TOO_LARGE: ['endless-chunked', 'endless-until-close', 'large-and-close'] })
  delivers(['slow-redirect-body'])

  it('ends at the connect timeout if nothing accepts', async () => {
    // A lookup that never answers hangs like a server that drops packets, without needing one.
    await using client = openHttp(options(site, { connectTimeoutMs: 100, lookup: () => {} }))
    const error = await errorOf(client.exchange({ url: 'http://nowhere.test/' }, never))
    assert.equal(error.code, 'E_TIMEOUT_CONNECT')
  })

  it('leaves no connection behind', async () => {
    await using other = await openHostileSite()
    {
      await using client = openHttp(options(other, { timeoutMs: DEADLINE_MS }))
      await errorOf(client.exchange({ url: other.url('silent') }, never))
      await errorOf(client.exchange({ url: other.url('slow-body') }, never))
      await client.exchange({ url: other.url('page') }, never)
    }
    while (other.open > 0) await new Promise((resolve) => setImmediate(resolve))
  })
})

describe('an aborted signal', () => {
  for (const name of ['silent', 'slow-head', 'slow-body', 'slow-chain', 'slow-error-body']) {
    it(`stops ${name} at once with the signal’s own reason`, async () => {
      const controller = new AbortController()
      const reason = new Error('enough')
      const page = http.exchange({ url: site.url(name) }, controller.signal)
      setTimeout(() => controller.abort(reason), 20)
      await assert.rejects(page, (error) => error === reason)
    })
  }

  it('stops all requests it was given to', async () => {
    const controller = new AbortController()
    const pages = Array.from({ length: 20 }, () => http.exchange({ url: site.url('silent') }, controller.signal))
    controller.abort(new Error('all of you'))
    for (const page of await Promise.allSettled(pages)) {
      assert.equal(page.status === 'rejected' && page.reason.message, 'all of you')
    }
  })

  it('is obeyed before anything is sent', async () => {
    const count = site.requests.length
    await assert.rejects(http.exchange({ url: site.url('page') }, AbortSignal.abort(new Error('no'))), /no/)
    assert.equal(site.requests.length, count)
  })

  it('is obeyed while requests wait for a connection', async () => {
    await using client = openHttp(options(site, { connectionsPerHost: 1 }))
    const controller = new AbortController()
    const first = client.exchange({ url: site.url('silent') }, controller.signal)
    const second = client.exchange({ url: site.url('page') }, controller.signal)
    controller.abort(new Error('stop'))
    await assert.rejects(first, /stop/)
    await assert.rejects(second, /stop/)
  })
})

describe('a closed client', () => {
  it('ends its requests and may be closed twice', async () => {
    const client = openHttp(options(site))
    const page = errorOf(client.exchange({ url: site.url('silent') }, never))
    await client[Symbol.asyncDispose]()
    assert.equal((await page).code, 'E_CONNECTION')
    await client[Symbol.asyncDispose]()
    assert.equal((await errorOf(client.exchange({ url: site.url('page') }, never))).code, 'E_CONNECTION')
  })
})

describe('connections and framing', () => {
  fails({
    E_CONNECTION: ['reset-before-head', 'close-before-head', 'reset-in-head', 'close-in-head'],
    E_BODY_SHORT: [
      'reset-in-body',
      'close-in-body',
      'close-in-body-said',
      'close-in-chunk',
      'close-between-chunks',
      'close-between-chunks-said',
      'until-close-reset',
    ],
    E_PROTOCOL: [
      'length-twice',
      'length-twice-equal',
      'length-negative',
      'length-words',
      'length-huge',
      'length-and-chunked',
      'chunked-and-length',
      'chunk-size-bad',
      'chunk-size-negative',
      'chunk-size-huge',
      'chunk-no-newline',
      'http-0.9',
      'garbage',
      'status-words',
      'other-protocol',
      'early-hints-flood',
      'continue-flood',
      'status-000',
      'switching-unasked',
      'head-nul',
      'head-no-colon',
      'head-lf-only',
    ],
    E_STATUS: ['partial-unasked'],
    E_HEADERS_TOO_LARGE: ['head-huge', 'head-many', 'head-endless', 'trailers-huge'],
  })
  delivers(['continue-unasked', 'continue-thrice', 'surplus-after-body'])
  // Bytes after the announced end are dropped with the connection, as browsers do.
  delivers(['length-too-small', 'length-too-small-close'], '<html><h1>')
  delivers(['until-close', 'http-1.0', 'chunk-extensions', 'early-hints', 'head-large', 'page-and-close', 'line-after'])
  delivers(['no-content', 'no-content-with-body', 'no-content-then-garbage'], '')

  it('accepts a part that was requested', async () => {
    assert.equal((await get('partial-unasked', { headers: { range: 'bytes=0-31' } })).status, 206)
  })

  it('keeps odd headers unchanged', async () => {
    const { headers } = await get('head-odd-bytes')
    assert.equal(Object.getPrototypeOf(headers), null)
    assert.equal(Object.getOwnPropertyDescriptor(headers, '__proto__')?.value, 'polluted')
    assert.equal(headers['constructor'], 'x')
    assert.equal(headers['x-odd'], 'caf\xe9')
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
  })

  it('joins repeated headers, but not cookies', async () => {
    site.on('repeats', respond(200, '', { Vary: 'a\r\nVary: b', 'Set-Cookie': 'a=1\r\nSet-Cookie: b=2' }))
    const { headers } = await get('repeats')
    assert.equal(headers['vary'], 'a, b')
    assert.deepEqual(headers['set-cookie'], ['a=1', 'b=2'])
  })

  it('continues with the next page after each of these', async () => {
    assert.equal((await get('page')).text, PAGE)
  })

  it('reports that nothing listens', async () => {
    const gone = await openHostileSite()
    await gone[Symbol.asyncDispose]()
    await using client = openHttp(options(gone))
    assert.equal((await errorOf(client.exchange({ url: gone.url('page') }, never))).code, 'E_CONNECTION')
  })

  it('reads a body of exactly the limit, and not one byte more', async () => {
    assert.equal((await get('large', {}, { bytes: '2000000' })).body.length, 2_000_000)
    assert.equal((await errorOf(get('large', {}, { bytes: '2000001' }))).code, 'E_TOO_LARGE')
  })
})

describe('content encodings', () => {
  delivers([
    'gzip',
    'x-gzip',
    'gzip-shouting',
    'gzip-chunked',
    'br',
    'zstd',
    'deflate',
    'deflate-raw',
    'gzip-twice',
    'gzip-in-br',
    'encoding-identity',
    'redirect-encoded',
    'redirect-body-bomb',
  ])
  delivers(['gzip-two-members', 'zstd-two-frames'], PAGE + PAGE)
  delivers(['gzip-empty'], '')
  fails({
    E_ENCODING: [
      'gzip-cut',
      'gzip-cut-trailer',
      'gzip-cut-until-close',
      'gzip-none-until-close',
      'gzip-crc',
      'gzip-length',
      'gzip-corrupt',
      'gzip-trailing',
      'deflate-cut',
      'deflate-trailing',
      'br-cut',
      'br-trailing',
      'zstd-cut',
      'zstd-trailing',
      'zstd-window',
      'chain-4',
      'chain-1000',
      'encoding-unknown',
      'encoding-lies',
      'encoding-unsaid',
      'encoding-wrong',
    ],
    E_TOO_LARGE: ['bomb-gzip', 'bomb-br', 'bomb-zstd', 'bomb-double'],
  })

  it('decodes a large body off the event loop', async () => {
    assert.equal((await get('gzip-large')).body.length, 300_000)
  })
})

describe('charsets', () => {
  const texts: Record<string, readonly [charset: string, text: string]> = {
    'charset-utf-8': ['utf-8', 'žluťoučký kůň'],
    'charset-quoted': ['utf-8', 'kůň'],
    'charset-header': ['windows-1252', 'é'],
    'charset-bom-against-header': ['utf-8', 'ů'],
    'charset-header-against-meta': ['iso-8859-2', '<meta charset=utf-8>ů'],
    'charset-meta': ['windows-1251', '<meta charset="windows-1251">При'],
    'charset-xml': ['iso-8859-2', '<?xml version="1.0" encoding="iso-8859-2"?><a>ů</a>'],
    'charset-utf-16le': ['utf-16le', 'kůň'],
    'charset-utf-16be': ['utf-16be', 'kůň'],
    'charset-gb18030': ['gb18030', '你好'],
    'charset-windows-1252': ['windows-1252', '€“”'],
    'charset-none-utf-8': ['utf-8', 'kůň'],
    'charset-none-latin': ['windows-1252', 'café'],
    'charset-unknown': ['utf-8', 'plain'],
    'charset-invalid-bytes': ['utf-8', 'a\ufffdb'],
    'charset-json': ['utf-8', '{"a":"<meta charset=koi8-r> kůň"}'],
    'charset-untyped': ['windows-1251', '<meta charset=windows-1251>П'],
  }
  for (const [name, [charset, text]] of Object.entries(texts)) {
    it(`reads ${name} as ${charset}`, async () => {
      const page = await get(name)
      assert.equal(page.text, text)
      assert.equal(page.charset, charset)
    })
  }
  it('reads a meta in the old form, and one far down', async () => {
    assert.match((await get('charset-meta-http-equiv')).text, /日本$/)
    assert.match((await get('charset-meta-late')).text, /ů$/)
  })
  fails({
    E_CHARSET: [
      'charset-utf-7',
      'charset-utf-7-meta',
      'charset-replacement',
      'charset-replacement-meta',
      'charset-unknown-bytes',
    ],
  })
})

describe('redirects', () => {
  delivers([
    'redirect-relative',
    'redirect-spaces',
    'redirect-fragment',
    'redirect-dots',
    'redirect-backslash',
    'redirect-body-endless',
    'cookie-wall',
  ])
  fails({
    E_REDIRECT_LIMIT: ['redirect-loop', 'redirect-loop-2'],
    E_REDIRECT_BAD: ['redirect-nowhere', 'redirect-empty', 'redirect-huge', 'redirect-two'],
  })

  const asked = async (name: string) => {
    const page = await get(name)
    return { page, target: site.requests.at(-1)!.target }
  }

  it('records the redirects', async () => {
    const page = await get('redirect-chain', {}, { left: '3' })
    assert.equal(page.requestedUrl, site.url('redirect-chain', { left: '3' }))
    assert.deepEqual(page.redirects, ['3', '2', '1'].map((left) => site.url('redirect-chain', { left }))) // biome-ignore format: short
    assert.equal(page.url, site.url('page'))
  })

  it('drops the fragment and keeps the query as the server wrote it', async () => {
    assert.equal((await asked('redirect-fragment')).page.url, site.url('page'))
    assert.equal((await asked('redirect-query')).target, '/echo?b=2&a=1&utm_source=x')
  })

  it('understands spaces, UTF-8 and Latin-1 in a Location', async () => {
    assert.equal((await asked('redirect-inner-space')).target, '/echo/a%20b')
    assert.equal((await asked('redirect-utf-8')).target, '/echo/k%C5%AF%C5%88')
    assert.equal((await asked('redirect-latin-1')).target, '/echo/caf%C3%A9')
  })

  it('follows as many redirects as the limit allows, and no more', async () => {
    assert.equal((await get('redirect-chain', {}, { left: '10' })).redirects.length, 10)
    assert.equal((await errorOf(get('redirect-chain', {}, { left: '11' }))).code, 'E_REDIRECT_LIMIT')
  })

  for (const status of [300, 301, 302, 303, 307, 308]) {
    it(`follows a ${status}`, async () => {
      assert.equal((await get('redirect-status', {}, { status: String(status) })).text, PAGE)
    })
  }

  it('hands a redirect to a route that accepts it', async () => {
    assert.equal((await get('redirect-relative', { accept: [302] })).status, 302)
  })

  for (const to of [
    'file:///etc/passwd',
    'data:text/html,hello',
    'ftp://127.0.0.1/x',
    'gopher://127.0.0.1:70/_x',
    'unix:/run/docker.sock:/info',
    'javascript:alert(1)',
    'about:blank',
    'http://',
    'http://[::1',
    'http://a b/',
  ]) {
    it(`does not follow a redirect to ${to}`, async () => {
      assert.equal((await errorOf(get('redirect-to', {}, { to }))).code, 'E_REDIRECT_BAD')
    })
  }

  it('does not send credentials from a Location', async () => {
    const page = await get('redirect-credentials')
    assert.doesNotMatch(page.text, /authorization|secret/i)
    assert.doesNotMatch(page.url, /secret/)
  })

  describe('to another origin', () => {
    const secrets = { authorization: 'Bearer secret', cookie: 'session=secret', 'x-api-key': 'secret' }

    it('keeps the caller’s headers while the origin is the same', async () => {
      const { text } = await get('redirect-to', { headers: secrets }, { to: '/echo' })
      assert.equal(text.match(/secret/g)?.length, 3)
    })

    it('drops them if only the port changes, and does not restore them on the way back', async () => {
      await using other = await openHostileSite()
      const back = other.url('redirect-to', { to: site.url('echo') })
      await using client = openHttp(
        options(site, { allowAddresses: [`127.0.0.1:${site.port}`, `127.0.0.1:${other.port}`] }),
      )
      const url = site.url('redirect-to', { to: back })
      const { text } = await client.exchange({ url, headers: secrets }, never)
      assert.doesNotMatch(text, /secret/)
      assert.doesNotMatch(other.requests[0]!.lines.join(), /secret/)
      assert.match(text, /user-agent: SluiceTest/)
    })

    it('drops them if only the host changes', async () => {
      await using client = openHttp(
        options(site, { allowAddresses: [`127.0.0.1:${site.port}`, `localhost:${site.port}`] }),
      )
      const url = site.url('redirect-to', { to: `http://localhost:${site.port}/echo` })
      const { text } = await client.exchange({ url, headers: secrets }, never)
      assert.doesNotMatch(text, /secret/)
    })

    it('does not carry the chain’s cookies to another port either', async () => {
      await using other = await openHostileSite()
      await using client = openHttp(
        options(site, { allowAddresses: [`127.0.0.1:${site.port}`, `127.0.0.1:${other.port}`] }),
      )
      await client.exchange({ url: site.url('cookie-then-leave', { to: other.url('echo') }) }, never)
      assert.equal(other.requests[0]!.headers['cookie'], undefined)
      await client.exchange({ url: site.url('cookie-then-leave', { to: '/echo' }) }, never)
      assert.equal(site.requests.at(-1)!.headers['cookie'], 'secret=1')
    })

    it('adds the chain’s cookies to the caller’s', async () => {
      const { text } = await get('cookie-then-leave', { headers: { cookie: 'mine=1' } }, { to: '/echo' })
      assert.match(text, /^cookie: mine=1; secret=1$/m)
    })

    it('calls back before every redirect, outside the deadline', async () => {
      await using other = await openHostileSite()
      await using client = openHttp(
        options(site, {
          timeoutMs: DEADLINE_MS,
          allowAddresses: [`127.0.0.1:${site.port}`, `127.0.0.1:${other.port}`],
        }),
      )
      const asked: string[] = []
      const url = site.url('redirect-to', { to: other.url('redirect-relative') })
      const page = await client.exchange({ url }, never, async (target, signal) => {
        assert.equal(signal, never)
        assert.equal(other.requests.length, asked.length, 'before anything is sent there')
        asked.push(target)
        if (asked.length === 1) await new Promise((resolve) => setTimeout(resolve, DEADLINE_MS + 100))
      })
      assert.equal(page.text, PAGE)
      assert.deepEqual(asked, [other.url('redirect-relative'), other.url('page')])
    })

    it('ends with the reason for which a redirect is refused', async () => {
      const refuse = () => Promise.reject(new ScrapeError('E_ROBOTS', 'not there'))
      const error = await errorOf(http.exchange({ url: site.url('redirect-relative') }, never, refuse))
      assert.equal(error.code, 'E_ROBOTS')
    })

    it('obeys the signal during the redirect callback', async () => {
      const controller = new AbortController()
      const wait = () => new Promise<void>((resolve) => controller.signal.addEventListener('abort', () => resolve()))
      const page = http.exchange({ url: site.url('redirect-relative') }, controller.signal, wait)
      setTimeout(() => controller.abort(new Error('enough')), 20)
      await assert.rejects(page, /enough/)
    })
  })
})

describe('statuses', () => {
  const codes: Record<number, ErrorCode> = {
    304: 'E_STATUS',
    305: 'E_STATUS',
    400: 'E_STATUS',
    401: 'E_UNAUTHORIZED',
    403: 'E_FORBIDDEN',
    404: 'E_NOT_FOUND',
    407: 'E_STATUS',
    410: 'E_NOT_FOUND',
    418: 'E_STATUS',
    429: 'E_RATE_LIMITED',
    451: 'E_STATUS',
    500: 'E_SERVER',
    502: 'E_SERVER',
    503: 'E_SERVER',
    599: 'E_SERVER',
    999: 'E_STATUS',
  }
  for (const [status, code] of Object.entries(codes)) {
    it(`reports a ${status} as ${code} and keeps its page`, async () => {
      const error = await errorOf(get('status', {}, { code: status }))
      assert.equal(error.code, code)
      assert.equal(error.details.status, Number(status))
      const page = pageOf(error)
      assert.equal(page?.status, Number(status))
      if (status !== '304') assert.equal(page?.text, `<h1>status ${status}</h1>`)
    })
  }

  for (const status of ['200', '201', '203', '299']) {
    it(`treats a ${status} as a page`, async () =>
      assert.equal((await get('status', {}, { code: status })).status, +status))
  }

  it('hands the route the statuses it accepts', async () => {
    const page = await get('status', { accept: [404, 500] }, { code: '404' })
    assert.equal(page.text, '<h1>status 404</h1>')
  })

  it('obeys Retry-After, within its limit', async () => {
    const wait = async (code: string, retryAfter?: string) => {
      const query: Record<string, string> = retryAfter === undefined ? { code } : { code, 'retry-after': retryAfter }
      return (await errorOf(get('status', {}, query))).details.retryAfterMs
    }
    assert.equal(await wait('429'), 30_000)
    assert.equal(await wait('429', '7'), 7000)
    assert.equal(await wait('429', '-7'), 30_000)
    assert.equal(await wait('429', '99999999999'), 3_600_000)
    assert.equal(await wait('429', 'soon'), 30_000)
    assert.equal(await wait('503', '5'), 5000)
    assert.equal(await wait('503'), undefined)
    assert.equal(await wait('500', '5'), undefined)
  })

  it('keeps the start of an endless error page', async () => {
    const error = await errorOf(get('status-error-huge'))
    assert.equal(error.code, 'E_NOT_FOUND')
    const { length } = pageOf(error)!.body
    assert.ok(length > 1000 && length <= 65_536, `${length} bytes`)
  })

  it('keeps what arrived of a truncated error page, and decodes it if possible', async () => {
    assert.equal(pageOf(await errorOf(get('status-error-cut')))?.text, '<h1>oops')
    assert.equal(pageOf(await errorOf(get('status-error-gzip')))?.text, '<h1>captcha</h1>')
    assert.equal(pageOf(await errorOf(get('status-error-bad-gzip')))?.text, '')
  })
})

describe('URLs', () => {
  it('does not request one that is too long', async () => {
    const url = `${site.origin}/${'x'.repeat(1_000_000)}`
    assert.equal((await errorOf(http.exchange({ url }, never))).code, 'E_URL_INVALID')
  })

  for (const url of ['', 'page', 'ftp://a.test/', 'http://', 'http:///x', 'HTTP://A.test/', 'http://u:p@a.test/']) {
    it(`refuses ${JSON.stringify(url)}, which is not normalised`, async () => {
      assert.equal((await errorOf(http.exchange({ url }, never))).code, 'E_URL_INVALID')
    })
  }

  it('refuses spaces in a path', async () => {
    assert.equal((await errorOf(http.exchange({ url: `${site.origin}/a b` }, never))).code, 'E_URL_INVALID')
  })

  it('fetches the root without a path', async () => {
    assert.equal((await errorOf(http.exchange({ url: site.origin }, never))).code, 'E_NOT_FOUND')
    assert.equal(site.requests.at(-1)!.target, '/')
  })
})

describe('many at once', () => {
  it('fetches good pages among hostile ones', async () => {
    const names = [
      'page',
      'close-in-body',
      'gzip-crc',
      'redirect-loop',
      'page',
      'garbage',
      'until-close',
      'cookie-wall',
    ]
    const results = await Promise.allSettled(Array.from({ length: 80 }, (_, i) => get(names[i % names.length]!)))
    const good = results.filter((result) => result.status === 'fulfilled' && result.value.text === PAGE)
    assert.equal(good.length, 40)
  })

  it('follows many kinds of redirects concurrently', async () => {
    site.on('hop', (socket, request, at) => redirect(`/echo?${request.query}`)(socket, request, at))
    const pages = await Promise.all(Array.from({ length: 50 }, (_, i) => get('hop', {}, { n: String(i) })))
    pages.forEach((page, i) => {
      assert.equal(page.url, site.url('echo', { n: String(i) }))
    })
  })
})
