/** JSON as it appears in pages: written by templates, escaped once too often, truncated and commented. */
import { decodeEntities } from './entities.ts'

/** The first reading that parses wins, from the literal text to the most repaired one; undefined if none does. */
export function parseLooseJson(block: string): unknown {
  const text = withoutGuards(block)
  for (const reading of [() => text, () => mended(text), () => unescaped(text), () => mended(unescaped(text))]) {
    try {
      return JSON.parse(reading())
    } catch {
      // Try the next reading.
    }
  }
  return undefined
}

/** Old pages hide a block from older browsers in a comment or CDATA section, and that in a JavaScript comment. */
function withoutGuards(block: string): string {
  const text = block.trim()
  const start = /^(?:\s|\/\/|\/\*|\*\/|<!--|<!\[CDATA\[)*/.exec(text)![0].length
  const tail = text.slice(Math.max(start, text.length - GUARD_CHARS_MAX))
  const end = /(?:\s|\/\/|\/\*|\*\/|-->|\]\]>|;)*$/.exec(tail)![0].length
  return text.slice(start, text.length - end)
}
const GUARD_CHARS_MAX = 64

/** Only if the whole block was escaped: in valid JSON, an `&quot;` belongs to the text. */
function unescaped(text: string): string {
  return decodeEntities(text, 'text')
}

/** Escapes control characters inside strings, unescapes escapes JSON does not know, and drops commas before a bracket. */
function mended(text: string): string {
  const out: string[] = []
  let from = 0
  let isInString = false
  const replace = (at: number, length: number, by: string) => {
    out.push(text.slice(from, at), by)
    from = at + length
  }
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) isInString = !isInString
    else if (isInString && code < 0x20) replace(at, 1, `\\u${code.toString(16).padStart(4, '0')}`)
    else if (isInString && code === BACKSLASH) {
      if (isEscape(text, at + 1)) at++
      else replace(at, 1, '')
    } else if (!isInString && code === COMMA && CLOSING.test(nextSolid(text, at + 1))) replace(at, 1, '')
  }
  out.push(text.slice(from))
  return out.join('')
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const CLOSING = /^[\]}]/

function isEscape(text: string, at: number): boolean {
  const letter = text[at]
  if (letter === 'u') return /^[0-9a-f]{4}$/i.test(text.slice(at + 1, at + 5))
  return letter !== undefined && '"\\/bfnrt'.includes(letter)
}

/** The text from the next character that is not white space. Bounded: `, , , ,` with huge gaps is not JSON. */
function nextSolid(text: string, at: number): string {
  return text.slice(at, at + SPACE_CHARS_MAX).trimStart()
}
const SPACE_CHARS_MAX = 1000
