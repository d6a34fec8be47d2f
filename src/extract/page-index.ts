/**
 * A page as numbers: one pass over the text finds every tag and the tree a browser would build of them, and keeps it in typed
 * arrays. No node objects, no attributes, no text: those are read from the page's text when a selector asks for them.
 *
 * The tree is the HTML standard's, with scripting disabled; page-index.test.ts compares it with parse5's.
 */
import { DATA, IN_HEAD, INITIAL, LAST_PLAIN, PLAINTEXT, RCDATA, SCRIPT } from './insertion-modes.ts'
import { isInForeign } from './rules-foreign.ts'
import { afterNewline, characters, dropsNewline, isTableText, rawText, tableText } from './rules-text.ts'
import { attributesEnd, commentEnd, isAlpha, isSpace, lowerCase, nameEnd, rawTextEnd, scriptEnd } from './scan.ts'
import { KNOWN, knownTagAt } from './tags.ts'
import { freeArray, recycleTokens } from './tokens.ts'
import { type PageIndex, RAW_TEXT, TEXT, TreeBuilder } from './tree-builder.ts'
import { onCdata, onComment, onDoctype, onEndOfPage, onEndTag, onStartTag, TAG_RULES } from './tree-rules.ts'

export type { PageIndex } from './tree-builder.ts'

/** Characters of a page read at a time: most pages whole, a page of 15 MB without a copy of 30 MB. */
const WINDOW = (1 << 17) - 1
/** A window that a long tag has made larger than this is not kept for the next page. */
const KEPT_WINDOW_MAX = 1 << 21

const NO_NAMES: ReadonlyMap<string, number> = new Map()

export function indexPage(html: string): PageIndex {
  return indexer.run(html)
}

/** Gives a page's arrays to the next page. Nobody may use the index afterwards. */
export function recycle(index: PageIndex): void {
  const { start, end, kind, tag, parent, close } = index
  recycleTokens({ start, end, kind, tag, parent, close })
}

/** The pass. One instance serves all pages: a pass is not interrupted. */
class Indexer {
  #html = ''
  /**
   * A window on the page's characters: those from `#base` up to `#readTo`, then a `>`. Reading them here takes half the time of
   * charCodeAt (35 against 69 µs for 48 KB). No tag crosses the window's end: it is read again in a window that begins with it.
   */
  #codes = new Uint16Array(WINDOW + 1)
  #bytes = Buffer.from(this.#codes.buffer)
  #base = 0
  #readTo = 0
  readonly #builder = new TreeBuilder(TAG_RULES)
  #names: Map<string, number> | undefined
  /** Where the text after the last token begins. */
  #textFrom = 0
  /** Where in that text a `</>` stands, in a table. */
  readonly #gaps: number[] = []

