/** Character references in text and attribute values. Called only where there is an `&`. */
import { createRequire } from 'node:module'
import { TextBuilder } from './text-builder.ts'

const COMMON: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

/** Decodes `text`. In an attribute, a name without `;` followed by `=` or a letter is no entity (`?a=1&copy=2`). */
export function decodeEntities(text: string, where: 'text' | 'attribute'): string {
  const out = new TextBuilder()
  let from = 0
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1)) {
    const semicolon = at + 9 < text.length ? text.slice(at, at + 9).indexOf(';') : text.indexOf(';', at) - at
    const value = semicolon > 1 && semicolon < 9 ? commonEntity(text, at + 1, at + semicolon) : undefined
    // Two thousand names and the rules for missing semicolons are the library's business; these few are nearly all there are.
    if (value === undefined) {
      decodeAll(text, from, where, out)
      return out.text()
    }
    out.add(text.slice(from, at))
    out.add(value)
    at += semicolon
    from = at + 1
  }
  if (from === 0) return text
  out.add(text.slice(from))
  return out.text()
}

function commonEntity(text: string, from: number, to: number): string | undefined {
  if (text.charCodeAt(from) !== 35) {
    const name = text.slice(from, to)
    return Object.hasOwn(COMMON, name) ? COMMON[name] : undefined
  }
  const isHex = (text.charCodeAt(from + 1) | 32) === 120
  let code = 0
  for (let i = from + (isHex ? 2 : 1); i < to; i++) {
    const c = text.charCodeAt(i)
    if (c >= 48 && c <= 57) code = code * (isHex ? 16 : 10) + c - 48
    else if (isHex && (c | 32) >= 97 && (c | 32) <= 102) code = code * 16 + (c | 32) - 87
    else return undefined
  }
  // Below and above live the exceptions: control characters, windows-1252 numbers, surrogates.
  return (code >= 32 && code <= 126) || (code >= 160 && code < 0xd800) ? String.fromCharCode(code) : undefined
}

/** Loaded with the first reference that needs it. */
let library: typeof import('entities') | undefined

/** The library joins a text piece by piece, which takes 32 bytes for each: long ones are given to it in parts. */
const PART_CHARS = 65_536

function decodeAll(text: string, start: number, where: 'text' | 'attribute', out: TextBuilder): void {
  library ??= createRequire(import.meta.url)('entities') as typeof import('entities')
  const decode = where === 'attribute' ? library.decodeHTMLAttribute : library.decodeHTML
  for (let from = start; from < text.length; ) {
    const next = from + PART_CHARS < text.length ? text.indexOf('&', from + PART_CHARS) : -1
    const to = next === -1 ? text.length : next
    out.add(decode(text.slice(from, to)))
    from = to
  }
}

/** As the standard reads characters: every line break is a newline, and NUL, where it was kept, the replacement character. */
export function plainText(text: string): string {
  const lines = text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text
  return lines.includes('\0') ? lines.replaceAll('\0', '\uFFFD') : lines
}
