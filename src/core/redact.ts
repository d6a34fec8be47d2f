/** Masks secrets in values that are logged or shown: by the names of fields and headers, and in every text they contain. */
import { MASK, redactText } from './redact-text.ts'
import { isSecretHeader, isSecretName, isSecretNumberName } from './secret-names.ts'

interface Bounds {
  depthMax: number
  entriesMax: number
}

/** A log line is not the place for a whole page. */
const LOG_LINE: Bounds = { depthMax: 6, entriesMax: 200 }
/** Output is not shortened, except for extremely deep nesting. */
const WHOLE: Bounds = { depthMax: 100, entriesMax: Number.POSITIVE_INFINITY }

/** A bounded copy for the log, without secrets. */
export function redactValue(value: unknown): unknown {
  return redacted(value, LOG_LINE, 0)
}

/** A full copy for a reader: a terminal, an API client, run.json. Parts marked by `verbatim` stay as they are. */
export function redactAll<T>(value: T): T {
  return redacted(value, WHOLE, 0) as T
}

const kept = new WeakSet<object>()

/** Marks values that must be shown unchanged: items, requested URLs, and a new key, which is shown only once. */
export function verbatim<T extends object>(value: T): T {
  kept.add(value)
  return value
}

function redacted(value: unknown, bounds: Bounds, depth: number): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return value
  if (kept.has(value)) return value
  if (value instanceof Error) return errorParts(value)
  if (value instanceof Date) return value
  if (value instanceof URL) return redactText(value.href)
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (depth >= bounds.depthMax) return '[…]'
  if (value instanceof Set) return listParts([...value], bounds, depth)
  if (Array.isArray(value)) return listParts(value, bounds, depth)
  const entries = isPairs(value) ? [...value] : Object.entries(value)
  return objectParts(entries.slice(0, bounds.entriesMax), bounds, depth)
}

function errorParts(error: Error): object {
  const { code } = error as { code?: unknown }
  return { name: error.name, message: redactText(error.message), ...(code === undefined ? {} : { code }) }
}

/** Recognised by its tag: referring to the global `Headers` loads Node's HTTP client, 35 ms of the start of every run. */
const isHeaders = (value: object): boolean =>
  (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag] === 'Headers' && Symbol.iterator in value

const isPairs = (value: object): value is Iterable<[unknown, unknown]> =>
  value instanceof Map || value instanceof URLSearchParams || isHeaders(value)

function objectParts(entries: [unknown, unknown][], bounds: Bounds, depth: number): object {
  const named = namedBeside(entries)
  return Object.fromEntries(
    entries.map(([key, entry]) => {
      const name = key === 'value' && named !== undefined ? named : String(key)
      return [key, shownUnder(name, entry) ?? redacted(entry, bounds, depth + 1)]
    }),
  )
}

/** `{ name: 'Cookie', value: '…' }`, a common form of headers and cookies. */
function namedBeside(entries: [unknown, unknown][]): string | undefined {
  if (!entries.some(([key]) => key === 'value')) return undefined
  const name = entries.find(([key]) => key === 'name' || key === 'key')?.[1]
  return typeof name === 'string' ? name : undefined
}

/** A list may be a pair, a flat list of headers, or the words of a command. */
function listParts(list: unknown[], bounds: Bounds, depth: number): unknown[] {
  const isPair = list.length === 2 && typeof list[0] === 'string' && depth > 0
  return list.slice(0, bounds.entriesMax).map((entry, i) => {
    const before = list[i - 1]
    const isNamed =
      typeof before === 'string' &&
      ((isPair && isSecretName(before, 'text')) || isSecretHeader(before) || isSecretFlag(before))
    return isNamed ? MASK : redacted(entry, bounds, depth + 1)
  })
}

const isSecretFlag = (word: string) => /^--[a-z-]{2,40}$/.test(word) && isSecretName(word.slice(2), 'text')

/** A session name chosen by a user only says whose it is; a server's session id is long, and a secret. */
const SESSION_LENGTH_MIN = 16

/** The mask if the value's name marks it as a secret; undefined if not. */
function shownUnder(name: string, value: unknown): string | undefined {
  if (value === null || value === undefined || value === '' || typeof value === 'boolean') return undefined
  if (name === 'session') return typeof value === 'string' && value.length >= SESSION_LENGTH_MIN ? MASK : undefined
  if (!isSecretName(name)) return undefined
  // At least four digits: `fieldFill.pin` is a share, not a PIN.
  return typeof value !== 'number' || (value >= 1000 && isSecretNumberName(name)) ? MASK : undefined
}
