/** The text of an element: its text nodes joined, without scripts and styles, white space collapsed. */
import { decodeEntities } from './entities.ts'
import { CDATA, ELEMENT, ELEMENT_RAW, ELEMENT_VOID, type PageIndex } from './page-index.ts'
import { IS_SILENT, KNOWN } from './tags.ts'
import { detached, TextBuilder } from './text-builder.ts'

/** White space other than a single plain space. Replacing every `\s+` takes four times as long. */
const SPACES = / \s+|[^\S ]\s*/g

/** As JavaScript's `\s`: includes no-break and thin spaces. */
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

/** The next token whose following text belongs to the element, skipping scripts and styles. */
function step(index: PageIndex, token: number, stop: number): number {
  const { tag, kind } = index
  let t = token + 1
  while (t < stop && tag[t] !== -1 && tag[t]! < KNOWN && IS_SILENT[tag[t]!] === 1 && kind[t] !== ELEMENT_VOID)
    t = index.close[t]!
  return t
}

/** `token` is an element, or -1 for the whole page. */
export function textOf(index: PageIndex, token: number): string {
  return foldedTextOf(index, token) ?? detached(fold(rawTextOf(index, token)))
}

/** undefined if entities or CDATA are involved: they may contain white space, so only the slow path is correct. */
function foldedTextOf(index: PageIndex, token: number): string | undefined {
  if (token !== -1 && index.kind[token] === ELEMENT_VOID) return ''
  const { html, start, end, kind } = index
  const stop = token === -1 ? index.count : index.close[token]!
  const out = new TextBuilder()
  let isSpaceDue = false
  for (let t = token; t < stop; t = step(index, t, stop)) {
    if (t !== -1 && kind[t] === CDATA) return undefined
    let from = t === -1 ? 0 : end[t]!
    const to = start[t + 1]!
    if (from === to) continue
    const isRaw = t !== -1 && kind[t] === ELEMENT_RAW
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
      if (c === 38 && !isRaw) return undefined
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

/** The raw text: entities decoded, white space kept. */
export function rawTextOf(index: PageIndex, token: number): string {
  if (token !== -1 && index.kind[token] === ELEMENT_VOID) return ''
  const { html, start, end, kind } = index
  const stop = token === -1 ? index.count : index.close[token]!
  const out = new TextBuilder()
  for (let t = token; t < stop; t = step(index, t, stop)) {
    const what = t === -1 ? ELEMENT : kind[t]!
    if (what === CDATA) out.add(html.slice(start[t]! + 9, end[t]! - 3))
    const piece = html.slice(t === -1 ? 0 : end[t]!, start[t + 1]!)
    out.add(what !== ELEMENT_RAW && piece.includes('&') ? decodeEntities(piece, 'text') : piece)
  }
  return out.text()
}

/** The source between an element's tags. */
export function innerHtmlOf(index: PageIndex, token: number): string {
  return index.kind[token] === ELEMENT_VOID ? '' : index.html.slice(index.end[token], index.start[index.close[token]!])
}
