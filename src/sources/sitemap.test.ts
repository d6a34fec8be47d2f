import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { constants, gunzipSync, gzipSync } from 'node:zlib'
import { ScrapeError } from '../core/errors.ts'
import { ownHosts } from './own-hosts.ts'
import { type FetchBytes, readSitemap, type SitemapLimits, type SitemapPage } from './sitemap.ts'

const ROOT = 'https://a.example/sitemap.xml'

type Files = Record<string, string | Uint8Array>

/** Reads a site that consists of the given files; anything else is a 404. */
async function read(files: Files | string | Uint8Array, limits: SitemapLimits = {}) {
  const site = typeof files === 'string' || files instanceof Uint8Array ? { [ROOT]: files } : files
  const asked: string[] = []
  const problems: string[] = []
  const fetchBytes: FetchBytes = async function* (url) {
    asked.push(url)
    const file = site[url]
    if (file === undefined) throw new ScrapeError('E_NOT_FOUND', `status 404 from ${url}`)
    const bytes = Buffer.from(file)
    for (let at = 0; at < bytes.length; at += 7777) yield bytes.subarray(at, at + 7777)
  }
  const pages: SitemapPage[] = []
  const invalid: string[] = []
  const onProblem = ({ message }: { message: string }) => void problems.push(message)
  for await (const entry of readSitemap(ROOT, fetchBytes, { onProblem, ...limits })) {
    if ('error' in entry) invalid.push(`${entry.error.code} ${entry.text.slice(0, 20)}`)
    else pages.push(entry)
  }
  return { pages, urls: pages.map((page) => page.url), invalid, asked, problems }
}

const urlset = (...paths: string[]) =>
  `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${paths
    .map((path) => `<url><loc>https://a.example${path}</loc></url>`)
    .join('')}</urlset>`

const index = (...urls: string[]) =>
  `<sitemapindex>${urls.map((url) => `<sitemap><loc>${url}</loc></sitemap>`).join('')}</sitemapindex>`

test('reads pages with their metadata', async () => {
  const { pages } = await read(`<urlset>
    <url><loc> https://a.example/b?y=1&amp;x=2 </loc><lastmod>2026-01-02</lastmod><priority>0.8</priority></url>
    <url><loc><![CDATA[https://a.example/c]]></loc><priority>high</priority></url>
    <url><loc>/relative</loc></url>
  </urlset>`)
  assert.deepEqual(pages, [
    { url: 'https://a.example/b?x=2&y=1', lastmod: '2026-01-02', priority: 0.8 },
    { url: 'https://a.example/c' },
    { url: 'https://a.example/relative' },
  ])
})

test('does not mistake images and translations for pages', async () => {
  const { urls } = await read(`<urlset><url>
    <image:image><image:loc>https://a.example/x.png</image:loc></image:image>
    <xhtml:link rel="alternate" href="https://a.example/de"/>
    <loc>https://a.example/page</loc></url></urlset>`)
  assert.deepEqual(urls, ['https://a.example/page'])
})

test('reads files that prefix every name', async () => {
  const { urls } = await read(`<sm:urlset><sm:url><sm:loc>https://a.example/p</sm:loc></sm:url></sm:urlset>`)
  assert.deepEqual(urls, ['https://a.example/p'])
})

test('follows an index in its order, each file once, three deep', async () => {
  const { urls, asked, problems } = await read({
    [ROOT]: index('https://a.example/1.xml', ROOT, '/2.xml', 'https://a.example/1.xml', 'ftp://a.example/3.xml'),
    'https://a.example/1.xml': index('https://a.example/1a.xml', ROOT),
    'https://a.example/1a.xml': urlset('/x').replace('<url>', '<sitemap><loc>/deeper.xml</loc></sitemap><url>'),
    'https://a.example/2.xml': urlset('/y'),
  })
  assert.deepEqual(urls, ['https://a.example/x', 'https://a.example/y'])
  assert.deepEqual(asked, [ROOT, 'https://a.example/1.xml', 'https://a.example/1a.xml', 'https://a.example/2.xml'])
  assert.deepEqual(problems, ['not followed, too deep or too many files: https://a.example/deeper.xml'])
})

