/** Reads schema.org data as it is found in practice: any value may be text, an object or a list, and names may be capitalised. */

export type MarkupNode = Readonly<Record<string, unknown>>

export function isNode(value: unknown): value is MarkupNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Accepts `Title` for `title`. */
export function field(node: MarkupNode, name: string): unknown {
  if (Object.hasOwn(node, name)) return node[name]
  const capitalised = name[0]!.toUpperCase() + name.slice(1)
  return Object.hasOwn(node, capitalised) ? node[capitalised] : undefined
}

/** A property with more values does not describe a job. */
const LIST_MAX = 200

export function listOf(value: unknown): unknown[] {
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? value.slice(0, LIST_MAX) : [value]
}

/** The text of a value: its own, that of its first element, or an object's `@value`, `name` or `value`. */
export function textOf(value: unknown): string | undefined {
  let inner = value
  for (let depth = 0; depth < 4; depth++) {
    if (typeof inner === 'string') return mendedText(inner).trim() || undefined
    if (typeof inner === 'number' && Number.isFinite(inner)) return String(inner)
    if (Array.isArray(inner)) inner = inner[0]
    else if (isNode(inner)) inner = field(inner, '@value') ?? field(inner, 'name') ?? field(inner, 'value')
    else return undefined
  }
  return undefined
}

export const textIn = (node: MarkupNode, name: string) => textOf(field(node, name))

export function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined
}

/** An absolute URL, from text or an object that has one (`ImageObject`). */
export function addressOf(value: unknown, base: string): string | undefined {
  const first = listOf(value)[0]
  const text = isNode(first) ? (field(first, 'url') ?? field(first, 'contentUrl') ?? field(first, '@id')) : first
  if (typeof text !== 'string' || text.trim() === '') return undefined
  const url = URL.parse(text.trim(), base)
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.href : undefined
}

/** How windows-1252 differs from Latin-1: what the bytes 0x80–0x9f of misread UTF-8 look like. */
const WINDOWS_1252 = '€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ'
const REST = `[\\u0080-\\u00bf${WINDOWS_1252}]`
/** Western letters and signs, punctuation, emoji. Other sequences (`Ä–` for `Ė`) could be intended. */
const MISREAD = new RegExp(`[ÂÃ]${REST}|â${REST}{2}|ð${REST}{3}`, 'g')
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Repairs UTF-8 that was read as Latin-1 (`Â£`, `â‚¬`, `Ã©`); anything else is left alone. */
function mendedText(text: string): string {
  return text.replace(MISREAD, (run) => {
    try {
      return utf8.decode(Uint8Array.from(run, byteOf))
    } catch {
      return run
    }
  })
}

function byteOf(character: string): number {
  const at = WINDOWS_1252.indexOf(character)
  return at === -1 ? character.charCodeAt(0) : 0x80 + at
}
