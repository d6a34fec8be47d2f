/** `sluice crawl` as a process, against the book shop and against a site full of traps. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { startBooksSite } from '../../test/site/books.ts'
import { sluice, temporaryFolder } from '../../test/sluice.ts'

interface Row {
  url: string
  status: number
  title?: string
  links?: number
  depth: number
  type?: string
  from?: string
  note?: string
  price?: string
}

function rowsOf(out: string): Row[] {
  const scraper = join(out, readdirSync(out)[0]!)
  return readFileSync(join(scraper, 'latest', 'items.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'] // biome-ignore format: one line reads better

/** Endless areas, one folder each; `hits` counts requests by folder. */
async function startTraps() {
  const hits: Record<string, number> = Object.create(null)
  let serial = 0
  const fresh = () => `v${(serial++).toString(36)}x`
  const link = (to: string, more = '') => `<a href="${to}" ${more}>go on</a>`
  const pages: Record<string, (parts: string[], query: URLSearchParams) => string> = {
    '': () =>
      [
        '/calendar/2026/1',
        '/session/1',
        '/nest/',
        '/random',
        '/endless?page=1',
        '/facets',
        '/gallery/1',
        '/list',
        '/report.pdf',
        '/gone',
      ]
        .map((to) => link(to))
        .join('') + link('/honey', 'rel="nofollow"'),
    calendar: ([, year, month]) => {
      const n = Number(year) * 12 + Number(month)
      return `<h1>${MONTHS[n % 12]} ${year}</h1>${link(`/calendar/${Math.floor(n / 12)}/${(n % 12) + 1}`)}`
    },
    session: ([, id]) =>
      `<h1>Article ${id}</h1>${[1, 2, 3, 4, 5].map((n) => link(`/session/${n}?visit=${fresh()}`)).join('')}`,
    nest: () => `<h1>${fresh()}</h1>${link('deeper/')}${link('a/b/')}`,
    random: () => `<h1>Random</h1>${Array.from({ length: 10 }, () => link(`/random?q=${fresh()}`)).join('')}`,
    endless: (_, query) => `<h1>Page ${query.get('page')}</h1>nothing${link(`?page=${Number(query.get('page')) + 1}`)}`,
    facets: (_, query) => {
      const on = [...query.keys()]
      const off = [...'abcdefgh'].filter((name) => !on.includes(name))
      return `<h1>${on.join(' ')} shoes</h1>${off.map((name) => link(`?${[...on, name].join('=1&')}=1`)).join('')}`
    },
    // What only looks like a trap: pages without words, and many that differ in a number or a query.
    gallery: ([, n]) => `<img src="/image-${n}.jpg">${Number(n) < 30 ? link(`/gallery/${Number(n) + 1}`) : ''}`,
    list: () => Array.from({ length: 40 }, (_, n) => link(`/thing?id=${n}`)).join(''),
    thing: (_, query) => `<h1>Thing ${query.get('id')}</h1>`,
    honey: () => 'caught',
  }
  const server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://site')
    const parts = url.pathname.split('/').slice(1)
    const kind = parts[0]!
    hits[kind] = (hits[kind] ?? 0) + 1
    if (kind === 'report.pdf')
      response.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF <a href="/honey">')
    else if (pages[kind] === undefined)
      response.writeHead(404, { 'content-type': 'text/html' }).end('<title>none</title>')
    else
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(`<title>${kind}</title>${pages[kind](parts, url.searchParams)}`)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}/`,
    hits,
    [Symbol.dispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

describe('sluice crawl', { concurrency: 2 }, () => {
  test('records every page of a site, with the requested fields', async () => {
    await using site = await startBooksSite({ products: 40 })
    using folder = temporaryFolder()
    const fields = ['--select', 'price=.product_main p.price_color', '--select', 'cover=#product_gallery img@src']
    const result = await sluice(['crawl', site.url, '--rps', '0', '--out', folder.path, '--quiet', ...fields])
    assert.deepEqual([result.code, result.stderr], [0, ''])
    const rows = rowsOf(folder.path)
    assert.equal(new Set(rows.map((row) => row.url)).size, rows.length)
    const books = rows.filter((row) => row.price !== undefined)
    assert.equal(books.length, 40)
    assert.ok(books.every((row) => row.status === 200 && row.title !== undefined && row.links! > 0 && row.depth > 0))
    assert.ok(
      rows.some((row) => row.status === 404 && row.from !== undefined),
      'dead links are findings',
    )
    const [scraper] = readdirSync(folder.path)
    const csv = readFileSync(join(folder.path, scraper!, 'latest', 'items.csv'), 'utf8')
    assert.match(csv, /^url,status,title,links,depth,type,from,note,price,cover\r?\n/)
  })

  test('stops at its limit and resumes in several processes', async () => {
    await using site = await startBooksSite({ products: 40 })
    using folder = temporaryFolder()
    const options = ['--rps', '0', '--out', folder.path, '--quiet', '--processes', '2']
    const first = await sluice(['crawl', site.url, ...options, '--pages', '20', '--select', 'price=.price_color'])
    assert.equal(first.code, 4)
    const second = await sluice(['crawl', '--resume', site.url, ...options])
    assert.deepEqual([second.code, second.stderr], [0, ''])
    const rows = rowsOf(folder.path)
    assert.ok(rows.length > 80 && rows.some((row) => row.price !== undefined))
    const { requests, byPath } = site.stats()
    assert.equal(requests - byPath.get('/robots.txt')!, rows.length, 'every page was asked for once')
    const third = await sluice(['crawl', '--resume', site.url, '--out', folder.path])
    assert.equal(third.code, 2)
    assert.match(third.stderr, /E_RUN_NOT_FOUND {2}no unfinished crawl/)
  })

  test('leaves traps with the reason, and crawls in full what only looks like one', async () => {
    using site = await startTraps()
    using folder = temporaryFolder()
    const result = await sluice(['crawl', site.url, '--rps', '0', '--depth', '1000', '--out', folder.path])
    assert.equal(result.code, 0)
    const { hits } = site
    assert.deepEqual([hits['gallery'], hits['thing'], hits['report.pdf'], hits['honey']], [30, 40, 1, undefined])
    const bounds = { calendar: 40, session: 35, nest: 60, random: 10, endless: 25, facets: 30 }
    for (const [kind, most] of Object.entries(bounds)) assert.ok(hits[kind]! <= most, `${kind}: ${hits[kind]}`)
    for (const why of [
      /calendar\S+: only numbers and dates/,
      /session\S+: /,
      /nest\S+: the path repeats/,
      /random\S+: /,
      /endless\S+: /,
      /facets\S+: more than 24 combinations/,
    ])
      assert.match(result.stderr, why)
    const rows = rowsOf(folder.path)
    const of = (path: string) => rows.find((row) => row.url.endsWith(path))
    assert.equal(of('report.pdf'), undefined)
    assert.match(result.stderr + result.stdout, /1 page served as a file/)
    assert.deepEqual([of('gone')?.status, of('gone')?.from], [404, site.url])
    assert.ok(rows.some((row) => row.note?.startsWith('repeats the content of ')))
  })

  test('fails if the start page cannot be fetched', async () => {
    await using site = await startBooksSite({ products: 20 })
    using folder = temporaryFolder()
    const result = await sluice(['crawl', `${site.url}nothing`, '--rps', '0', '--out', folder.path, '--json'])
    const record = JSON.parse(result.stdout)
    assert.deepEqual([result.code, record.pages.failed, record.errors[0].code], [1, 1, 'E_NOT_FOUND'])
  })

  test('reports invalid arguments before it sends any request', async () => {
    const wrong = [
      ['crawl'],
      ['crawl', 'shop.example'],
      ...['x', 'url=h1', 'a=h1[', 'a='].map((text) => ['crawl', 'http://127.0.0.1:1/', '--select', text]),
    ]
    for (const args of wrong) {
      const result = await sluice(args)
      assert.equal(result.code, 2, args.join(' '))
      assert.match(result.stderr, /error E_USAGE[\s\S]*fix: /)
    }
  })
})
