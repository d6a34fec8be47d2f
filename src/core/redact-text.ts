/**
 * Masks secrets in a text: credentials in URLs, values of names that sound like a secret, and tokens with a known format.
 * Every step is linear in the length of the text: names and separators are bounded, and unbounded parts end at the first
 * character that cannot belong to them.
 */
import { isSecretName } from './secret-names.ts'

export const MASK = '***'

/** A cheap pre-check that most texts fail, which saves them the steps below. */
const MAYBE_SECRET =
  /@|%[2-7][0-9a-f]|[?&;#][\w.~[\]-]{1,64}=|pass|pwd|pw[ =:]|secret|token|key|auth|cookie|cred|sess|signature|bearer|basic|[cx]srf|jwt|otp[^a-z]|\b(?:pin|sid|sig|cvv)\b|eyJ|PRIVATE|:\d{1,5}:|connection.?string|(?:slk|whsec|gh[oprsu]|npm|_live|_test|hf|glsa|shp..|_api|dop_v1|gems|sntrys|github_pat)_|(?:glpat|xox.|xapp|pypi|keysib|sq0...|sk)-|AIza|A[KS]IA|ya29|SG\.|hooks\.|webhooks|hvs\.|\bcurl\b/i

const DECODINGS_MAX = 3

/** Returns the text with its secrets masked; a text without secrets is returned unchanged. */
export function redactText(text: string): string {
  return MAYBE_SECRET.test(text) ? redacted(text, 0) : text
}

function redacted(text: string, decodings: number): string {
  let shown = text.includes('-----BEGIN') ? text.replace(PRIVATE_KEY, `$1${MASK}`) : text
  if (shown.includes('@')) shown = withoutLogins(shown)
  if (decodings < DECODINGS_MAX && shown.includes('%')) shown = withoutEncodedSecrets(shown, decodings)
  shown = withoutNamedValues(shown)
  if (CURL.test(shown)) shown = shown.replace(CURL_LOGIN, `$1${MASK}`)
  return shown.replace(SHAPES, shapeMask)
}

/** Matches to the end of the key, or to the end of a text that was cut off within it. */
const PRIVATE_KEY = /(-----BEGIN [A-Z\d ]{0,40}PRIVATE KEY(?: BLOCK)?-----)[\s\S]*?(?:(?=-----END)|$)/g

const SCHEME = /[a-z][a-z\d+.-]{0,20}:\/\//gi
/** White space and quotes end a URL in a text, and so does a terminal escape sequence. */
const URL_END = /[\s"'`\p{Cc}]|$/gu
/** Credentials as our own help texts write them. */
const PLACEHOLDER = /^\[?user:password@\]?(?:(?:host|localhost:\d)[^@]*)?$/i
const LOGIN_BEFORE_PLACE =
  /(?<![\w/.-])[\w.+-]{1,64}:[^\s"'@/]{1,256}(@(?:[\w.-]{1,253}|\[[\da-f:.]{2,45}\]):\d{1,5}\b)/gi

/** `scheme:user:password@host`, where the slashes were forgotten. */
const LOGIN_WITHOUT_SLASHES = /(?<![\w/.-])([a-z][a-z\d+.-]{0,20}:)[^\s"'`@/:]{1,64}:[^\s"'`@/]{1,256}(?=@[\w[])/gi

const CURL = /\bcurl\b/i
/** `-u user:password`, also behind other short options (`-sSu`), in quotes, and as arguments in JSON. Other programs' `-u` is harmless. */
const CURL_LOGIN =
  /(?<![\w-])((?:-[a-z]{0,8}u|--(?:proxy-)?user)(?:=|[\s,\\"']{0,8}))(?:(?<=")[^"\r\n:]{1,128}:[^"\r\n]{1,256}|(?<=')[^'\r\n:]{1,128}:[^'\r\n]{1,256}|[^\s"':]{1,128}:[^\s"']{1,256})/gi

/** `scheme://user:password@host`: everything up to the last `@`, because a password may contain any character, even an unescaped `/`. */
function withoutLogins(text: string): string {
  let shown = ''
  let keptTo = 0
  let end = -1
  let lastAt = -1
  for (const { 0: scheme, index } of text.matchAll(SCHEME)) {
    const start = index + scheme.length
    if (start < keptTo) continue
    if (start > end) {
      URL_END.lastIndex = start
      end = URL_END.exec(text)?.index ?? text.length
      lastAt = text.lastIndexOf('@', end - 1)
    }
    if (lastAt < start || !isLogin(scheme, text.slice(start, end))) continue
    shown += `${text.slice(keptTo, start)}${MASK}`
    keptTo = lastAt
  }
  return (shown + text.slice(keptTo))
    .replace(LOGIN_BEFORE_PLACE, `${MASK}$1`)
    .replace(LOGIN_WITHOUT_SLASHES, `$1${MASK}`)
}

const WEB = /^(?:https?|wss?|file):/i
/**
 * A user name alone in a server's URL, as in the commands we print, is needed and not a secret. In the URL of a web page it may
 * be a token.
 */
const SERVER = /^(?:postgres(?:ql)?|rediss?|amqps?|mysql|mongodb(?:\+srv)?):/i
const USER_ALONE = /^[\w.%-]{1,63}@[^@]*$/
const HOST = /^(?:[\w-]+(?:\.[\w-]+)+\.?|localhost|\[[\da-f:.]+\])(?::\d{1,5})?$/i

/** In the URL of a web page, an `@` in the path or query is not part of the credentials: `https://x.test/@ana`. With other schemes it always is. */
function isLogin(scheme: string, rest: string): boolean {
  if (PLACEHOLDER.test(rest) || (SERVER.test(scheme) && USER_ALONE.test(rest))) return false
  const authority = /^[^/?#]*/.exec(rest)![0]
  if (authority.includes('@')) return true
  return !WEB.test(scheme) || !(authority === '' || HOST.test(authority))
}

const WORD = /[^\s"'&?#;=<>]+/g

/** `next=https%3A%2F%2Fx.test%2F%3Ftoken%3D…` */
function withoutEncodedSecrets(text: string, decodings: number): string {
  return text.replace(WORD, (encoded) => {
    const plain = encoded.includes('%') ? decoded(encoded) : encoded
    if (plain === encoded) return encoded
    const shown = redacted(plain, decodings + 1)
    return shown === plain ? encoded : encodeURIComponent(shown)
  })
}

/** A quote in plain text, in JSON within JSON, or in HTML. */
const QUOTE = String.raw`(?:\\{0,7}["']|&quot;|&#34;)`
const NAME = String.raw`(?:(?<![\w.-])|(?<=(?<![\w-])--))(?<name>[A-Za-z_][\w.-]{0,127}(?:\[[\w-]{1,64}\])?)`

/** `name=value`, `name: value`, `"name": "value"`, `:name=>"value"`, `--name value`. */
const NAMED = new RegExp(
  `${NAME}(?<separator>${QUOTE}?\\s{0,4}(?:=>|:=|[:=])\\s{0,8})(?<quote>${QUOTE}?)|(?<![\\w-])--(?<flag>[a-z][a-z-]{1,40}) (?=[^\\s-])`,
  'g',
)
/** `["authorization", "…"]`, `<password>…</password>`, `name="csrf" value="…"`, and a field of a multipart body. */
const PAIRED = new RegExp(
  [
    `(?<pairHead>${QUOTE}(?<pairName>[\\w-]{2,64})${QUOTE}\\s{0,4},\\s{0,4})(?<pairQuote>${QUOTE})`,
    String.raw`(?<tagHead><(?<tagName>[\w:.-]{2,64})>)[^<]*(?=<\/)`,
    String.raw`(?<inputHead>\bname=\\{0,3}["']?(?<inputName>[\w.[\]-]{2,64})\\{0,3}["']?[^<>]{0,200}?\b(?:value|content)=)(?<inputQuote>\\{0,3}["'])`,
    String.raw`(?<partHead>\bname="(?<partName>[\w.[\]-]{2,64})"(?:\r\n|\n){2})[^\r\n]*`,
  ].join('|'),
  'g',
)
const QUERY = /(?<before>[?&;#])(?<query>[\w.~%[\]-]{1,128})=/g

/** The end of an unquoted value. */
const BARE_END = /[\s"'&;<>})\]\p{Cc}]|,(?=\s|\w{1,32}[=:])|$/gu
const QUERY_END = /[&#;\s"'<>\p{Cc}]|$/gu
/**
 * A header extends to the end of its line, or to a quote around it; a quoted value after `=` belongs to it (`response="…"`). Our
 * own help writes `Authorization: Bearer KEY`, which is not masked.
 */
const HEADER_LINE =
  /\b((?:proxy-)?authorization\s{0,4}[:=]\s{0,4}|(?:set-)?cookie2?\s{0,4}:\s{0,4})(?!\s{0,4}(?:Bearer KEY|…)(?:[`'"\p{Cc}]|$))(?:=\\{0,3}"[^"\p{Cc}]*"|[^\p{Cc}"'])+/giu

function withoutNamedValues(text: string): string {
  const hasState = stateFinder()
  let shown = masked(text, QUERY, ({ query }, at, all) => {
    const name = decoded(query!)
    if (!isSecretName(name, 'query')) return undefined
    const end = endAt(QUERY_END, all, at)
    const value = all.slice(at, end)
    if (value === 'KEY' || value === 'FILE') return undefined // placeholders in our own help
    return /^code$/i.test(name) && !isRandom(value) && !hasState(all, at) ? undefined : end
  })
  shown = masked(shown, NAMED, ({ name, flag, quote, separator }, at, all) => {
    if (flag !== undefined) return isSecretName(flag, 'text') ? endAt(BARE_END, all, at) : undefined
    if (!isSecretName(name!, 'text') && !isShortName(name!, separator!, all, at)) return undefined
    if (quote !== '') return endOfQuoted(all, at, quote!)
    const end = endAt(BARE_END, all, at)
    return isSaid(name!, separator!, all.slice(at, end)) ? undefined : end
  })
  if (/["'<]/.test(shown)) shown = masked(shown, PAIRED, endOfPaired)
  // After the named values: a header takes the rest of its line, including a name at its end.
  return shown.replace(HEADER_LINE, `$1${MASK}`)
}

/** `?code=` is a login code or a harmless one (`de-DE`, `SKU123`): login codes are long and random, or come with `state=`. */
const isRandom = (value: string) =>
  value.length >= 16 || (value.length >= 10 && /\d/.test(value) && /[a-z]/i.test(value))

/** Returns whether the URL around a position has a `state=`. Positions come in rising order, so each URL is searched once. */
function stateFinder(): (text: string, at: number) => boolean {
  let end = 0
  let isFound = false
  return (text, at) => {
    if (at <= end) return isFound
    const before = text
      .slice(end, at)
      .split(/[\s"'<>]/)
      .at(-1)!
    end = endAt(/[\s"'<>]|$/g, text, at)
    isFound = /[?&;#]state=/i.test(before + text.slice(at, end))
    return isFound
  }
}

/** `auth=…`, and `key=…` with a value like a secret's: `key=id` names a field, and `auth: …` is prose. */
function isShortName(name: string, separator: string, text: string, at: number): boolean {
  if (!separator.includes('=')) return false
  if (/^auth$/i.test(name)) return true
  return /^key$/i.test(name) && /^(?=[\w.~+/-]*\d)(?=[\w.~+/-]*[a-z])[\w.~+/-]{16}/i.test(text.slice(at, at + 64))
}

function endOfPaired(found: Groups, at: number, all: string): number | undefined {
  const name = found['pairName'] ?? found['tagName'] ?? found['inputName'] ?? found['partName'] ?? ''
  if (!isSecretName(name, found['pairName'] === undefined ? 'field' : 'text')) return undefined
  const quote = found['pairQuote'] ?? found['inputQuote']
  if (quote !== undefined) return endOfQuoted(all, at, quote)
  return found['tagHead'] === undefined ? endAt(/[\r\n]|$/g, all, at) : endAt(/<|$/g, all, at)
}

/** Plain words after such a name are not secrets: `token: none`, `pass: 12`. */
const SAID =
  /^(?:none|null|nil|undefined|true|false|yes|no|ok|on|off|missing|required|optional|invalid|expired|wrong|unknown|empty|set|unset|string|number|bearer|basic|disabled|enabled|\*+|…|\.\.\.|\[redacted\]|)$/i

function isSaid(name: string, separator: string, value: string): boolean {
  if (SAID.test(value)) return true
  // `pass: 12, fail: 0` is a count; `pass=12` is not.
  return /^pass$/i.test(name) && separator.includes(':') && /^\d{1,9}$/.test(value)
}

type Groups = Record<string, string | undefined>

/** Masks the text after each match up to the end that `endOf` returns; undefined leaves it. Masked text is not searched again. */
function masked(text: string, pattern: RegExp, endOf: (groups: Groups, at: number, all: string) => number | undefined) {
  let shown = ''
  let keptTo = 0
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const groups = match.groups as Groups
    const head = groups['tagHead'] ?? groups['partHead'] ?? match[0]
    const at = match.index + head.length
    const end = endOf(groups, at, text)
    if (end === undefined || end <= at) {
      // The value may itself begin with a name: `url=token=…`.
      pattern.lastIndex = at
      continue
    }
    shown += text.slice(keptTo, at) + MASK
    keptTo = end
    pattern.lastIndex = end
  }
  return keptTo === 0 ? text : shown + text.slice(keptTo)
}

function endAt(end: RegExp, text: string, from: number): number {
  end.lastIndex = from
  return end.exec(text)?.index ?? text.length
}

/** The same quote again, preceded by no more backslashes than the first; without one, the end of the text. */
function endOfQuoted(text: string, from: number, quote: string): number {
  if (quote.startsWith('&')) return indexOr(text, quote, from)
  const slashes = quote.length - 1
  const mark = quote.at(-1)!
  for (let at = text.indexOf(mark, from); at !== -1; at = text.indexOf(mark, at + 1)) {
    let before = 0
    while (text[at - 1 - before] === '\\') before++
    if (before <= slashes) return at - before
  }
  return text.length
}

function indexOr(text: string, found: string, from: number): number {
  const at = text.indexOf(found, from)
  return at === -1 ? text.length : at
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Tokens with a recognisable format. */
const SHAPES = new RegExp(
  [
    String.raw`\b(?<scheme>bearer|basic)\s{1,4}(?<value>[\w.~+/-]{8,}=*)`,
    String.raw`\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?`,
    String.raw`\b(?:slk|whsec|gh[oprsu]|npm|sk_live|sk_test|rk_live|rk_test|hf|glsa|shpat|shpss|lin_api|dop_v1|rubygems|sntrys|pk_live_secret)_[\w+/=-]{12,}`,
    String.raw`\bgithub_pat_\w{12,}`,
    String.raw`\b(?:glpat|xox[abeoprs]|xapp|pypi|xkeysib|sq0(?:atp|csp)|AGE-SECRET-KEY)-[\w-]{12,}`,
    String.raw`\bsk-(?=[\w-]{0,40}\d)[\w-]{16,}`,
    String.raw`\bAIza[\w-]{30,}`,
    String.raw`\bya29\.[\w-]{16,}`,
    String.raw`\b(?:AKIA|ASIA)[A-Z\d]{16}\b`,
    String.raw`\bSG\.[\w-]{16,}\.[\w-]{16,}`,
    String.raw`\bhvs\.[\w-]{16,}`,
    String.raw`(?<hook>\bhooks\.slack\.com/services/|\bdiscord(?:app)?\.com/api/webhooks/\d{1,30}/)[\w/-]{8,}`,
    String.raw`(?<place>(?<![\w.-])(?:[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}|localhost):\d{1,5}:)[A-Za-z][^\s"':@/]{0,63}:[^\s"'@]{1,256}`,
  ].join('|'),
  'gi',
)

function shapeMask(whole: string, ...rest: unknown[]): string {
  const { scheme, value, hook, place } = rest.at(-1) as Groups
  if (scheme !== undefined) return isCredential(scheme, value!) ? `${scheme} ${MASK}` : whole
  return `${hook ?? place ?? ''}${MASK}`
}

/** "basic information" and "bearer securities" are words: a credential is base64 of `user:password`, or not a word. */
function isCredential(scheme: string, value: string): boolean {
  if (/^basic$/i.test(scheme)) return Buffer.from(value, 'base64').toString().includes(':') && /[A-Z\d+/=]/.test(value)
  return value.length >= 20 || /[\d_.+/=~]/.test(value) || /[a-z][A-Z]|[A-Z]{4}/.test(value)
}
