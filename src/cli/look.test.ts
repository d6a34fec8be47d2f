/** The commands that inspect one page, as processes against sites on loopback. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startBooksSite } from '../../test/site/books.ts'
import { sluice, temporaryFolder } from '../../test/sluice.ts'

const ROBOTS = 'User-agent: *\nDisallow: /catalogue/page-3.html\nCrawl-delay: 1\nSitemap: /map.xml\n'
const site = await startBooksSite({ products: 60, robots: ROBOTS })
const folder = temporaryFolder()

/** For what the book shop does not have: redirects, sitemaps, compressed pages, odd headers. */
const server = createServer((request, response) => {
  const { url, headers } = request
  const send = (type: string, body: string | Buffer, more: Record<string, string> = {}) =>
    response.writeHead(200, { 'content-type': type, ...more }).end(body)
  if (url === '/moved') response.writeHead(302, { location: '/zipped' }).end()
  else if (url === '/zipped')
    send('text/html; charset=iso-8859-1', gzipSync(Buffer.from('<h1>caf\xe9</h1>'.repeat(99), 'latin1')), {
      'content-encoding': 'gzip',
    })
  else if (url === '/echo') send('application/json', JSON.stringify(headers))
  else if (url === '/inside') response.writeHead(302, { location: 'http://127.0.0.1:1/secret' }).end()
  else if (url === '/sitemap.xml')
    send(
      'application/xml',
      `<urlset>${Array.from({ length: 9 }, (_, i) => `<url><loc>/p/${i}</loc></url>`).join('')}<url><loc>http://elsewhere.test/</loc></url></urlset>`,
    )
  else if (url === '/links')
    send(
      'text/html',
      '<a href="/a">a</a><a href="http://elsewhere.test/">b</a><a href="/forbidden/x">c</a><a href="/odd">d</a>',
    )
  else if (url === '/robots.txt') send('text/plain', 'User-agent: *\nDisallow: /forbidden/\n')
  else response.writeHead(404).end('none')
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const other = `http://127.0.0.1:${(server.address() as { port: number }).port}`

after(async () => {
  await site[Symbol.asyncDispose]()
  server.closeAllConnections()
  server.close()
  folder[Symbol.dispose]()
})

const json = (result: { stdout: string }) => JSON.parse(result.stdout)

describe('sluice fetch', { concurrency: 2 }, () => {
  test('shows the response, decoded and after redirects', async () => {
    const result = await sluice(['fetch', `${other}/moved`, '--allow-private', '--json'])
    const { ok, status, finalUrl, redirects, charset, bytes, timings, error } = json(result)
    assert.deepEqual([result.code, ok, status, error], [0, true, 200, null])
    assert.deepEqual([finalUrl, redirects], [`${other}/zipped`, [`${other}/moved`]])
    assert.equal(charset, 'windows-1252')
    assert.ok(bytes.wire < bytes.decoded && timings.totalMs <= timings.chainMs)
  })

  test('accepts a typed private address, and is not redirected to another one', async () => {
    const typed = await sluice(['fetch', site.url])
    assert.equal(typed.code, 0)
    assert.match(typed.stdout, /^200 http:.*\n {2}type {2}text\/html · utf-8\n/)
    const led = await sluice(['fetch', `${other}/inside`, '--json'])
    assert.deepEqual([led.code, json(led).error.code], [1, 'E_PRIVATE_ADDRESS'])
  })

  test('says what a run would do about a page that cannot be fetched', async () => {
    const result = await sluice(['fetch', `${other}/nothing`, '--allow-private'])
    assert.equal(result.code, 1)
    assert.match(result.stdout, /^404 /)
    assert.match(result.stderr, /error E_NOT_FOUND[\s\S]*fix: [\s\S]*in a run: drop/)
  })

  test('obeys robots.txt unless told not to', async () => {
    const url = `${site.url}catalogue/page-3.html`
    const refused = await sluice(['fetch', url, '--allow-private', '--json'])
    assert.deepEqual([refused.code, json(refused).error.code, json(refused).error.verdict], [1, 'E_ROBOTS', 'drop'])
    assert.equal((await sluice(['fetch', url, '--allow-private', '--robots', 'ignore', '--quiet'])).code, 0)
  })

  test('prints only the decoded text, and sends the given headers', async () => {
    const body = await sluice(['fetch', `${other}/zipped`, '--allow-private', '--body'])
    assert.equal(body.stdout, '<h1>café</h1>'.repeat(99))
    const headers = ['--header', 'X-One: 1', '--header', 'accept: application/json']
    const echoed = json(await sluice(['fetch', `${other}/echo`, '--allow-private', '--body', ...headers]))
    assert.deepEqual([echoed['x-one'], echoed.accept], ['1', 'application/json'])
  })

  test('reports an unwritable screenshot file before it starts a browser', async () => {
    const result = await sluice(['fetch', other, '--allow-private', '--screenshot', '/nonexist/x.png'])
    assert.equal(result.code, 2)
    assert.match(result.stderr, /error E_OUTPUT {2}--screenshot \/nonexist\/x\.png cannot be written: ENOENT/)
    const inFolder = await sluice(['fetch', other, '--allow-private', '--screenshot', folder.path])
    assert.match(inFolder.stderr, /E_OUTPUT.*EISDIR/)
  })

  test('exits with 2 for an invalid URL or header', async () => {
    const noScheme = await sluice(['fetch', 'shop.example/x'])
    assert.equal(noScheme.code, 2)
    assert.match(noScheme.stderr, /perhaps: https:\/\/shop\.example\/x/)
    assert.equal((await sluice(['fetch', 'ftp://shop.example/'])).code, 2)
    assert.equal((await sluice(['fetch', other, '--header', 'nonsense'])).code, 2)
    assert.equal((await sluice(['fetch', other, '--timeout', 'soon'])).code, 2)
  })
})

describe('sluice robots and map', { concurrency: 2 }, () => {
  test('name the line that decides', async () => {
    const forbidden = await sluice(['robots', `${site.url}catalogue/page-3.html`, '--allow-private'])
    assert.equal(forbidden.code, 1)
    assert.match(
      forbidden.stdout,
      /^forbidden for sluice: [\s\S]*line +2: Disallow: \/catalogue\/page-3\.html\n[\s\S]*delay +1 s/,
    )
    const allowed = await sluice(['robots', site.url, '--allow-private', '--json'])
    const { isAllowed, group, rule, crawlDelayMs, sitemaps } = json(allowed)
    assert.deepEqual(
      [allowed.code, isAllowed, group, rule, crawlDelayMs, sitemaps],
      [0, true, '*', null, 1000, ['/map.xml']],
    )
  })

  test('accept a typed private address as fetch does', async () => {
    const robots = await sluice(['robots', site.url, '--json'])
    assert.deepEqual([robots.code, json(robots).error], [0, null])
    assert.equal((await sluice(['map', site.url, '--max', '1'])).code, 0)
  })

  test('list the URLs of the sitemap, and no more than asked for', async () => {
    const result = await sluice(['map', other, '--allow-private', '--max', '5', '--rps', '0'])
    assert.equal(result.code, 0)
    assert.deepEqual(result.stdout.split('\n'), [...Array.from({ length: 5 }, (_, i) => `${other}/p/${i}`), ''])
    assert.match(result.stderr, /sitemap http.*: 5 URLs\nstopped at 5/)
  })

  test('report entries for other hosts once', async () => {
    const { stderr } = await sluice(['map', other, '--rps', '0'])
    assert.match(stderr, /: 9 URLs\n1 entry for other hosts skipped; --any-host lists them\n$/)
  })

  test('use the links of the page if there is no sitemap', async () => {
    const result = await sluice(['map', `${site.url}`, '--allow-private', '--json', '--rps', '0', '--robots', 'ignore'])
    const { urls, sources } = json(result)
    assert.deepEqual(
      sources.map((source: { kind: string }) => source.kind),
      ['sitemap', 'page'],
    )
    assert.ok(urls.length > 50 && urls.every(({ url }: { url: string }) => url.startsWith(site.url)))
  })
})

const SCRAPER = `
import { defineScraper } from 'sluice'
import * as z from 'zod'
export default defineScraper({
  name: 'links',
  item: z.object({ n: z.number() }),
  key: 'n',
  routes: { page: { match: '/links', data: z.object({ word: z.string() }) }, a: { match: '/a' }, forbidden: { match: '/forbidden/:x' } },
  start: () => {},
  handlers: {
    async page({ enqueue, emit, data, log, save }) {
      await enqueue.links('a', 'a')
      await enqueue.links('forbidden', 'a[href^="/forbidden"]')
      await emit({ n: 1 })
      await emit({ n: data.word })
      log.warn('look here')
      await save('x.bin', 'abc')
      if (data.word === 'throw') throw new TypeError('my own bug')
    },
    a() {},
    forbidden() {},
  },
})
`

describe('sluice try', { concurrency: 2 }, () => {
  const file = join(folder.path, 'links.ts')
  writeFileSync(file, SCRAPER)

  test('reads a page with the route that its URL matches', async () => {
    const result = await sluice(['try', 'books', `${site.url}catalogue/page-2.html`])
    assert.equal(result.code, 0)
    assert.match(
      result.stdout,
      /route listing of books \(page=2\)[\s\S]*\n20 items\n[\s\S]*… and 15 more[\s\S]*0 links/,
    )
    const details = await sluice([
      'try',
      'books',
      `${site.url}catalogue/page-2.html`,
      '--arg',
      'details=true',
      '--json',
    ])
    assert.deepEqual([json(details).items.length, json(details).links.length], [0, 20])
    assert.equal(json(details).links[0].route, 'book')
  })

  test('shows invalid items and refused links with their reasons', async () => {
    const args = ['try', file, `${other}/links`, '--data', '{"word": "x"}']
    const result = await sluice([...args, '--json'])
    const tried = json(result)
    assert.equal(result.code, 1)
    assert.deepEqual(tried.items, [{ n: 1 }])
    assert.match(tried.invalid[0].problems[0], /^n: /)
    assert.deepEqual(
      tried.links.map((link: { url: string }) => link.url),
      [`${other}/a`],
    )
    assert.deepEqual(
      tried.refused.map((link: { why: string }) => link.why.split(':', 1)[0]),
      [
        'does not match the route’s pattern',
        'does not match the route’s pattern',
        'does not match the route’s pattern',
        'robots.txt forbids it (line 2)',
      ],
    )
    assert.deepEqual(tried.files, [{ name: 'x.bin', bytes: 3 }])
    assert.match(
      (await sluice(args)).stdout,
      /1 invalid item\n {2}✘ n: [\s\S]*4 links would be refused[\s\S]*look here/,
    )
  })

  test('points into the scraper when its handler throws, and keeps what was read before', async () => {
    const args = ['try', file, `${other}/links`, '--data', '{"word": "throw"}']
    const result = await sluice(args)
    assert.equal(result.code, 1)
    assert.match(result.stderr, /error E_HANDLER {2}TypeError: my own bug\n {2}at .*links\.ts:18 \(handler "page"\)/)
    assert.match(result.stdout, /\n1 item\n/)
  })

  test('reports missing arguments', async () => {
    const unmatched = await sluice(['try', 'books', `${site.url}about`])
    assert.equal(unmatched.code, 2)
    assert.match(unmatched.stderr, /no route of "books" matches[\s\S]*routes: listing [\s\S]*--route listing\|book/)
    const noData = await sluice(['try', file, `${other}/links`])
    assert.equal(noData.code, 2)
    assert.match(noData.stderr, /data\.word: [\s\S]*--data/)
  })
})

describe('sluice shell', { concurrency: 2 }, () => {
  test('evaluates one expression on a page', async () => {
    const result = await sluice(['shell', site.url, '-e', "$.all('h3 a').length + ' ' + url"])
    assert.deepEqual([result.code, result.stdout], [0, `20 ${site.url}\n`])
    const value = json(await sluice(['shell', `${other}/echo`, '--json', '-e', 'json().host']))
    assert.equal(value, other.slice(7))
  })

  test('evaluates piped lines, one after the other', async () => {
    const input =
      'const first = links("h3 a")[0]\nawait fetch(first); $.text("h1")\n[1,\n2].length\nnowhere\nconsole.log("on")\n'
    const result = await sluice(['shell', site.url], { input })
    assert.equal(result.code, 1)
    assert.deepEqual(result.stdout.split('\n').slice(1), ['2', 'on', ''])
    assert.match(result.stderr, /ReferenceError: nowhere is not defined/)
  })

  test('reads a saved file, with links relative to its original URL', async () => {
    const file = join(folder.path, 'saved.html')
    writeFileSync(file, '<title>Saved</title><a href="x">x</a>')
    const args = ['shell', file, '--base', 'https://shop.example/a/', '--json', '-e']
    assert.deepEqual(json(await sluice([...args, '[$.text("title"), links()]'])), [
      'Saved',
      ['https://shop.example/a/x'],
    ])
    const missing = await sluice(['shell', join(folder.path, 'none.html'), '-e', '1'])
    assert.equal(missing.code, 2)
  })

  test('explains what is wrong with a selector', async () => {
    const result = await sluice(['shell', site.url, '-e', "$.text('.none')"])
    assert.equal(result.code, 1)
    assert.match(result.stderr, /E_SELECTOR_EMPTY {2}"\.none" found nothing/)
  })
})