test('reads no file twice because of a fragment', async () => {
  const { asked } = await read({
    [ROOT]: index(`${ROOT}#me`, '/1.xml#a', '/1.xml#b', '/1.xml'),
    'https://a.example/1.xml': urlset('/x'),
  })
  assert.deepEqual(asked, [ROOT, 'https://a.example/1.xml'])
})

test('continues if one file of an index is missing, and fails if the first one is', async () => {
  const { urls, problems } = await read({
    [ROOT]: index('https://a.example/gone.xml', 'https://a.example/2.xml'),
    'https://a.example/2.xml': urlset('/y'),
  })
  assert.deepEqual(urls, ['https://a.example/y'])
  assert.deepEqual(problems, ['status 404 from https://a.example/gone.xml'])
  await assert.rejects(read({}), { code: 'E_NOT_FOUND' })
})

test('unpacks gzip whatever the name, and reads the intact part of a damaged file', async () => {
  const packed = gzipSync(urlset('/a', '/b'))
  assert.deepEqual((await read(packed)).urls, ['https://a.example/a', 'https://a.example/b'])
  const paths = Array.from({ length: 5000 }, (_, i) => `/${i}-${Math.random()}`)
  const long = gzipSync(urlset(...paths))
  const cut = await read(long.subarray(0, long.length / 2))
  assert.ok(cut.urls.length > 1000 && cut.urls.length < 4000, `${cut.urls.length} of a file cut in the middle`)
  assert.match(cut.problems.join('\n'), /^damaged or cut gzip \(unexpected end of file\)/)
  const damaged = Buffer.from(long)
  damaged.fill(0, long.length >> 1, (long.length >> 1) + 100)
  const { urls, problems } = await read(damaged)
  assert.ok(urls.length > 500, `${urls.length} before the damage`)
  assert.ok(problems.length >= 1) // from gzip or XML, whichever notices first
})

test('loses no entries before the end of a truncated file', async () => {
  const paths = Array.from({ length: 5000 }, (_, i) => `/${i}-${Math.random()}`)
  const file = urlset(...paths)
  const long = gzipSync(file)
  for (const part of [0.1, 0.35, 0.6, 0.85, 0.999]) {
    const cut = long.subarray(0, long.length * part)
    const text = gunzipSync(cut, { finishFlush: constants.Z_SYNC_FLUSH }).toString()
    assert.equal((await read(cut)).urls.length, text.split('</url>').length - 1)
  }
})

test('reads a gzip file followed by zeros, and one with several members', async () => {
  const whole = gzipSync(urlset('/a', '/b'))
  const { urls, problems } = await read(Buffer.concat([whole, Buffer.alloc(100_000)]))
  assert.deepEqual([urls.length, problems], [2, []])
  const file = urlset('/a', '/b')
  const parts = Buffer.concat([gzipSync(file.slice(0, 100)), gzipSync(file.slice(100))])
  assert.deepEqual(await read(parts).then((found) => [found.urls.length, found.problems]), [2, []])
})

test('holds no more of an entry than a URL may have', async () => {
  const long = `ftp://a.example/${'x'.repeat(500_000)}`
  const fetchBytes: FetchBytes = async function* () {
    yield Buffer.from(`<urlset><url><loc>${long}</loc></url></urlset>`)
  }
  for await (const entry of readSitemap(ROOT, fetchBytes)) assert.ok('error' in entry && entry.text.length < 20_000)
})

test('reports a file that is truncated, a web page, or without entries, and uses what can be read', async () => {
  const cut = urlset('/a', '/b', '/c').slice(0, -20)
  assert.deepEqual(await read(cut).then(({ urls, problems }) => [urls.length, problems]), [
    2,
    ['it ends inside <loc>, as if it had been cut off; the rest is skipped'],
  ])
  const page = '<html><body><p>Not found<br></body></html>'
  for (const head of ['', '<!doctype html>', '<!DOCTYPE html>', '<!-- x -->'])
    assert.deepEqual((await read(head + page)).problems, [
      'a web page (HTML) instead of a sitemap; the rest is skipped',
    ])
  for (const file of ['', '  \n', '{}', 'no list of URLs', '<urlset></urlset>', '<?xml vers', gzipSync('')]) {
    const { urls, problems } = await read(file)
    assert.deepEqual([urls, problems], [[], ['there is not one entry in it']], String(file))
  }
  const { urls, problems } = await read(urlset('/a', '/b').replace('</urlset>', '</b></urlset>'))
  assert.equal(urls.length, 2)
  assert.match(problems.join('\n'), /^not well-formed XML \(1:\d+: unexpected close tag\.\); what can be read is used$/)
  assert.deepEqual((await read(urlset('/a'))).problems, [])
})