  run(html: string): PageIndex {
    const builder = this.#builder
    this.#html = html
    this.#names = undefined
    this.#textFrom = this.#gaps.length = 0
    this.#read(0)
    builder.begin(html)
    builder.mode = INITIAL
    try {
      const length = html.length
      for (let at = html.indexOf('<'); at !== -1 && at < length; ) at = this.#markup(at)
      this.#text(length)
      onEndOfPage(builder)
      return builder.finish(this.#names ?? NO_NAMES)
    } catch (error) {
      builder.abandon()
      throw error
    } finally {
      this.#html = ''
      this.#readTo = 0
      if (this.#codes.length > KEPT_WINDOW_MAX) this.#makeRoom(WINDOW + 1)
    }
  }

  /** Moves the window to `from`; one that is there already was too small, and is made larger. */
  #read(from: number): void {
    const html = this.#html
    if (from === this.#base && this.#readTo > from) this.#makeRoom(2 * this.#codes.length)
    const to = Math.min(from + this.#codes.length - 1, html.length)
    this.#bytes.write(to - from === html.length ? html : html.slice(from, to), 'utf16le')
    this.#codes[to - from] = 62
    this.#base = from
    this.#readTo = to
  }

  #makeRoom(length: number): void {
    freeArray(this.#codes)
    this.#codes = new Uint16Array(length)
    this.#bytes = Buffer.from(this.#codes.buffer)
  }

  /** Reads what begins with the `<` at `at`; returns where the next `<` is, or -1. */
  #markup(at: number): number {
    if (at + 2 >= this.#readTo && this.#readTo < this.#html.length) this.#read(at)
    const codes = this.#codes
    const base = this.#base
    const c = codes[at + 1 - base]!
    if (isAlpha(c)) return this.#startTag(at)
    if (c === 47) {
      if (isAlpha(codes[at + 2 - base]!)) return this.#endTag(at)
      if (at + 2 >= this.#html.length) return -1
    } else if (c !== 33 && c !== 63) {
      // A lone `<` is text; floods of them are passed without a call each.
      let next = at + 1
      while (codes[next - base] === 60) next++
      return next === at + 1 ? this.#html.indexOf('<', next) : next - 1
    }
    return this.#declaration(at, c)
  }

  /** The text up to `to`, where something has to be decided about it. */
  #text(to: number): void {
    const builder = this.#builder
    const from = this.#textFrom
    if (this.#gaps.length > 0) {
      this.#gappedText(to)
      return
    }
    if (to === from || (builder.mode <= LAST_PLAIN && !builder.mayReconstruct && builder.links === undefined)) return
    if (builder.mode >= IN_HEAD && !builder.mayReconstruct && builder.links === undefined && this.#isSpace(from, to))
      return
    characters(builder, from, to)
  }

  /** Where the text goes is decided when it has ended. */
  #gap(at: number): number {
    const from = this.#textFrom
    this.#gaps.push(at)
    const next = this.#next(at + 3)
    this.#textFrom = from
    return next
  }

  #gappedText(to: number): void {
    const pieces: [number, number][] = []
    let from = this.#textFrom
    for (const gap of this.#gaps) {
      pieces.push([from, gap])
      from = gap + 3
    }
    this.#gaps.length = 0
    tableText(this.#builder, [...pieces, [from, to]])
  }

  #isSpace(from: number, to: number): boolean {
    const html = this.#html
    let i = from
    while (i < to && isSpace(html.charCodeAt(i))) i++
    return i === to
  }

  /** A comment, CDATA section, doctype or something that looks like one. */
  #declaration(at: number, c: number): number {
    const html = this.#html
    const builder = this.#builder
    let end = 0
    if (c === 47 && html.charCodeAt(at + 2) === 62) {
      // `</>` leaves nothing in the tree: the text continues after it.
      if (isTableText(builder)) return this.#gap(at)
      this.#text(at)
      builder.drop(at, at + 3)
      return this.#next(at + 3)
    }
    this.#text(at)
    builder.at = at
    if (c === 33 && html.startsWith('--', at + 2)) {
      builder.end = end = commentEnd(html, at + 4) || html.length
      onComment(builder)
    } else if (c === 33 && html.startsWith('[CDATA[', at + 2) && isInForeign(builder)) {
      end = html.indexOf(']]>', at + 9) + 3
      builder.end = end = end === 2 ? html.length : end
      onCdata(builder)
    } else {
      builder.end = end = html.indexOf('>', at + 2) + 1 || html.length
      if (c === 33 && /^doctype$/i.test(html.slice(at + 2, at + 9))) onDoctype(builder)
      else onComment(builder)
    }
    return this.#next(end)
  }

  #endTag(at: number): number {
    const html = this.#html
    const codes = this.#codes
    const base = this.#base
    const readTo = this.#readTo
    const nameStop = nameEnd(codes, at + 2 - base) + base
    const end =
      codes[nameStop - base] === 62
        ? nameStop + 1
        : Math.abs(attributesEnd(codes, readTo - base, nameStop - base)) + base
    if (end > readTo) {
      if (readTo === html.length) return this.#cut(at)
      this.#read(at)
      return this.#endTag(at)
    }
    let id = knownTagAt(codes, at + 2 - base, nameStop - base)
    if (id === -1) id = this.#names?.get(nameOf(html, at + 2, nameStop)) ?? -1
    this.#text(at)
    const builder = this.#builder
    builder.at = at
    builder.end = end
    onEndTag(builder, id)
    return this.#next(end)
  }

