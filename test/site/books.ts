/** The bundled demo site: a deterministic book shop on loopback, polite or, on request, misbehaving. */
import { pageCount, podOf } from './catalogue.ts'
import { toBytes } from './html.ts'
import { type Reply, type ReplyParts, reply, startHttpServer } from './http-server.ts'
import { MISBEHAVIOUR } from './misbehaviour.ts'
import { listingPage, productPage, softErrorPage } from './pages.ts'

export {
  type Book,
  bookOf,
  CATEGORIES,
  PAGE_SIZE,
  type Pod,
  pageCount,
  podOf,
  truth,
  WITHOUT_DESCRIPTION,
} from './catalogue.ts'
export { type ExpectedTotals, expectedTotals, MISBEHAVIOUR } from './misbehaviour.ts'
export { renderListing, renderProduct } from './pages.ts'

export interface BooksSiteOptions {
  /** 0 (the default) picks a free port. */
  readonly port?: number
  /** Books in the catalogue; default 1,000. Memory does not grow with it. */
  readonly products?: number
  /** Delay of every response; default 0. A function is called for each. */
  readonly delayMs?: number | (() => number)
  /** With the faults of `MISBEHAVIOUR`; off by default. */
  readonly misbehave?: boolean
  /** Cache rendered pages. On for catalogues of up to 5,000 books (about 90 MB when all were requested), off beyond. */
  readonly cache?: boolean
  /** Changes a listing before it is sent: another text, or a status instead. Disables the cache. */
  readonly edit?: (path: string, html: string) => string | number
  /** The content of /robots.txt; without it that page is a 404, as on many sites. */
  readonly robots?: string
  /** /sitemap.xml lists the pages of all books. */
  readonly hasSitemap?: boolean
}

export interface BooksSiteStats {
  readonly requests: number
  /** Requests by target as sent, including the query; the first 20,000 different ones. */
  readonly byPath: ReadonlyMap<string, number>
  readonly byStatus: ReadonlyMap<number, number>
  /** Maximum number of requests waiting for a response at one moment; only meaningful with a delay. */
  readonly maxInFlight: number
}

export interface BooksSite extends AsyncDisposable {
  /** With a trailing slash: "http://127.0.0.1:4100/". */
  readonly url: string
  readonly port: number
  stats(): BooksSiteStats
}

const CACHED_PRODUCTS_MAX = 5000
const COUNTED_PATHS_MAX = 20_000
const PRODUCTS_MAX = 100_000_000

