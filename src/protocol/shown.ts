/** What may be displayed of a message: of a proxy only where it is, and nothing under a name that sounds like a secret. */
import { isSecretName } from '../core/secret-names.ts'
import { withoutLogins } from './logins.ts'

const MASK = '***'
const PROXY_NAME = /prox(?:y|ies)/i
/** For text that is not JSON. If such a value is not plainly quoted, its end is unknown: the rest is left out. */
const HIDDEN =
  /([\w-]{0,64}(?:prox(?:y|ies)|token|secret|passw|pwd|key|auth|cookie|credential)[\w-]{0,64}["']?\s{0,9}[:=]\s{0,9})(?:"([^"\\]*)"|.*)/gis

/** Longer messages are shown as the beginning of their text. */
const PARSED_LENGTH_MAX = 64 * 1024
const SHOWN_LENGTH_MAX = 2_000
/** A message may consist of nothing but brackets. */
const DEPTH_MAX = 32

/** The beginning of a message that could not be read. */
export function shownMessage(message: string): string {
  const value = message.length > PARSED_LENGTH_MAX ? undefined : parsed(message)
  if (value !== undefined) return JSON.stringify(withoutSecrets(value)).slice(0, SHOWN_LENGTH_MAX)
  const begin = message.slice(0, SHOWN_LENGTH_MAX).replace(HIDDEN, (_, name: string, quoted?: string) => {
    if (quoted === undefined) return `${name}${MASK}`
    return `${name}"${PROXY_NAME.test(name) ? placeInText(quoted) : MASK}"`
  })
  return withoutLogins(begin, { isCut: true })
}

function parsed(message: string): unknown {
  try {
    return JSON.parse(message)
  } catch {
    return undefined
  }
}

/** Returns a copy. Numbers and booleans are kept, whatever their name. */
export function withoutSecrets(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return withoutLogins(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth >= DEPTH_MAX) return MASK
  if (Array.isArray(value)) return value.map((entry) => withoutSecrets(entry, depth + 1))
  return mapped(value, (entry, name) => {
    if (isSecretName(name)) return MASK
    return PROXY_NAME.test(name) ? placeOf(entry, depth + 1) : withoutSecrets(entry, depth + 1)
  })
}

/** Host and port of a proxy in any notation, if it is clear which part that is. */
function placeOf(proxy: unknown, depth: number): unknown {
  if (typeof proxy === 'string') return placeInText(proxy)
  if (typeof proxy !== 'object' || proxy === null) return proxy
  if (depth >= DEPTH_MAX) return MASK
  if (Array.isArray(proxy)) return proxy.map((entry) => placeOf(entry, depth + 1))
  return mapped(proxy, (entry, name) =>
    /^(?:host|hostname|port)$/i.test(name) && /^[\w.-]{1,253}$/.test(String(entry)) ? entry : MASK,
  )
}

const PLACE = String.raw`([\w.-]{1,253}|\[[\da-f:.]{2,45}\]):\d{1,5}`
const PLAIN = new RegExp(`^(?:[a-z][a-z0-9+.-]{0,20}://)?${PLACE}/?$`, 'i')
const AFTER_LOGIN = new RegExp(`@(?<place>${PLACE})/?$`, 'i')
/** Proxy sellers write `host:port:user:password`. */
const BEFORE_LOGIN = /^(?<place>(?:[\w-]{1,63}\.[\w.-]{1,190}|localhost):\d{1,5}):[^@]*$/i

function placeInText(proxy: string): string {
  if (PLAIN.test(proxy)) return proxy
  const place = (BEFORE_LOGIN.exec(proxy) ?? AFTER_LOGIN.exec(proxy))?.groups?.['place']
  return place === undefined ? MASK : `${MASK}@${place}`
}

function mapped(value: object, change: (entry: unknown, name: string) => unknown): object {
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, change(entry, name)]))
}
