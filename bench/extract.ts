/**
 * Extraction: ours against htmlparser2 events (hand-written for these pages), cheerio/slim and cheerio, in one run on the same
 * pages; results must be equal, or there are no figures. Pages per CPU-second. `node bench/extract.ts [--json] [--ms 1000]`
 */
import { parseArgs } from 'node:util'
import { load as loadParse5 } from 'cheerio'
import { load as loadSlim } from 'cheerio/slim'
import { Parser } from 'htmlparser2'
import { release, select } from '../src/extract/html.ts'
import { baseOf, resolveUrl } from '../src/extract/resolve-url.ts'
import { renderListing, renderProduct } from '../test/site/books.ts'

interface Listed {
  title: string
  url: string
  price: string
  rating: string
  availability: string
  image: string
}
interface Listing {
  items: Listed[]
  next: string | undefined
}
interface Product {
  title: string
  price: number
  rating: string
  availability: string
  upc: string
  category: string
  description: string | undefined
  image: string
}
interface Implementation {
  name: string
  listing(html: string, url: string): Listing
  product(html: string, url: string): Product
}

const fold = (text: string): string => text.replace(/\s+/g, ' ').trim()
const ratingOf = (className: string): string => className.slice('star-rating '.length)

const ours: Implementation = {
  name: 'ours',
  listing(html, url) {
    const $ = select(html, url)
    const items = $.all('article.product_pod').map((pod) => ({
      title: pod.attr('h3 > a', 'title'),
      url: pod.attr('h3 > a', 'href'),
      price: pod.text('p.price_color'),
      rating: ratingOf(pod.attr('p.star-rating', 'class')),
      availability: pod.text('p.availability'),
      image: pod.attr('img', 'src'),
    }))
    const next = $.attr('li.next > a', 'href', { optional: true })
    release($)
    return { items, next }
  },
  product(html, url) {
    const $ = select(html, url)
    const item = {
      title: $.text('.product_main h1'),
      price: $.number('.product_main p.price_color'),
      rating: ratingOf($.attr('.product_main p.star-rating', 'class')),
      availability: $.text('.product_main p.availability'),
      upc: $.text('table.table-striped td'),
      category: $.text('ul.breadcrumb li:nth-child(3) a'),
      description: $.text('#product_description + p', { optional: true }),
      image: $.attr('#product_gallery img', 'src'),
    }
    release($)
    return item
  },
}

/** What a careful engineer would write for exactly these pages: one pass, no tree, no selectors. */
const events: Implementation = {
  name: 'htmlparser2 events',
  listing(html, url) {
    const base = baseOf(url)!
    const items: Listed[] = []
    let item: Listed | undefined
    let next: string | undefined
    let isHeading = false
    let isNext = false
    let reading: 'price' | 'availability' | undefined
    let text = ''
    const parser = new Parser({
      onopentag(name, attributes) {
        if (item !== undefined) {
          if (name === 'img') item.image = resolveUrl(attributes['src']!, base)!
          else if (name === 'h3') isHeading = true
          else if (name === 'a' && isHeading) {
            item.title = attributes['title']!
            item.url = resolveUrl(attributes['href']!, base)!
          } else if (name === 'p') {
            const className = attributes['class'] ?? ''
            if (className === 'price_color') reading = 'price'
            else if (className.includes('availability')) reading = 'availability'
            else if (className.startsWith('star-rating')) item.rating = ratingOf(className)
          }
        } else if (name === 'article' && attributes['class'] === 'product_pod') {
          item = { title: '', url: '', price: '', rating: '', availability: '', image: '' }
        } else if (name === 'li') isNext = attributes['class'] === 'next'
        else if (name === 'a' && isNext) next ??= resolveUrl(attributes['href']!, base)
      },
      ontext(data) {
        if (reading !== undefined) text += data
      },
      onclosetag(name) {
        if (item === undefined) return
        if (name === 'p' && reading !== undefined) {
          item[reading] = fold(text)
          text = ''
          reading = undefined
        } else if (name === 'h3') isHeading = false
        else if (name === 'article') {
          items.push(item)
          item = undefined
        }
      },
    })
    parser.end(html)
    return { items, next }
  },
  product(html, url) {
    const base = baseOf(url)!
    const item: Product = {
      title: '',
      price: 0,
      rating: '',
      availability: '',
      upc: '',
      category: '',
      description: undefined,
      image: '',
    }
    let isMain = false
    let mainDepth = 0
    let isGallery = false
    let isTable = false
    let crumbs = -1
    let isDescriptionNext = false
    let reading: 'title' | 'price' | 'availability' | 'upc' | 'category' | 'description' | undefined
    let readingTag = ''
    let text = ''
    const read = (field: typeof reading, tag: string): void => {
      reading = field
      readingTag = tag
      text = ''
    }
    const parser = new Parser({
      onopentag(name, attributes) {
        if (isMain) {
          if (name === 'div') mainDepth++
          else if (name === 'h1') read('title', name)
          else if (name === 'p') {
            const className = attributes['class'] ?? ''
            if (className === 'price_color' && item.price === 0) read('price', name)
            else if (className.includes('availability') && item.availability === '') read('availability', name)
            else if (className.startsWith('star-rating') && item.rating === '') item.rating = ratingOf(className)
          }
          return
        }
        if (name === 'div') {
          const className = attributes['class'] ?? ''
          if (className.includes('product_main')) {
            isMain = true
            mainDepth = 1
          } else if (attributes['id'] === 'product_gallery') isGallery = true
          else if (attributes['id'] === 'product_description') {
            isDescriptionNext = true
            return
          }
        } else if (name === 'img' && isGallery) {
          item.image = resolveUrl(attributes['src']!, base)!
          isGallery = false
        } else if (name === 'ul' && attributes['class'] === 'breadcrumb') crumbs = 0
        else if (name === 'li' && crumbs !== -1) crumbs++
        else if (name === 'a' && crumbs === 3) {
          read('category', name)
          crumbs = -1
        } else if (name === 'table') isTable = (attributes['class'] ?? '').includes('table-striped')
        else if (name === 'td' && isTable) {
          read('upc', name)
          isTable = false
        } else if (name === 'p' && isDescriptionNext) {
          read('description', name)
          isDescriptionNext = false
        }
      },
      ontext(data) {
        if (reading !== undefined) text += data
      },
      onclosetag(name) {
        if (name === readingTag && reading !== undefined) {
          if (reading === 'price') item.price = Number(text.replace(/[^\d.]/g, ''))
          else item[reading] = fold(text)
          reading = undefined
        }
        if (isMain && name === 'div' && --mainDepth === 0) isMain = false
      },
    })
    parser.end(html)
    return item
  },
}

