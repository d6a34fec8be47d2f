import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { load } from 'cheerio/slim'
import {
  type Book,
  bookOf,
  CATEGORIES,
  expectedTotals,
  MISBEHAVIOUR,
  podOf,
  renderListing,
  renderProduct,
  startBooksSite,
  truth,
  WITHOUT_DESCRIPTION,
} from './books.ts'

const fold = (text: string) => text.replace(/\s+/g, ' ').trim()
const STARS = ['One', 'Two', 'Three', 'Four', 'Five']

/** Reads a product page the way a scraper would; `path` is where it was found. */
function readProduct(html: string, path: string): Book {
  const $ = load(html)
  const main = $('.product_main')
  const row = (name: string) =>
    $('table.table-striped tr')
      .filter((_, tr) => fold($(tr).find('th').text()) === name)
      .find('td')
      .text()
  const price = main.find('p.price_color').text()
  const rating = (main.find('p.star-rating').attr('class') ?? '').split(' ')[1] as Book['rating']
  assert.equal(row('Price (excl. tax)'), price)
  assert.equal(row('Price (incl. tax)'), price)
  assert.equal(row('Product Type'), 'Books')
  assert.equal(row('Availability'), fold(main.find('p.instock.availability').text()))
  const description = $('#product_description + p')
  return {
    id: Number(/_(\d+)\//.exec(path)?.[1]),
    title: main.find('h1').text(),
    price,
    priceNumeric: Number(price.slice(1)),
    rating,
    ratingNumeric: STARS.indexOf(rating) + 1,
    availability: row('Availability').replace(/ \(.*/, '') as 'In stock',
    imagePath: new URL($('#product_gallery img').attr('src') ?? '', `http://shop${path}`).pathname,
    path,
    upc: row('UPC'),
    stock: Number(/\((\d+) available\)/.exec(row('Availability'))?.[1]),
    category: fold($('.breadcrumb li').eq(2).text()),
    description: description.length === 0 ? null : description.text(),
  }
}

/** Reads a listing: its books in order, the page count, and the next page. */
function readListing(html: string, path: string) {
  const $ = load(html)
  const resolve = (href: string | undefined) => new URL(href ?? '', `http://shop${path}`)
  const pods = $('article.product_pod')
    .toArray()
    .map((element) => {
      const article = $(element)
      const link = article.find('h3 > a')
      assert.equal(article.find('.image_container a').attr('href'), link.attr('href'))
      return {
        title: link.attr('title'),
        shown: link.text(),
        price: article.find('p.price_color').text(),
        rating: (article.find('p.star-rating').attr('class') ?? '').split(' ')[1],
        availability: fold(article.find('p.instock.availability').text()),
        imagePath: resolve(article.find('.image_container img').attr('src')).pathname,
        url: resolve(link.attr('href')),
      }
    })
  const next = $('li.next > a').attr('href')
  return {
    pods,
    current: fold($('li.current').text()),
    next: next === undefined ? undefined : resolve(next).pathname,
    categories: $('.side_categories ul ul li a').length,
  }
}

/** Without garbage. */
function afterCollecting(): NodeJS.MemoryUsage {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage()
}

describe('the catalogue', () => {
  it('has 1,000 books with two descriptions missing, 50 categories and some titles beyond ASCII', () => {
    const books = [...truth(1000)]
    assert.equal(books.length, 1000)
    assert.deepEqual(
      books.filter((book) => book.description === null).map((book) => book.id),
      WITHOUT_DESCRIPTION,
    )
    assert.deepEqual(new Set(books.map((book) => book.category)), new Set(CATEGORIES))
    assert.equal(new Set(books.map((book) => book.path)).size, 1000)
    assert.equal(new Set(books.map((book) => book.upc)).size, 1000)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the ASCII range is what is asked for
    const beyond = books.filter((book) => /[^\x00-\x7f]/.test(book.title)).length
    assert.ok(beyond > 100 && beyond < 300, `${beyond} titles beyond ASCII`)
    for (const book of books) {
      assert.match(book.path, /^\/catalogue\/[a-z0-9-]+_\d+\/index\.html$/)
      assert.match(book.price, /^£[1-5]\d\.\d\d$/)
      assert.ok(book.stock >= 1 && book.stock <= 22)
    }
  })

  it('is the same on every machine and in every catalogue size', () => {
    // The figures are part of the demo: outputs kept elsewhere are compared with them.
    const books = [...truth(1000)]
    const pence = books.reduce((sum, book) => sum + Math.round(book.priceNumeric * 100), 0)
    const stars = STARS.map((word) => books.filter((book) => book.rating === word).length)
    assert.deepEqual({ pence, stars }, { pence: 3_533_034, stars: [178, 202, 187, 222, 211] })
    assert.equal(books[0]!.title, 'The Velvet Mirror')
    assert.deepEqual(bookOf(777), books[776])
    assert.equal(renderProduct(777, 1000), renderProduct(777, 1000))
  })
})

describe('its pages', () => {
  it('show on the product page exactly what truth() says', () => {
    for (const book of truth(200)) assert.deepEqual(readProduct(renderProduct(book.id, 1000), book.path), book)
  })

  it('lead from listing to listing through every book once, with shortened titles', () => {
    const seen: string[] = []
    let page = 1
    for (let path: string | undefined = '/catalogue/page-1.html'; path !== undefined; page++) {
      const listing = readListing(renderListing(page, 995), path)
      assert.equal(listing.current, `Page ${page} of 50`)
      assert.equal(listing.categories, 50)
      for (const found of listing.pods) {
        const book = podOf(seen.length + 1)
        assert.equal(found.title, book.title)
        const isLong = book.title.split(' ').length > 4
        assert.equal(found.shown, isLong ? `${book.title.split(' ').slice(0, 4).join(' ')} ...` : book.title)
        assert.equal(found.price, book.price)
        assert.equal(found.rating, book.rating)
        assert.equal(found.availability, book.availability)
        assert.equal(found.imagePath, book.imagePath)
        assert.equal(found.url.pathname, book.path)
        seen.push(found.url.pathname)
      }
      path = listing.next
    }
    assert.equal(page - 1, 50)
    assert.equal(new Set(seen).size, 995)
  })

  it('are as large as a real shop’s pages', () => {
    const listing = Buffer.byteLength(renderListing(2, 1000))
    assert.ok(listing > 45_000 && listing < 53_000, `listing of ${listing} bytes`)
    let bytes = 0
    for (let id = 1; id <= 200; id++) bytes += Buffer.byteLength(renderProduct(id, 1000))
    assert.ok(bytes / 200 > 15_000 && bytes / 200 < 20_000, `product pages of ${bytes / 200} bytes`)
  })

  it('carry other books’ pods on some product pages and none on others', () => {
    const pods = (id: number) => load(renderProduct(id, 1000))('article.product_pod').length
    assert.deepEqual([1, 2, 3, 9].map(pods), [0, 3, 6, 0])
  })
})

describe('the site', () => {
  it('serves listings and products as text/html without a charset, and 404 for the rest', async () => {
    await using site = await startBooksSite()
    const get = (path: string, init?: RequestInit) => fetch(new URL(path, site.url), init)
    const root = await get('/')
    assert.equal(root.headers.get('content-type'), 'text/html')
    const rootText = await root.text()
    assert.equal(await (await get('/index.html')).text(), rootText)
    const first = readListing(rootText, '/')
    assert.equal(first.next, '/catalogue/page-2.html')
    assert.equal(first.pods[0]!.url.pathname, podOf(1).path)
    assert.equal(await (await get('/catalogue/page-2.html')).text(), renderListing(2, 1000))
    assert.equal(await (await get(podOf(42).path)).text(), renderProduct(42, 1000))
    assert.equal(await (await get(`${podOf(42).path}?from=somewhere`)).text(), renderProduct(42, 1000))
    assert.equal(await (await get('/healthz')).text(), 'ok\n')
    for (const path of [
      '/robots.txt',
      '/nothing',
      '/catalogue/page-0.html',
      '/catalogue/page-51.html',
      '/catalogue/another-title_42/index.html',
      podOf(1001).path,
    ])
      assert.equal((await get(path)).status, 404, path)
    const head = await get(podOf(42).path, { method: 'HEAD' })
    assert.equal(Number(head.headers.get('content-length')), Buffer.byteLength(renderProduct(42, 1000)))
    assert.equal(await head.text(), '')
    const { requests, byPath, byStatus } = site.stats()
    assert.equal(requests, 13)
    assert.equal(byPath.get(podOf(42).path), 2)
    assert.deepEqual(Object.fromEntries(byStatus), { 200: 7, 404: 6 })
  })

  it('serves the robots.txt it is given', async () => {
    await using site = await startBooksSite({ robots: 'User-agent: *\nDisallow: /private/\n' })
    const robots = await fetch(new URL('/robots.txt', site.url))
    assert.equal(await robots.text(), 'User-agent: *\nDisallow: /private/\n')
    assert.equal(robots.headers.get('content-type'), 'text/plain')
  })

  it('delays every response and counts waiting requests', async () => {
    await using site = await startBooksSite({ delayMs: 1000 })
    const startedMs = performance.now()
    await Promise.all(Array.from({ length: 16 }, (_, i) => fetch(new URL(podOf(i + 1).path, site.url))))
    const tookMs = performance.now() - startedMs
    assert.ok(tookMs >= 999, `took ${tookMs} ms`)
    assert.equal(site.stats().maxInFlight, 16)
  })

  it('misbehaves exactly as documented', async () => {
    await using site = await startBooksSite({ products: 100, misbehave: true })
    const statuses = async (id: number, times: number) => {
      const answers: string[] = []
      for (let i = 0; i < times; i++) {
        const answer = await fetch(new URL(podOf(id).path, site.url))
        await answer.arrayBuffer()
        answers.push(`${answer.status} ${answer.headers.get('retry-after') ?? ''}`.trim())
      }
      return answers
    }
    assert.deepEqual(await statuses(MISBEHAVIOUR.flaky, 4), ['503', '503', '200', '200'])
    assert.deepEqual(await statuses(MISBEHAVIOUR.rateLimited, 3), ['429 1', '200', '200'])
    assert.deepEqual(await statuses(MISBEHAVIOUR.missing, 2), ['404', '404'])
    assert.deepEqual(await statuses(MISBEHAVIOUR.softError, 2), ['200', '200'])
    const apology = await (await fetch(new URL(podOf(MISBEHAVIOUR.softError).path, site.url))).text()
    assert.match(apology, /Something went wrong/)
    assert.equal(load(apology)('.product_main').length, 0)

    const startedMs = performance.now()
    assert.deepEqual(await statuses(MISBEHAVIOUR.slow, 1), ['200'])
    assert.ok(performance.now() - startedMs >= MISBEHAVIOUR.slowMs - 1)

    const path = `/catalogue/page-${MISBEHAVIOUR.duplicates.page}.html`
    const { pods } = readListing(await (await fetch(new URL(path, site.url))).text(), path)
    assert.equal(pods.length, 22)
    assert.deepEqual(
      pods.slice(20).map((pod) => pod.url.href),
      [
        `http://shop${podOf(MISBEHAVIOUR.duplicates.fragment).path}#reviews`,
        `http://shop${podOf(MISBEHAVIOUR.duplicates.tracking).path}?utm_source=letter&utm_medium=email`,
      ],
    )
  })

  it('predicts what a run must end with', () => {
    const polite = { items: 1000, notFound: 0, softErrors: 0, pages: 1050, failures: 0 }
    assert.deepEqual(expectedTotals(1000, 50, false), polite)
    assert.deepEqual(expectedTotals(1000, 50, true), {
      items: 998,
      notFound: 1,
      softErrors: 1,
      pages: 1050,
      failures: 3,
    })
    assert.equal(expectedTotals(20, 1, true).items, 20)
  })

  it('serves a million books in the memory of a few', async () => {
    await using site = await startBooksSite({ products: 1_000_000 })
    const visit = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const id = ((i * 7919) % 1_000_000) + 1
        const answer = await fetch(new URL(podOf(id).path, site.url))
        assert.equal(answer.status, 200)
        assert.ok((await answer.arrayBuffer()).byteLength > 5000)
      }
    }
    await visit(300)
    const before = afterCollecting()
    await visit(2000)
    const after = afterCollecting()
    // 2,000 cached pages would be 34 MB.
    const grown = after.heapUsed + after.external - before.heapUsed - before.external
    assert.ok(grown < 30_000_000, `grew by ${grown} bytes`)
    const last = await fetch(new URL('/catalogue/page-50000.html', site.url))
    assert.equal(readListing(await last.text(), '/catalogue/page-50000.html').current, 'Page 50000 of 50000')
  })

  it('rejects an invalid catalogue', async () => {
    await assert.rejects(startBooksSite({ products: 0 }), RangeError)
    await assert.rejects(startBooksSite({ products: 1.5 }), RangeError)
  })
})

describe('serve.ts', () => {
  const start = async (...args: string[]) => {
    const script = fileURLToPath(new URL('./serve.ts', import.meta.url))
    const child = spawn(process.execPath, [script, '--port', '0', ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
    const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
    return { child, url, exited: once(child, 'exit') as Promise<[number | null, string | null]> }
  }

  it('prints its address and stops on SIGTERM', async () => {
    const { child, url, exited } = await start('--products', '40')
    assert.equal((await fetch(new URL('/catalogue/page-2.html', url))).status, 200)
    child.kill('SIGTERM')
    assert.deepEqual(await exited, [0, null])
  })

  it('ends with its parent when asked to', async () => {
    const { child, exited } = await start('--exit-with-parent')
    child.stdin.end()
    assert.deepEqual(await exited, [0, null])
  })
})
