/** A page as HTTP delivers it: expensive parts that are rarely needed (text, header object) are created on first use. */
import type { Page, PageTimings } from '../../core/page.ts'
import type { BodyPlace } from './body-room.ts'
import { decodeText } from './charset.ts'

export type RawHeaders = Readonly<Record<string, string | string[] | undefined>>

export interface PageParts {
  requestedUrl: string
  url: string
  redirects: readonly string[]
  status: number
  headers: RawHeaders
  body: Buffer
  contentType: string
  charset: string
  wireBytes: number
  timings: PageTimings
  fetchedAtMs: number
  /** The room its body takes, if that is bounded; given back by `release`. */
  place?: BodyPlace | undefined
}

const NOTHING = Buffer.alloc(0)

export class HttpPage implements Page {
  readonly requestedUrl: string
  readonly url: string
  readonly redirects: readonly string[]
  readonly status: number
  readonly contentType: string
  readonly charset: string
  readonly bytes: { readonly wire: number; readonly decoded: number }
  readonly timings: PageTimings
  readonly fromCache = false
  readonly fetchedAtMs: number
  suspicion?: string
  readonly #rawHeaders: RawHeaders
  #headers: Record<string, string | string[]> | undefined
  #body: Buffer
  #text: string | undefined
  readonly #place: BodyPlace | undefined

  constructor(parts: PageParts) {
    this.requestedUrl = parts.requestedUrl
    this.url = parts.url
    this.redirects = parts.redirects
    this.status = parts.status
    this.#body = parts.body
    this.contentType = parts.contentType
    this.charset = parts.charset
    this.bytes = { wire: parts.wireBytes, decoded: parts.body.length }
    this.timings = parts.timings
    this.fetchedAtMs = parts.fetchedAtMs
    this.#rawHeaders = parts.headers
    this.#place = parts.place
  }

  get headers(): Readonly<Record<string, string | string[]>> {
    this.#headers ??= plainHeaders(this.#rawHeaders)
    return this.#headers
  }

  get body(): Buffer {
    return this.#body
  }

  get text(): string {
    this.#text ??= decodeText(this.#body, this.charset)
    return this.#text
  }

  release(): void {
    this.#body = NOTHING
    this.#text = undefined
    this.giveRoom()
  }

  /** For a failed page, which is kept for its snapshot and never released. */
  giveRoom(): void {
    this.#place?.[Symbol.dispose]()
  }
}

/** Null prototype: a header may be named `__proto__` or `constructor`. */
function plainHeaders(raw: RawHeaders): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of Object.entries(raw)) {
    if (value === undefined) continue
    if (name === 'set-cookie') headers[name] = typeof value === 'string' ? [value] : value
    else headers[name] = typeof value === 'string' ? value : value.join(', ')
  }
  return headers
}

/** The value of a header that should occur once; the first, if there are several. */
export function headerOf(headers: RawHeaders, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'object' ? value[0] : value
}

/** A browser page is closed when it fails, but its content is still needed for the snapshot. */
export function keptPage(page: Page): Page {
  if (page.live === undefined) return page
  const { requestedUrl, url, redirects, status, headers, body, contentType, charset, bytes, timings, fetchedAtMs } =
    page
  const wireBytes = bytes.wire
  return new HttpPage({
    requestedUrl, url, redirects, status, headers, body, contentType, charset, wireBytes, timings, fetchedAtMs,
  }) // biome-ignore format: one line reads better
}
