/** Resolves links. Parsing a URL takes 1–2 µs and a page has a hundred links, so common ones are joined without parsing. */
import { detached } from './text-builder.ts'

export interface Base {
  readonly href: string
  /** `https://example.org` */
  readonly origin: string
  /** `/catalogue/` */
  readonly folder: string
}

/** undefined unless it is an http(s) URL. */
export function baseOf(href: string, against?: string): Base | undefined {
  const url = URL.parse(href, against)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined
  // Credentials never belong in a link, but they are part of what relative links are joined to.
  const origin = url.href.slice(0, url.href.indexOf('/', url.protocol.length + 2))
  return { href: url.href, origin, folder: url.pathname.slice(0, url.pathname.lastIndexOf('/') + 1) }
}

/** The absolute URL of a link as written in a page, or undefined if it is not a URL. Same results as `new URL(link, base)`. */
export function resolveUrl(link: string, base: Base): string | undefined {
  const url = joined(link, base)
  return url === undefined ? URL.parse(link, base.href)?.href : detached(url)
}

/** Characters that need no escaping in paths or queries. */
const PLAIN = new Uint8Array(128)
for (const c of 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~.!$&()*+,;=@/?')
  PLAIN[c.charCodeAt(0)] = 1

/** For plain relative paths with dot segments only at the front; undefined for anything else. */
function joined(link: string, base: Base): string | undefined {
  const { length } = link
  if (length === 0 || length > 2048) return undefined
  let i = 0
  let folderEnd = base.folder.length // one past its last `/`
  if (link.charCodeAt(0) === 47) {
    if (length > 1 && link.charCodeAt(1) === 47) return undefined
    folderEnd = 0
  } else {
    while (link.startsWith('../', i)) {
      i += 3
      if (folderEnd > 1) folderEnd = base.folder.lastIndexOf('/', folderEnd - 2) + 1
    }
  }
  const from = i
  let isQuery = false
  for (; i < length; i++) {
    const c = link.charCodeAt(i)
    if (c > 127 || PLAIN[c] === 0) return undefined
    if (c === 63) {
      if (i === 0) return undefined
      isQuery = true
    } else if (c === 46 && !isQuery && (i === from || link.charCodeAt(i - 1) === 47)) return undefined // a dot segment?
  }
  return base.origin + (folderEnd === 0 ? '' : base.folder.slice(0, folderEnd)) + (from === 0 ? link : link.slice(from))
}