function withCheerio(name: string, load: typeof loadSlim): Implementation {
  return {
    name,
    listing(html, url) {
      const base = baseOf(url)!
      const $ = load(html)
      const items = $('article.product_pod')
        .toArray()
        .map((element) => {
          const pod = $(element)
          return {
            title: pod.find('h3 > a').attr('title')!,
            url: resolveUrl(pod.find('h3 > a').attr('href')!, base)!,
            price: fold(pod.find('p.price_color').text()),
            rating: ratingOf(pod.find('p.star-rating').attr('class')!),
            availability: fold(pod.find('p.availability').text()),
            image: resolveUrl(pod.find('img').attr('src')!, base)!,
          }
        })
      const next = $('li.next > a').attr('href')
      return { items, next: next === undefined ? undefined : resolveUrl(next, base) }
    },
    product(html, url) {
      const base = baseOf(url)!
      const $ = load(html)
      const description = $('#product_description + p')
      return {
        title: fold($('.product_main h1').first().text()),
        price: Number(
          $('.product_main p.price_color')
            .first()
            .text()
            .replace(/[^\d.]/g, ''),
        ),
        rating: ratingOf($('.product_main p.star-rating').attr('class')!),
        availability: fold($('.product_main p.availability').first().text()),
        upc: fold($('table.table-striped td').first().text()),
        category: fold($('ul.breadcrumb li:nth-child(3) a').text()),
        description: description.length === 0 ? undefined : fold(description.text()),
        image: resolveUrl($('#product_gallery img').attr('src')!, base)!,
      }
    },
  }
}

const implementations = [
  ours,
  events,
  withCheerio('cheerio/slim', loadSlim),
  withCheerio('cheerio (parse5)', loadParse5),
]

const PRODUCTS = 1000
/** Like a fetched page: one flat string, not the rope that a template produces. */
const flat = (text: string): string => Buffer.from(text).toString()
const listings = Array.from({ length: 16 }, (_, i) => ({
  html: flat(renderListing(i + 2, PRODUCTS)),
  url: `http://127.0.0.1:4100/catalogue/page-${i + 2}.html`,
}))
const products = Array.from({ length: 16 }, (_, i) => ({
  html: flat(renderProduct(i + 1, PRODUCTS)),
  url: `http://127.0.0.1:4100/catalogue/book_${i + 1}/index.html`,
}))
const sets = [
  { kind: 'listing', pages: listings },
  { kind: 'product', pages: products },
] as const

function checkEqual(): void {
  for (const { kind, pages } of sets) {
    for (const page of pages) {
      const [first, ...others] = implementations.map((it) => JSON.stringify(it[kind](page.html, page.url)))
      for (const [i, other] of others.entries()) {
        if (other !== first) {
          throw new Error(`${implementations[i + 1]!.name} answers differently on ${page.url}:\n${first}\n${other}`)
        }
      }
    }
  }
}

function pagesPerCpuSecond(run: (html: string, url: string) => unknown, pages: typeof listings, ms: number): number {
  const loop = (untilMs: number): number => {
    let done = 0
    for (const stopAt = performance.now() + untilMs; performance.now() < stopAt; done += pages.length) {
      for (const page of pages) run(page.html, page.url)
    }
    return done
  }
  loop(ms / 3)
  const before = process.cpuUsage()
  const done = loop(ms)
  const used = process.cpuUsage(before)
  return done / ((used.user + used.system) / 1e6)
}

const { values } = parseArgs({ options: { json: { type: 'boolean' }, ms: { type: 'string', default: '1000' } } })
checkEqual()
const results = sets.flatMap(({ kind, pages }) =>
  implementations.map((it) => ({
    page: kind,
    kilobytes: Math.round(pages.reduce((sum, page) => sum + page.html.length, 0) / pages.length / 100) / 10,
    implementation: it.name,
    pagesPerCpuSecond: Math.round(pagesPerCpuSecond(it[kind], pages, Number(values.ms))),
  })),
)
if (values.json) console.log(JSON.stringify({ bench: 'extract', node: process.version, results }))
else {
  for (const { page, kilobytes, implementation, pagesPerCpuSecond: rate } of results) {
    const events = results.find((it) => it.page === page && it.implementation === 'htmlparser2 events')!
    const factor = (rate / events.pagesPerCpuSecond).toFixed(2)
    console.log(
      `${page} ${kilobytes} KB  ${implementation.padEnd(20)} ${String(rate).padStart(7)} pages/CPU-s  ×${factor}`,
    )
  }
}
