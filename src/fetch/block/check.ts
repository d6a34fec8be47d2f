/**
 * Block check: is this the page, or a block page instead of it? Pure, and fast because most responses are decided early:
 *
 *   explicit headers → final URL after redirects → 2xx with plenty of text: a page → signs in body and title → the status
 *
 * Nothing is solved or circumvented here; a block is identified so that it can be reported, waited out, or retried with another
 * identity.
 */

import { BODY_SIGNS } from './body-signs.ts'
import {
  BLOCK_PAGE_BYTES_MAX,
  bodySign,
  bodyTexts,
  cloudflareCode,
  dataSign,
  found,
  type Headers,
  headerSign,
  isData,
  isPosting,
  lowerNames,
  phraseSign,
  redirectSign,
  scriptOnly,
  thinHeaderSign,
  titleSign,
  urlSign,
  vendorOf,
  wallSign,
} from './finders.ts'
import { type BlockEvidence, type BlockVerdict, COOKIE_SIGNS, GONE_PHRASE, UNKNOWN_VENDOR } from './signals.ts'
import { BodyText, LOOKED_AT_BYTES_MAX } from './text.ts'

const NONE: BlockVerdict = { class: 'none', vendor: '', signal: '', confidence: 1 }

/** Statuses that bot protection uses to refuse; other statuses come from the site itself. */
const REFUSALS: ReadonlySet<number> = new Set([202, 403, 405, 406, 418, 429, 503, 999])

export function checkForBlock({ url, status, headers, body }: BlockEvidence): BlockVerdict {
  const named = lowerNames(headers)
  const text = new BodyText(body)
  const sure = headerSign(named) ?? urlSign(url) ?? redirectSign(url, status, named)
  if (sure !== undefined) return sure
  if (status === 404 || status === 410) return { ...NONE, class: 'gone', signal: `status ${status}` }
  if (status >= 200 && status < 300) return checkPage(url, status, named, text)
  const verdict = checkRefusal(status, named, text) ?? NONE
  return verdict.vendor === UNKNOWN_VENDOR && verdict.class !== 'gone'
    ? { ...verdict, ...vendorOf(named, text) }
    : verdict
}

/** A 2xx answer is a page, unless it has almost no content and shows a sign of a block. */
function checkPage(url: string, status: number, headers: Headers, text: BodyText): BlockVerdict {
  const type = headers.get('content-type') ?? ''
  if (text.bytes === 0) return status === 200 ? { ...NONE, isSuspect: true, signal: 'empty body' } : NONE
  if (!/html|json|text\/|^$/.test(type)) return NONE
  if (isData(type, text)) return dataSign(text) ?? NONE
  if (!text.isThin || isPosting(text)) return NONE
  // No block page is this large, even if little text remains once its scripts are removed.
  if (text.bytes > LOOKED_AT_BYTES_MAX) return titleSign(text) ?? NONE
  const texts = bodyTexts(text)
  const sign =
    thinHeaderSign(headers) ??
    bodySign(text, status === 202, texts) ??
    titleSign(text) ??
    cloudflareCode(text) ??
    scriptOnly(headers, text) ??
    wallSign(url, text) ??
    phraseSign(text, false)
  if (sign !== undefined) return sign
  const widget = BODY_SIGNS.find((one) => one.isWidget === true && texts.includes(one.text))
  if (widget !== undefined) return { ...NONE, vendor: widget.vendor, signal: `widget: ${widget.text}`, isSuspect: true }
  return text.isEmpty ? { ...NONE, isSuspect: true, signal: 'nothing in the page' } : NONE
}

function checkRefusal(status: number, headers: Headers, text: BodyText): BlockVerdict | undefined {
  if (status < 400) return undefined
  const isRefusal = REFUSALS.has(status)
  if (status === 403 && text.bytes < BLOCK_PAGE_BYTES_MAX && GONE_PHRASE.test(text.text))
    return { class: 'gone', vendor: UNKNOWN_VENDOR, signal: '403 that says the page is no more', confidence: 0.9 }
  const sign =
    bodySign(text, isRefusal) ??
    cloudflareCode(text) ??
    (isRefusal ? thinHeaderSign(headers) : undefined) ??
    (status === 401 ? undefined : titleSign(text))
  if (sign !== undefined) return sign
  if (status === 999) return { class: 'blocked', vendor: 'linkedin', signal: 'status 999', confidence: 1 }
  if (status === 429 || status === 430)
    return { class: 'rate_limit', vendor: UNKNOWN_VENDOR, signal: `status ${status}`, confidence: 0.95 }
  if (status === 451) return { class: 'geo', vendor: UNKNOWN_VENDOR, signal: 'status 451', confidence: 0.9 }
  if (status === 401 || (status >= 500 && !isRefusal)) return undefined
  const said = phraseSign(text, true)
  if (said !== undefined) return said
  if (status !== 403 && status !== 418) return undefined
  if (headers.has('www-authenticate')) return undefined // asks for a login, like a 401
  const cookie = COOKIE_SIGNS.find((one) => headers.get('set-cookie')?.includes(one.cookie))
  if (cookie !== undefined) return found(cookie, `status ${status} with cookie ${cookie.cookie.replace(/=$/, '')}`)
  return { class: 'blocked', vendor: UNKNOWN_VENDOR, signal: `status ${status}`, confidence: 0.6 }
}
