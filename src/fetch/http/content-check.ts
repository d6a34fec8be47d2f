/**
 * Content check: is there a page to read? Empty responses and files are errors unless the route accepts them. The type in the
 * header is checked before the body is read. If the header is missing or says text, the body decides.
 */
import { ScrapeError } from '../../core/errors.ts'
import { withPage } from '../../core/failed-page.ts'
import type { Page } from '../../core/page.ts'
import type { Accept, AcceptRules } from '../../core/scraper.ts'
import { acceptsStatus, acceptsType, rulesOf } from './accept.ts'
import { parseContentType } from './charset.ts'
import { headerOf, keptPage, type RawHeaders } from './http-page.ts'

/** Text, and text formats with other type names. */
const READABLE = new RegExp(
  `^(?:${[
    'text/.+',
    '.+\\+(?:xml|json|yaml)',
    'application/(?:x-)?(?:json|jsonl|jsonlines|ndjson|json5|json-seq|javascript|ecmascript|yaml|toml|xml|xml-dtd)',
    'application/(?:x-www-form-urlencoded|graphql|sql|x-sh|x-tex|x-subrip|rtf)',
  ].join('|')})$`,
)
/** As good as no type at all. */
const UNSPECIFIED = /^(?:|[^/]*|unknown\/unknown|(?:application|content)\/(?:x-)?unknown|\*\/\*)$/

export function isReadableType(essence: string): boolean {
  return UNSPECIFIED.test(essence) || READABLE.test(essence)
}

/** Checks only responses that would be pages. For error pages, and for statuses the route accepts, the status is what matters. */
const isPlainPage = (status: number) => status >= 200 && status < 300 && !isWithoutBody(status)
const isWithoutBody = (status: number) => status === 204 || status === 205

/** Looks only at the header. */
export function isRefusedType(status: number, headers: RawHeaders, accept: Accept | undefined): boolean {
  if (!isPlainPage(status)) return false
  const { essence } = parseContentType(headerOf(headers, 'content-type') ?? '')
  return !isReadableType(essence) && !acceptsType(rulesOf(accept), essence)
}

export function contentTypeError(page: Page, what = page.contentType): ScrapeError {
  const { url, status } = page
  return withPage(
    new ScrapeError('E_CONTENT_TYPE', `${what} instead of a page from ${url}`, { url, status }),
    keptPage(page),
  )
}

/** Returns a promise only if the first bytes need a closer look. Throws `E_EMPTY`, `E_CONTENT_TYPE`. */
export function checkContent(page: Page, accept: Accept | undefined): undefined | Promise<void> {
  const { status, url, headers, body } = page
  const rules = rulesOf(accept)
  if (isRefusedType(status, headers, accept)) throw contentTypeError(page)
  const isJudged = isPlainPage(status) || (isWithoutBody(status) && !acceptsStatus(accept, status))
  if (!isJudged) return undefined
  if (rules.empty !== true && isBlank(page)) {
    const what = isWithoutBody(status) ? `status ${status}` : body.length === 0 ? 'no body' : 'only white space'
    throw withPage(new ScrapeError('E_EMPTY', `${what} instead of a page from ${url}`, { url, status }), keptPage(page))
  }
  if (page.live !== undefined || !isReadableType(page.contentType) || !maybeBinary(page)) return undefined
  return checkBytes(page, rules)
}

/** The document that a browser creates for an empty response. */
const BLANK_DOCUMENT =
  /^\s*(?:<!doctype[^>]*>)?\s*<html[^>]*>\s*<head[^>]*>\s*<\/head>\s*<body[^>]*>\s*<\/body>\s*<\/html>\s*$/i
const BLANK_DOCUMENT_BYTES_MAX = 1024

/** White space of any kind, and byte order marks. */
export function isBlank(page: Page): boolean {
  const { body } = page
  if (body.length === 0) return true
  const first = body[0]!
  const isText = first > 0x20 && first < 0x7f
  if (!isText) return !/[^\s\0\u200b-\u200d\u2060]/.test(page.text)
  return page.live !== undefined && body.length <= BLANK_DOCUMENT_BYTES_MAX && BLANK_DOCUMENT.test(page.text)
}

/** How many bytes browsers look at to detect the type. */
const LOOKED_AT_BYTES = 1445
/** More than an HTML page may contain by mistake; in random bytes it is a tenth. */
const BINARY_SHARE_MAX = 0.05
const PDF = '%PDF-'

/** Counts control characters that do not occur in text (WHATWG MIME Sniffing), in encodings that do not use them. */
function binaryBytes(body: Buffer): number {
  let count = 0
  for (const byte of body.subarray(0, LOOKED_AT_BYTES))
    if (byte < 0x20 && (byte <= 0x08 || byte === 0x0b || (byte >= 0x0e && byte !== 0x1b))) count++
  return count
}

function maybeBinary({ body, charset }: Page): boolean {
  if (charset.startsWith('utf-16')) return false
  return binaryBytes(body) > 0 || body.toString('latin1', 0, PDF.length) === PDF
}

/** Enough for `file-type`: office files need a few entries of their archive. */
const SNIFF_BYTES = 16_384

async function checkBytes(page: Page, rules: AcceptRules): Promise<void> {
  const { body } = page
  const { fileTypeFromBuffer } = await import('file-type')
  // Data that breaks its parser has no type.
  const found = await fileTypeFromBuffer(body.subarray(0, SNIFF_BYTES)).catch(() => undefined)
  const type = found?.mime.replace(/;.*/s, '')
  if (type !== undefined && (isReadableType(type) || acceptsType(rules, type))) return
  const share = binaryBytes(body) / Math.min(body.length, LOOKED_AT_BYTES)
  if (type === undefined && share <= BINARY_SHARE_MAX) return
  const said = page.contentType === '' ? 'no type' : page.contentType
  throw contentTypeError(page, `${type ?? 'binary data'} (the header says ${said})`)
}
