/** Entities in text and attribute values, as htmlparser2 reads them. Called only if there is an `&`. */
import { createRequire } from 'node:module'
import type { Tokenizer } from 'htmlparser2'
import { TextBuilder } from './text-builder.ts'

const COMMON: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

/** Decodes `text`. In an attribute, a name without `;` followed by `=` or a letter is not an entity (`?a=1&copy=2`). */
export function decodeEntities(text: string, where: 'text' | 'attribute'): string {
  const out = new TextBuilder()
  let from = 0
  for (let at = text.indexOf('&'); at !== -1; at = text.indexOf('&', at + 1)) {
    const semicolon = at + 9 < text.length ? text.slice(at, at + 9).indexOf(';') : text.indexOf(';', at) - at
    const value = semicolon > 1 && semicolon < 9 ? commonEntity(text, at + 1, at + semicolon) : undefined
    // The two thousand names and the rules for missing semicolons are left to the library; nearly all pages need only these few.
    if (value === undefined) {
      decodeAll(text.slice(from), where, out)
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
  // The exceptions are below and above: control characters, windows-1252 numbers, surrogates.
  return (code >= 32 && code <= 126) || (code >= 160 && code < 0xd800) ? String.fromCharCode(code) : undefined
}

let decoded: TextBuilder
let source = ''
const nothing = (): void => {}
const keepSlice = (from: number, to: number): void => {
  decoded.add(source.slice(from, to))
}
const keepCode = (code: number): void => {
  decoded.add(String.fromCodePoint(code))
}
const callbacks = {
  ontext: keepSlice,
  ontextentity: keepCode,
  onattribdata: keepSlice,
  onattribentity: keepCode,
  onattribend: nothing,
  onattribname: nothing,
  oncdata: nothing,
  onclosetag: nothing,
  oncomment: nothing,
  ondeclaration: nothing,
  onend: nothing,
  onopentagend: nothing,
  onopentagname: nothing,
  onprocessinginstruction: nothing,
  onselfclosingtag: nothing,
  isInForeignContext: () => false,
}

/** Loaded with the first entity that needs it: 27 files, 15 ms. */
let tokenizer: Tokenizer | undefined

function openTokenizer(): Tokenizer {
  const htmlparser2 = createRequire(import.meta.url)('htmlparser2') as typeof import('htmlparser2')
  return new htmlparser2.Tokenizer({}, callbacks)
}

function decodeAll(text: string, where: 'text' | 'attribute', out: TextBuilder): void {
  if (where === 'attribute') {
    const quote = !text.includes('"') ? '"' : !text.includes("'") ? "'" : ''
    tokenize(`<a b=${quote}${text}${quote}>`, out)
    return
  }
  // A `<` in text (of a title, say) must not start a tag here, so the pieces between them are decoded one by one.
  for (let from = 0; ; ) {
    const at = text.indexOf('<', from)
    tokenize(at === -1 ? text.slice(from) : text.slice(from, at), out)
    if (at === -1) return
    out.add('<')
    from = at + 1
  }
}

function tokenize(text: string, out: TextBuilder): void {
  source = text
  decoded = out
  tokenizer ??= openTokenizer()
  tokenizer.reset()
  tokenizer.write(text)
  tokenizer.end()
  source = ''
}
