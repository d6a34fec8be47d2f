/**
 * The baseline for every crawl: undici, htmlparser2 events, a Set, and nothing else. It stores nothing, retries nothing and
 * survives nothing, so the difference to Sluice is the price of a reliable crawl.
 *
 *   node bench/bare-loop.ts --site http://127.0.0.1:4100/ [--in-flight 16]
 *
 * It does two things because they are free: it uses undici's `dispatch`, and it sends the next request before it parses the last
 * response. Prints one line of JSON.
 */
import { parseArgs } from 'node:util'
import { Parser } from 'htmlparser2'
import { Pool } from 'undici'

export interface BareItem {
  title: string
  price: string
  priceNumeric: number
  rating: string
  ratingNumeric: number
  availability: string
  imageUrl: string
  url: string
  upc: string
  stock: number
  category: string
  description: string
}

const RATINGS = ['Zero', 'One', 'Two', 'Three', 'Four', 'Five']

/** One pass over a product page. */
export function readProduct(html: string, url: string): BareItem {
  const item: BareItem = {
    title: '',
    price: '',
    priceNumeric: 0,
    rating: '',
    ratingNumeric: 0,
    availability: '',
    imageUrl: '',
    url,
    upc: '',
    stock: 0,
    category: '',
    description: '',
  }
  let take: 'title' | 'price' | 'availability' | 'upc' | 'category' | 'description' | 'heading' | undefined
  let isInMain = false
  let isInGallery = false
  let crumbs = 0
  let heading = ''
  let isAfterDescription = false
  const parser = new Parser({
    onopentag(name, attributes) {
      const className = attributes['class'] ?? ''
      if (name === 'div') {
        if (className === 'col-sm-6 product_main') isInMain = true
        else if (attributes['id'] === 'product_gallery') isInGallery = true
        else if (attributes['id'] === 'product_description') isAfterDescription = true
      } else if (name === 'p') {
        if (isAfterDescription) take = 'description'
        else if (isInMain) {
          if (className === 'price_color') take = 'price'
          else if (className === 'instock availability') take = 'availability'
          else if (className.startsWith('star-rating ')) item.rating = className.slice('star-rating '.length)
        }
        isAfterDescription = false
      } else if (name === 'h1') {
        if (isInMain) take = 'title'
      } else if (name === 'img') {
        if (isInGallery) item.imageUrl = new URL(attributes['src'] ?? '', url).href
        isInGallery = false
      } else if (name === 'a') {
        if (++crumbs === 4) take = 'category' // the shop's name, Home, Books, category
      } else if (name === 'th') {
        heading = ''
        take = 'heading'
      } else if (name === 'td') {
        if (heading === 'UPC') take = 'upc'
      } else if (name === 'hr') isInMain = false
    },
    ontext(text) {
      if (take === undefined) return
      if (take === 'heading') heading += text
      else item[take] += text
    },
    onclosetag(name) {
      if (take !== undefined && name !== 'i') take = undefined
    },
  })
  parser.end(html)
  item.availability = item.availability.replace(/\s+/g, ' ').trim()
  item.priceNumeric = Number(item.price.slice(1))
  item.ratingNumeric = RATINGS.indexOf(item.rating)
  item.stock = Number(/\d+/.exec(item.availability)?.[0])
  return item
}

/** The product links of a listing, and how many listings there are. */
export function readListing(html: string, url: string): { links: string[]; pages: number } {
  const links: string[] = []
  let current = ''
  let isInHeading = false
  let isInCurrent = false
  const parser = new Parser({
    onopentag(name, attributes) {
      if (name === 'h3') isInHeading = true
      else if (name === 'a' && isInHeading) links.push(new URL(attributes['href'] ?? '', url).href)
      else if (name === 'li' && attributes['class'] === 'current') isInCurrent = true
    },
    ontext(text) {
      if (isInCurrent) current += text
    },
    onclosetag(name) {
      if (name === 'h3') isInHeading = false
      else if (name === 'li') isInCurrent = false
    },
  })
  parser.end(html)
  return { links, pages: Number(/of (\d+)/.exec(current)?.[1] ?? 1) }
}

/** undici frees a socket one event-loop turn after its response: without spares, "refill, then parse" would wait for it. */
const SPARE_SOCKETS = 8

export interface BareResult {
  pages: number
  items: number
  pence: number
}

/** Crawls listing → products with `inFlight` concurrent requests. Fails on the first error. */
export function crawlBare(site: string, inFlight: number, onItem: (item: BareItem) => void): Promise<BareResult> {
  const origin = new URL(site).origin
  const pool = new Pool(origin, { connections: inFlight + SPARE_SOCKETS, pipelining: 1 })
  const seen = new Set<string>()
  const listings: string[] = []
  const products: string[] = []
  const result: BareResult = { pages: 0, items: 0, pence: 0 }
  let running = 0

  const add = (queue: string[], url: string) => {
    if (seen.has(url)) return
    seen.add(url)
    queue.push(url)
  }
  add(listings, `${origin}/catalogue/page-1.html`)

  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      void pool.destroy()
      reject(error)
    }
    const read = (url: string, isListing: boolean, html: string) => {
      if (!isListing) {
        const item = readProduct(html, url)
        if (item.title === '' || Number.isNaN(item.priceNumeric)) throw new Error(`no product on ${url}`)
        result.items++
        result.pence += Math.round(item.priceNumeric * 100)
        onItem(item)
        return
      }
      const { links, pages } = readListing(html, url)
      for (const link of links) add(products, link)
      // The first listing says how many there are; following "next" alone would make the crawl one long chain.
      if (url.endsWith('/page-1.html'))
        for (let page = 2; page <= pages; page++) add(listings, `${origin}/catalogue/page-${page}.html`)
    }
    const refill = () => {
      while (running < inFlight) {
        const isListing = products.length === 0
        const url = products.pop() ?? listings.shift()
        if (url === undefined) break
        running++
        const chunks: Buffer[] = []
        pool.dispatch(
          { method: 'GET', path: url.slice(origin.length) },
          {
            onRequestStart() {},
            onResponseStart(_controller, status) {
              if (status !== 200) fail(new Error(`${status} for ${url}`))
            },
            onResponseData(_controller, chunk) {
              chunks.push(chunk)
            },
            onResponseEnd() {
              running--
              result.pages++
              refill() // the network works while we parse
              try {
                read(url, isListing, Buffer.concat(chunks).toString('utf8'))
              } catch (error) {
                fail(error as Error)
              }
              refill()
              if (running === 0) pool.close().then(() => resolve(result), reject)
            },
            onResponseError(_controller, error) {
              fail(error)
            },
          },
        )
      }
    }
    refill()
  })
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { site: { type: 'string' }, 'in-flight': { type: 'string', default: '16' } },
  })
  if (values.site === undefined) throw new Error('--site URL is needed')
  const startCpu = process.cpuUsage()
  const startedMs = performance.now()
  const result = await crawlBare(values.site, Number(values['in-flight']), () => {})
  const wallMs = performance.now() - startedMs
  const { user, system } = process.cpuUsage(startCpu)
  // Without start-up: Node, the imports and type stripping are done before the first request.
  console.log(
    JSON.stringify({ ...result, crawlWallMs: Math.round(wallMs), crawlCpuMs: Math.round((user + system) / 1000) }),
  )
}