export async function startBooksSite(options: BooksSiteOptions = {}): Promise<BooksSite> {
  const { port = 0, products = 1000, hasSitemap = false } = options
  if (!Number.isSafeInteger(products) || products < 1 || products > PRODUCTS_MAX)
    throw new RangeError(`products must be a whole number from 1 to ${PRODUCTS_MAX}, not ${products}`)
  const answer = booksHandler({ ...options, products })
  const byPath = new Map<string, number>()
  const byStatus = new Map<number, number>()
  let requests = 0
  const server = await startHttpServer({
    port,
    handle(target) {
      requests++
      const seen = byPath.get(target)
      if (seen !== undefined || byPath.size < COUNTED_PATHS_MAX) byPath.set(target, (seen ?? 0) + 1)
      const found = hasSitemap && target === '/sitemap.xml' ? sitemap(products, server.port) : answer(target)
      byStatus.set(found.status, (byStatus.get(found.status) ?? 0) + 1)
      return typeof options.delayMs === 'function' ? { ...found, delayMs: options.delayMs() } : found
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/`,
    port: server.port,
    stats: () => ({ requests, byPath: new Map(byPath), byStatus: new Map(byStatus), maxInFlight: server.maxInFlight }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function sitemap(products: number, port: number): Reply {
  const locations = Array.from({ length: products }, (_, i) => new URL(podOf(i + 1).path, `http://127.0.0.1:${port}/`))
  const entries = locations.map(({ href }) => `<url><loc>${href}</loc></url>\n`)
  return reply({ type: 'application/xml', body: `<urlset>\n${entries.join('')}</urlset>\n` })
}

const page = (title: string) =>
  `<html>\n<head><title>${title}</title></head>\n<body><h1>${title}</h1></body>\n</html>\n`

/** Maps targets to replies. Holds the cache and the counters of temporary faults. */
function booksHandler(options: BooksSiteOptions & { products: number }): (target: string) => Reply {
  const { products, misbehave = false, robots, edit } = options
  const delayMs = typeof options.delayMs === 'number' ? options.delayMs : 0
  const { cache = edit === undefined && products <= CACHED_PRODUCTS_MAX } = options
  const pages = pageCount(products)
  const kept = new Map<string, Reply>()
  const failures = new Map<number, number>()
  const respond = (parts: ReplyParts) => reply({ delayMs, ...parts })
  const notFound = respond({ status: 404, body: page('404 Not Found') })
  const softError = respond({ body: toBytes(softErrorPage) })
  const fixed = new Map([['/healthz', reply({ type: 'text/plain', body: 'ok\n' })]])
  if (robots !== undefined) fixed.set('/robots.txt', respond({ type: 'text/plain', body: robots }))

  /** Whether fault `id` occurs once more: `times` times in total. */
  const failsAgain = (id: number, times: number) => {
    const count = failures.get(id) ?? 0
    failures.set(id, count + 1)
    return count < times
  }

  function listing(path: string, body: Buffer): Reply {
    const edited = edit?.(path, body.toString('utf8')) ?? body
    return typeof edited === 'number'
      ? respond({ status: edited, body: page(String(edited)) })
      : respond({ body: edited })
  }

  function product(id: number): Reply {
    if (misbehave) {
      const { retryAfterSeconds, slowMs } = MISBEHAVIOUR
      if (id === MISBEHAVIOUR.missing) return notFound
      if (id === MISBEHAVIOUR.softError) return softError
      if (id === MISBEHAVIOUR.flaky && failsAgain(id, MISBEHAVIOUR.flakyFailures))
        return respond({ status: 503, body: page('503 Service Unavailable') })
      if (id === MISBEHAVIOUR.rateLimited && failsAgain(id, 1)) {
        const headers = { 'Retry-After': String(retryAfterSeconds) }
        return respond({ status: 429, headers, body: page('429 Too Many Requests') })
      }
      if (id === MISBEHAVIOUR.slow)
        return respond({ body: toBytes(productPage(id, products)), delayMs: delayMs + slowMs })
    }
    return respond({ body: toBytes(productPage(id, products)) })
  }

  function route(path: string): Reply {
    if (path === '/' || path === '/index.html')
      return respond({ body: toBytes(listingPage(1, products, { atRoot: true })) })
    const found = /^\/catalogue\/(?:page-([1-9]\d{0,8})\.html|[a-z0-9-]+_([1-9]\d{0,8})\/index\.html)$/.exec(path)
    if (found === null) return fixed.get(path) ?? notFound
    const number = Number(found[1] ?? found[2])
    if (found[1] !== undefined)
      return number <= pages ? listing(path, toBytes(listingPage(number, products, { misbehave }))) : notFound
    return number <= products && podOf(number).path === path ? product(number) : notFound
  }

  const faulty = new Set<string>()
  if (misbehave)
    for (const id of [MISBEHAVIOUR.flaky, MISBEHAVIOUR.rateLimited]) if (id <= products) faulty.add(podOf(id).path)

  return (target) => {
    const known = kept.get(target)
    if (known !== undefined) return known
    const query = target.indexOf('?')
    const path = query === -1 ? target : target.slice(0, query)
    const found = route(path)
    // Only plain paths of pages are cached, so the cache is bounded by the catalogue.
    if (cache && query === -1 && found.status === 200 && !faulty.has(path)) kept.set(path, found)
    return found
  }
}