test('stops at the limits of a file and reports it', async () => {
  const paths = Array.from({ length: 300 }, (_, i) => `/${i}`)
  const many = await read(urlset(...paths), { urlsMax: 100 })
  assert.equal(many.urls.length, 100)
  assert.deepEqual(many.problems, ['more than 100 entries; the rest is skipped'])
  const large = await read(urlset(...paths), { bytesMax: 1000 })
  assert.ok(large.urls.length > 10 && large.urls.length < 30)
  assert.deepEqual(large.problems, ['more than 1000 bytes; the rest is skipped'])
})

test('does not unpack a bomb', async () => {
  const bomb = gzipSync(Buffer.alloc(64 * 1024 ** 2, ' '), { level: 1 })
  const startedRss = process.memoryUsage().rss
  const { urls, problems } = await read(bomb, { bytesMax: 10 * 1024 ** 2 })
  assert.deepEqual(urls, [])
  assert.deepEqual(problems, ['more than 10485760 bytes; the rest is skipped'])
  assert.ok(process.memoryUsage().rss - startedRss < 100 * 1024 ** 2)
})

test('skips broken parts in the middle and keeps the rest', async () => {
  const good = urlset('/a', '/b')
  const broken: Record<string, string | Buffer> = {
    'bad bytes': Buffer.from(
      good.replace('</urlset>', '<url><loc>\xff\xfe\x00\x01</loc></url><url><loc>/z</loc></url></urlset>'),
      'latin1',
    ),
    'a bare ampersand': good.replace('</urlset>', '<url><loc>/q?a=1&b</loc></url><url><loc>/z</loc></url></urlset>'),
    'a tag never closed': good.replace('</urlset>', '<url><loc>/q<url><loc>/z</loc></url></urlset>'),
    'a tag never opened': good.replace('</urlset>', '</b></url><url><loc>/z</loc></url></urlset>'),
    'a second root': `${good}<urlset><url><loc>/z</loc></url></urlset>`,
    'text around': `  \n${good.replace('</urlset>', 'oops <url><loc>/z</loc></url></urlset> end')}`,
  }
  for (const [what, file] of Object.entries(broken)) {
    const { urls } = await read(file)
    const found = ['/a', '/b', '/z'].map((path) => urls.includes(`https://a.example${path}`))
    assert.deepEqual(found, [true, true, true], `${what}: ${urls}`)
  }
})

test('expands no entity and reads no other file through a DTD', async () => {
  const { urls, asked } = await read(`<?xml version="1.0"?><!DOCTYPE urlset [
    <!ENTITY file SYSTEM "file:///etc/passwd"> <!ENTITY a "https://a.example/"> <!ENTITY b "&a;&a;&a;"> ]>
    <urlset><url><loc>&b;</loc></url><url><loc>https://a.example/&file;</loc></url><url><loc>https://a.example/ok</loc></url></urlset>`)
  assert.ok(urls.includes('https://a.example/ok'))
  assert.ok(!urls.some((url) => url.includes('root')))
  assert.deepEqual(asked, [ROOT])
})

test('gives up on a file of only open tags', async () => {
  const { urls, problems } = await read('<a>'.repeat(1_000_000))
  assert.deepEqual(urls, [])
  assert.deepEqual(problems, ['tags nested more than 64 deep; the rest is skipped'])
})

