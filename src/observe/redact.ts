/** Takes secrets out of what is logged or shown: credentials in URLs, secret-like parameters, fields and headers. */

const MASK = '***'

/** Names whose value is a secret wherever they stand: a header, a field, a query parameter. */
const SECRET_NAME =
  /^(?:(?:proxy-)?authorization|(?:set-)?cookies?|key|sig|auth|jwt|bearer|sid|session[-_]?(?:id|key)?)$|token|secret|passw(?:or)?d|passphrase|pwd$|api[-_]?key|access[-_]?key|private[-_]?key|signature|credential/i

/** `scheme://user:password@`, but not how our help writes it. The lengths are bounded so that no text makes the search quadratic. */
const URL_CREDENTIALS = /([a-z][a-z0-9+.-]{0,20}:\/\/)(?!\[?user:password@\]?host:port)[^\s/?#@"'<>]{1,512}@/gi
const QUERY_VALUE = /([?&;])([\w.~%[\]-]{1,64})=([^&#;\s"'<>]*)/g
const HEADER_LINE = /\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key)(["']?\s{0,4}[:=]\s{0,4}["']?)[^\r\n"']+/gi
const BEARER = /\b(bearer|basic)\s+[\w.~+/-]{8,}=*/gi
const NAMED_VALUE =
  /\b((?:\w{1,32}[-_])?(?:password|passwd|secret|token|api[-_]?key))(["']?\s{0,4}[:=]\s{0,4}["']?)[^\s"'&,;}]+/gi
/** One look that most texts fail, so that they cost 0.1 µs in place of 1 µs. */
const MAYBE_SECRET = /@|[?&;][^=]{1,64}=|auth|cookie|bearer|basic|passw|secret|token|key/i

/** A text without the secrets in it. Texts without any come back as they are. */
export function redactText(text: string): string {
  if (!MAYBE_SECRET.test(text)) return text
  return text
    .replace(URL_CREDENTIALS, `$1${MASK}@`)
    .replace(QUERY_VALUE, (whole, separator: string, name: string) =>
      SECRET_NAME.test(name) ? `${separator}${name}=${MASK}` : whole,
    )
    .replace(HEADER_LINE, `$1$2${MASK}`)
    .replace(BEARER, `$1 ${MASK}`)
    .replace(NAMED_VALUE, `$1$2${MASK}`)
}

const DEPTH_MAX = 6
const ENTRIES_MAX = 200

/** A copy of what a scraper or stage wants logged, without secrets, and bounded: a log line is no place for a whole page. */
export function redactValue(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Error) {
    const { code } = value as { code?: unknown }
    return { name: value.name, message: redactText(value.message), ...(code === undefined ? {} : { code }) }
  }
  if (value instanceof Date) return value
  if (value instanceof URL) return redactText(value.href)
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (depth >= DEPTH_MAX) return '[…]'
  if (Array.isArray(value)) return value.slice(0, ENTRIES_MAX).map((entry) => redactValue(entry, depth + 1))
  const entries = value instanceof Map ? [...value] : Object.entries(value)
  return Object.fromEntries(
    entries
      .slice(0, ENTRIES_MAX)
      .map(([name, entry]) => [name, SECRET_NAME.test(String(name)) ? MASK : redactValue(entry, depth + 1)]),
  )
}