  #startTag(at: number): number {
    const html = this.#html
    const codes = this.#codes
    const base = this.#base
    const readTo = this.#readTo
    const nameStop = nameEnd(codes, at + 1 - base) + base
    let end = attributesEnd(codes, readTo - base, nameStop - base)
    const isSelfClosing = end < 0
    end = (isSelfClosing ? -end : end) + base
    if (end > readTo) {
      if (readTo === html.length) return this.#cut(at)
      this.#read(at)
      return this.#startTag(at)
    }
    let id = knownTagAt(codes, at + 1 - base, nameStop - base)
    if (id === -1) id = this.#idOfName(nameOf(html, at + 1, nameStop))
    const builder = this.#builder
    if (at > this.#textFrom) this.#text(at)
    builder.at = at
    builder.end = end
    builder.isSelfClosing = isSelfClosing
    const state = onStartTag(builder, id)
    if (state !== DATA) return this.#rawElement(at, end, nameStop, state)
    if (dropsNewline(id) && builder.open.top === id) {
      let from = end
      for (; html.startsWith('</>', from); from += 3) builder.drop(from, from + 3)
      return this.#next(afterNewline(builder, from, html.length))
    }
    return this.#next(end)
  }

  /** A tag cut by the end of the page is left out. */
  #cut(at: number): number {
    this.#text(at)
    this.#builder.drop(at, this.#html.length)
    this.#textFrom = this.#html.length
    return -1
  }

  /** The text of a script, style, title and the like, up to its end tag, which is read as well. */
  #rawElement(at: number, end: number, nameStop: number, state: number): number {
    const html = this.#html
    const builder = this.#builder
    const found =
      state === PLAINTEXT ? -1 : state === SCRIPT ? scriptEnd(html, end) : rawTextEnd(html, end, at + 1, nameStop)
    const to = found === -1 ? html.length : found
    rawText(builder, end, to, state === RCDATA ? TEXT : RAW_TEXT)
    this.#textFrom = to
    if (found === -1) {
      if (state !== PLAINTEXT) builder.pop()
      return -1
    }
    builder.pop()
    return this.#rawEndTag(found)
  }

  #rawEndTag(at: number): number {
    const html = this.#html
    if (at < this.#base || at + 2 >= this.#readTo) this.#read(at)
    const nameStop = nameEnd(this.#codes, at + 2 - this.#base)
    const end = Math.abs(attributesEnd(this.#codes, this.#readTo - this.#base, nameStop)) + this.#base
    if (end > this.#readTo) {
      if (this.#readTo === html.length) return this.#cut(at)
      this.#read(at)
      return this.#rawEndTag(at)
    }
    this.#builder.drop(at, end)
    return this.#next(end)
  }

  #idOfName(name: string): number {
    this.#names ??= new Map()
    let id = this.#names.get(name)
    if (id === undefined) {
      id = KNOWN + this.#names.size
      this.#names.set(name, id)
    }
    return id
  }

  /** Every third tag follows another directly; the others are worth a call of indexOf. */
  #next(from: number): number {
    this.#textFrom = from
    const codes = this.#codes
    const base = this.#base
    const near = Math.min(from + 4, this.#readTo)
    let i = from
    while (i < near && codes[i - base] !== 60) i++
    return i < near ? i : this.#html.indexOf('<', i)
  }
}

function nameOf(html: string, from: number, to: number): string {
  return lowerCase(html.slice(from, to)).replaceAll('\0', '\uFFFD')
}

const indexer = new Indexer()
