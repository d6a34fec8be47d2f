/** The text of an element: its text nodes joined, without scripts and styles, white space folded. */
import { attributeOf } from './attributes.ts'
import { decodeEntities, plainText } from './entities.ts'
import type { PageIndex } from './page-index.ts'
import { IS_MATH_TEXT, IS_SILENT, IS_SVG_INTEGRATION, isHtmlEncoding, KNOWN, TAG } from './tags.ts'
import { detached, TextBuilder } from './text-builder.ts'
import { CDATA, ELEMENT, ELEMENT_RAW, ELEMENT_VOID, RAW_TEXT, SVG, TEXT } from './tree-builder.ts'

/** White space that is not already one plain space. Replacing every `\s+` takes four times as long. */
const SPACES = / \s+|[^\S ]\s*/g

/** As JavaScript's `\s`: also no-break and thin spaces. */
function isSpace(c: number): boolean {
  if (c <= 160) return c === 32 || (c >= 9 && c <= 13) || c === 160
  return (
    c >= 0x1680 &&
    (c === 0x1680 ||
      (c >= 0x2000 && c <= 0x200a) ||
      c === 0x2028 ||
      c === 0x2029 ||
      c === 0x202f ||
      c === 0x205f ||
      c === 0x3000 ||
      c === 0xfeff)
  )
}

/** The next token whose following text belongs to the element, leaving out scripts, styles and templates. */
function step(index: PageIndex, token: number, stop: number): number {
  const { tag, kind } = index
  let t = token + 1
  while (t < stop && tag[t] !== -1 && tag[t]! < KNOWN && IS_SILENT[tag[t]!] === 1 && !isVoid(kind[t]!))
    t = index.close[t]!
  return t
}

export const isVoid = (kind: number): boolean => (kind & 15) === ELEMENT_VOID

// Where the text of a token is: what follows it, or the token itself where nodes were moved.

export function textStart({ start, end, kind }: PageIndex, token: number): number {
  if (token === -1) return 0
  return kind[token] === TEXT || kind[token] === RAW_TEXT ? start[token]! : end[token]!
}

export function textEnd({ start, end, hasMoved }: PageIndex, token: number): number {
  if (hasMoved) return token === -1 ? 0 : end[token]!
  return start[token + 1]!
}

/** Whether a `&` is just a `&` in the text of that token. */
function isRawText({ kind }: PageIndex, token: number): boolean {
  return token !== -1 && (kind[token] === ELEMENT_RAW || kind[token] === RAW_TEXT)
}

/** `token` is an element, or -1 for the whole page. */
export function textOf(index: PageIndex, token: number): string {
  return foldedTextOf(index, token) ?? detached(fold(rawTextOf(index, token)))
}

/** undefined where entities or CDATA are involved: what they stand for may be a space, so only the slow way is right. */
function foldedTextOf(index: PageIndex, token: number): string | undefined {
  if (token !== -1 && isVoid(index.kind[token]!)) return ''
  const { html, kind } = index
  const stop = token === -1 ? index.count : index.close[token]!
  const out = new TextBuilder()
  let isSpaceDue = false
  for (let t = token; t < stop; t = step(index, t, stop)) {
    if (t !== -1 && kind[t] === CDATA) return undefined
    let from = textStart(index, t)
    const to = textEnd(index, t)
    if (from >= to) continue
    const isRaw = isRawText(index, t)
    if (isSpace(html.charCodeAt(from))) {
      isSpaceDue = true
      do from++
      while (from < to && isSpace(html.charCodeAt(from)))
      if (from === to) continue
    }
    let last = to
    while (isSpace(html.charCodeAt(last - 1))) last--
    let needsFold = false
    for (let i = from; i < last; i++) {
      const c = html.charCodeAt(i)
      if ((c === 38 && !isRaw) || c === 0) return undefined
      if (c === 32 ? html.charCodeAt(i + 1) === 32 : isSpace(c)) needsFold = true
    }
    if (isSpaceDue && !out.isEmpty) out.add(' ')
    const piece = html.slice(from, last)
    out.add(needsFold ? piece.replace(SPACES, ' ') : piece)
    isSpaceDue = last < to
  }
  return out.detachedText()
}

const fold = (text: string): string => text.replace(SPACES, ' ').trim()

/** The text as it stands: entities decoded, white space kept. */
export function rawTextOf(index: PageIndex, token: number): string {
  if (token !== -1 && isVoid(index.kind[token]!)) return ''
  const stop = token === -1 ? index.count : index.close[token]!
  const out = new TextBuilder()
  for (let t = token; t < stop; t = step(index, t, stop)) addTextAt(index, t, out)
  return out.text()
}

/** Adds the text of one token: a CDATA section's own, and what follows. */
export function addTextAt(index: PageIndex, token: number, out: Pick<TextBuilder, 'add'>): void {
  const { html } = index
  if (token !== -1 && index.kind[token] === CDATA) out.add(cdataText(index, token))
  const from = textStart(index, token)
  const to = textEnd(index, token)
  if (from >= to) return
  let piece = html.slice(from, to)
  // A NUL that is dropped still ends a reference, and stands between a carriage return and a newline.
  const withoutNul = !isRawText(index, token) && piece.includes('\0') && dropsNul(index, token)
  piece = withoutNul ? piece.replace(/\r\n?/g, '\n') : plainText(piece)
  if (!isRawText(index, token) && piece.includes('&')) piece = decodeEntities(piece, 'text')
  out.add(withoutNul ? piece.replaceAll('\0', '') : piece)
}

/** In the text of most HTML elements a NUL counts for nothing; in raw text, SVG and MathML it is a replacement character. */
function dropsNul(index: PageIndex, token: number): boolean {
  const { kind, tag, parent, close } = index
  let at = token
  while (at > 0 && kind[at]! < ELEMENT) at--
  if (at !== token || isVoid(kind[at]!)) {
    if (isVoid(kind[at]!)) at = parent[at]!
    while (close[at]! <= token) at = parent[at]!
  }
  return kind[at] === ELEMENT ? tag[at] !== TAG.title && tag[at] !== TAG.textarea : containsHtml(index, at)
}

function containsHtml(index: PageIndex, token: number): boolean {
  const tag = index.tag[token]!
  if (tag >= KNOWN) return false
  if (index.kind[token]! >> 4 === SVG) return IS_SVG_INTEGRATION[tag] === 1
  if (tag !== TAG['annotation-xml']) return IS_MATH_TEXT[tag] === 1
  return isHtmlEncoding(attributeOf(index, token, 'encoding'))
}

function cdataText({ html, start, end }: PageIndex, token: number): string {
  const text = html.slice(start[token]! + 9, end[token]!)
  return plainText(text.endsWith(']]>') ? text.slice(0, -3) : text)
}