test('reads RSS, Atom and plain lists', async () => {
  const rss = `<rss><channel><link>https://a.example/</link><item><title>x</title><link>https://a.example/r</link>
    <pubDate>Mon, 05 Jan 2026 10:00:00 GMT</pubDate></item></channel></rss>`
  assert.deepEqual((await read(rss)).pages, [{ url: 'https://a.example/r', lastmod: 'Mon, 05 Jan 2026 10:00:00 GMT' }])
  const atom = `<feed><link href="https://a.example/"/><entry><link rel="edit" href="/e"/><link href="/a1"/>
    <updated>2026-01-05</updated></entry></feed>`
  assert.deepEqual((await read(atom)).pages, [{ url: 'https://a.example/a1', lastmod: '2026-01-05' }])
  const list = '\uFEFFhttps://a.example/1\r\n\n# no URL\nhttps://a.example/2'
  assert.deepEqual((await read(list)).urls, ['https://a.example/1', 'https://a.example/2'])
})

const HOSTILE: Record<string, [string, string, RegExp]> = {
  'control characters': ['<urlset><url><loc>', '\x01', /^more than 1000 faults in the XML \(the first: .*disallowed/],
  'opening brackets': ['<urlset>', '<', /^more than 1000 faults/],
  'characters that may not be named': ['<urlset><url><loc>', '&#1;', /^more than 1000 faults/],
  'tags that do not match': ['<urlset>', '<p></q>', /^tags nested more than 64 deep|^more than 1000 faults/],
  'closing tags nobody opened': ['<urlset>', '</b>', /^more than 1000 faults/],
  'bare ampersands': ['<urlset><url><loc>', '&', /^more than 1048576 characters without a tag/],
  'one comment': ['<urlset><!--', 'x', /^more than 1048576 characters without a tag/],
  'one name': ['<', 'x', /^more than 1048576 characters without a tag/],
  attributes: ['<urlset ', 'a="1" ', /^more than 1000 faults|^more than 1048576 characters without a tag/],
}

for (const [what, [head, filling, said]] of Object.entries(HOSTILE)) {
  test(`gives up soon on a file of ${what}, and lets other work run in the meantime`, async () => {
    const PIECE_BYTES = 65_536
    const body = Buffer.concat([Buffer.from(head), Buffer.alloc(5 * 1024 ** 2, filling)])
    let sent = 0
    const inPieces: FetchBytes = async function* () {
      for (; sent < body.length; sent += PIECE_BYTES) yield body.subarray(sent, sent + PIECE_BYTES)
    }
    const asOne: FetchBytes = async function* () {
      yield body
    }
    for (const fetchBytes of [inPieces, asOne]) {
      const problems: string[] = []
      let turns = 0
      let isOver = false
      const count = () => {
        turns++
        if (!isOver) setImmediate(count)
      }
      setImmediate(count)
      for await (const _ of readSitemap(ROOT, fetchBytes, { onProblem: ({ message }) => problems.push(message) }));
      isOver = true
      const pieces = Math.ceil(sent / PIECE_BYTES) // one for each turn, not all of them in one
      assert.ok(sent <= 1024 ** 2 + 2 * PIECE_BYTES, `${sent} bytes were read`)
      assert.ok(turns >= pieces - 1, `${turns} turns of the event loop in ${pieces} pieces`)
      assert.match(problems.at(-1)!, said)
      assert.ok(problems.length <= 2, problems.join('\n'))
    }
  })
}

test('reads an entity that is split between two chunks', async () => {
  const file = `${urlset().replace('</urlset>', '')}<url><loc>/${'x'.repeat(7777 - 4 - urlset().length + 9 - 12)}?a&amp;b&c</loc></url></urlset>`
  for (let shift = 0; shift < 12; shift++) {
    const { urls } = await read(`${' '.repeat(shift)}${file}`)
    assert.ok(urls[0]?.endsWith('?a&b&c'), urls[0])
  }
})

test('reads other encodings by BOM and declaration', async () => {
  const utf16 = Buffer.from(`\uFEFF${urlset('/é')}`, 'utf16le')
  assert.deepEqual((await read(utf16)).urls, ['https://a.example/%C3%A9'])
  const latin1 = Buffer.from(urlset('/é').replace('UTF-8', 'ISO-8859-1'), 'latin1')
  assert.deepEqual((await read(latin1)).urls, ['https://a.example/%C3%A9'])
})

test('returns entries that are not pages as such, in order', async () => {
  const { urls, invalid, problems } = await read(
    `<urlset><url><loc>mailto:a@b</loc></url><url><loc></loc></url><url><loc>${'/'.repeat(9000)}</loc></url>
     <url><loc>/ok</loc></url></urlset>`,
  )
  assert.deepEqual(urls, ['https://a.example/ok'])
  assert.deepEqual(invalid, ['E_URL_SCHEME mailto:a@b', `E_URL_INVALID ${'/'.repeat(20)}`])
  assert.deepEqual(problems, [])
  const order: string[] = []
  const file = `<urlset>${['http://[1', '/2', 'ftp://3'].map((loc) => `<url><loc>${loc}</loc></url>`).join('')}</urlset>`
  const fetchBytes: FetchBytes = async function* () {
    yield Buffer.from(file)
  }
  for await (const entry of readSitemap(ROOT, fetchBytes)) order.push('error' in entry ? entry.text : entry.url)
  assert.deepEqual(order, ['http://[1', 'https://a.example/2', 'ftp://3'])
})

test('reads 50,000 URLs from a server as a stream, and stops when aborted', async (t) => {
  const paths = Array.from({ length: 50_000 }, (_, i) => `/jobs/${i}`)
  const file = gzipSync(urlset(...paths))
  const server = createServer((_, response) => response.end(file))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sitemap.xml.gz`
  const fetchBytes: FetchBytes = async function* (at, signal) {
    yield* (await fetch(at, { signal })).body as unknown as AsyncIterable<Uint8Array>
  }
  let count = 0
  for await (const _ of readSitemap(url, fetchBytes)) count++
  assert.equal(count, 50_000)
  const stop = new AbortController()
  await assert.rejects(async () => {
    for await (const _ of readSitemap(url, fetchBytes, { signal: stop.signal })) stop.abort(new Error('enough'))
  }, /enough/)
})

test('reads a file with more entries than the protocol allows, and all files together up to the limit', async () => {
  const paths = Array.from({ length: 60_000 }, (_, i) => `/${i}`)
  const whole = await read(urlset(...paths))
  assert.deepEqual([whole.urls.length, whole.problems], [60_000, []])
  const names = ['1', '2', '3'].map((name) => `https://a.example/${name}.xml`)
  const files = Object.fromEntries(names.map((name) => [name, urlset('/a', '/b', '/c')]))
  const cut = await read({ [ROOT]: index(...names), ...files }, { urlsMax: 6 })
  assert.equal(cut.urls.length, 3, 'entries of the index count, too')
  assert.deepEqual(cut.problems, ['2 files not read: the limit on entries is reached'])
})

test('skips pages and files of other hosts, and counts them by host', async () => {
  const locs = ['/1', 'https://www.a.example/2', 'http://a.example/3', 'https://b.example/4', 'https://b.example/5']
  const more = ['https://a.example:8443/6', 'http://169.254.169.254/7', 'https://a.example.evil.test/8']
  const file = `<urlset>${[...locs, ...more].map((loc) => `<url><loc>${loc}</loc></url>`).join('')}</urlset>`
  const isOwn = ownHosts({ sites: ['https://a.example/shop'] })
  const { urls, problems } = await read(file, { isOwn })
  assert.deepEqual(urls, ['https://a.example/1', 'https://www.a.example/2', 'http://a.example/3'])
  assert.deepEqual(problems, [
    '5 entries for other hosts skipped: b.example (2), a.example:8443 (1), 169.254.169.254 (1), a.example.evil.test (1)',
  ])
  const also = await read(file, { isOwn: ownHosts({ sites: [ROOT], more: ['b.example'] }) })
  assert.equal(also.urls.length, 5)
  assert.equal((await read(file, { isOwn: ownHosts({ sites: [ROOT], isAny: true }) })).urls.length, 8)
  const foreign = await read({ [ROOT]: index('https://b.example/s.xml') }, { isOwn })
  assert.deepEqual(foreign.asked, [ROOT])
})
