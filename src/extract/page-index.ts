/**
 * A page as numbers: one pass over the text finds every tag and how they nest, and stores them in typed arrays. No node objects,
 * no attributes, no text: those are read from the page's text when a selector needs them.
 *
 * The tree is htmlparser2's (version 12, HTML mode); page-index.test.ts compares the two. We differ if a page is truncated inside
 * a tag (we drop that tag completely; htmlparser2 may leave its last character as text) and write SVG names in lower case.
 */
import { ScrapeError } from '../core/errors.ts'
import { attributesEnd, commentEnd, isAlpha, nameEnd, rawTextEnd } from './scan.ts'
import {
  IMPLIES_ANY_END,
  IMPLIES_END,
  IS_INTEGRATION,
  IS_RAW,
  IS_RAW_WITH_ENTITIES,
  IS_VOID,
  KNOWN,
  knownTagAt,
  TAG,
} from './tags.ts'
import { freeArray, growTokens, NO_TOKENS, newTokens, recycleTokens, type Tokens } from './tokens.ts'

/** Deeper pages are traps: a browser flattens at 512. Such a page is refused, not flattened: its tree is meaningless. */
const DEPTH_MAX = 10_000
/** Tags and comments of one page, 21 bytes each: 42 MB for a page of only `<b>`. Real pages of 16 MB stay below a million. */
const TOKENS_MAX = 2_000_000
/** How many characters of a page are read at a time: most pages completely, a page of 15 MB without a copy of 30 MB. */
const WINDOW = (1 << 17) - 1
/** A window that had to grow beyond this for a long tag is not kept for the next page. */
const KEPT_WINDOW_MAX = 1 << 21

/** The kind of a token. Everything from `ELEMENT` on is an element's start tag. */
export const OTHER = 0 // end tag, comment, doctype: not part of any text
export const CDATA = 1 // literal text, inside svg and math
export const ELEMENT = 2
export const ELEMENT_VOID = 3 // no content
export const ELEMENT_RAW = 4 // its text has no entities
const ELEMENT_INTEGRATION = 5 // a foreignObject inside svg: HTML rules again

/** Tokens in page order; `start[count]` is the page's end. */
export interface PageIndex extends Tokens {
  readonly html: string
  readonly count: number
  /** This page's unknown tag names, with ids from `KNOWN` on. */
  readonly names: ReadonlyMap<string, number>
  /** Filled in by the first selector that needs siblings. */
  siblings: Siblings | undefined
}

export interface Siblings {
  /** The element before it with the same parent, or -1. */
  readonly previous: Int32Array
  /** 1 for a first child. */
  readonly position: Int32Array
  /** By parent token + 1. */
  readonly lastChild: Int32Array
}

const NO_NAMES: ReadonlyMap<string, number> = new Map()

export function indexPage(html: string): PageIndex {
  return indexer.run(html)
}

/** Hands a page's arrays to the next page. The index must not be used afterwards. */
export function recycle(index: PageIndex): void {
  const { start, end, kind, tag, parent, close } = index
  recycleTokens({ start, end, kind, tag, parent, close })
}

const HTML = 0
const SVG = 1
const MATH = 2

/** The pass over a page. One instance serves all pages: a pass is not interrupted. */
class Indexer {
  #html = ''
  /**
   * A window on the page's characters: those from `#base` up to `#readTo`, then a `>`. Reading them here takes half the time of
   * charCodeAt (35 against 69 µs for 48 KB). A tag that crosses the window's end is read again in a window that begins with it.
   */
  #codes = new Uint16Array(WINDOW + 1)
  #bytes = Buffer.from(this.#codes.buffer)
  #base = 0
  #readTo = 0
  #tokens: Tokens = NO_TOKENS
  #capacity = 0
  #count = 0
  /** Tokens of the open elements, and how many of each name there are: an end tag without a start tag costs no search. */
  readonly #open = new Int32Array(DEPTH_MAX)
  #depth = 0
  readonly #openByTag = new Int32Array(KNOWN)
  #names: Map<string, number> | undefined
  #openByName: number[] = []
  /** Nested svg, math, and elements inside them where HTML rules apply again; the innermost is last. */
  readonly #contexts: number[] = []

  run(html: string): PageIndex {
    this.#begin(html)
    try {
      const length = html.length
      for (let at = html.indexOf('<'); at !== -1 && at < length; ) at = this.#markup(at)
      const tokens = this.#tokens
      while (this.#depth > 0) tokens.close[this.#open[--this.#depth]!] = this.#count
      tokens.start[this.#count] = length
      return { html, count: this.#count, names: this.#names ?? NO_NAMES, siblings: undefined, ...tokens }
    } catch (error) {
      recycleTokens(this.#tokens)
      throw error
    } finally {
      this.#html = ''
      this.#readTo = 0
      this.#tokens = NO_TOKENS
      if (this.#codes.length > KEPT_WINDOW_MAX) this.#makeRoom(WINDOW + 1)
    }
  }

  #begin(html: string): void {
    this.#html = html
    this.#read(0)
    this.#tokens = newTokens()
    this.#capacity = Math.min(this.#tokens.start.length - 1, TOKENS_MAX)
    this.#count = this.#depth = 0
    this.#openByTag.fill(0)
    this.#names = undefined
    this.#openByName = []
    this.#contexts.length = 0
  }

  /** Moves the window to `from`; if it is already there, it was too small, and is enlarged. */
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

  /** Reads the markup that begins with the `<` at `at`; returns the position of the next `<`, or -1. */
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
      // A lone `<` is text; floods of them are skipped without a call each.
      let next = at + 1
      while (codes[next - base] === 60) next++
      return next === at + 1 ? this.#html.indexOf('<', next) : next - 1
    }
    return this.#declaration(at, c)
  }

  /** A comment, CDATA section, doctype or something that looks like one. */
  #declaration(at: number, c: number): number {
    const html = this.#html
    let kind = OTHER
    let end = 0
    if (c === 33 && html.startsWith('--', at + 2)) end = commentEnd(html, at + 4)
    else if (c === 33 && html.startsWith('[CDATA[', at + 2)) {
      end = html.indexOf(']]>', at + 9) + 3
      if (end !== 2 && this.#context() !== HTML) kind = CDATA
    } else end = html.indexOf('>', at + 2) + 1
    return this.#add(at, end <= 2 ? html.length : end, kind)
  }

  #endTag(at: number): number {
    const html = this.#html
    const codes = this.#codes
    const base = this.#base
    const nameStop = nameEnd(codes, at + 2 - base) + base
    if (nameStop === this.#readTo && nameStop < html.length) {
      this.#read(at)
      return this.#endTag(at)
    }
    const end = Math.min(
      codes[nameStop - base] === 62 ? nameStop + 1 : html.indexOf('>', nameStop) + 1 || html.length,
      html.length,
    )
    let id = knownTagAt(codes, at + 2 - base, nameStop - base)
    if (id === TAG.image && this.#context() === HTML) id = TAG.img
    if (id === -1) id = this.#names?.get(html.slice(at + 2, nameStop).toLowerCase()) ?? -1
    if (id === -1 || nameStop === html.length) return this.#add(at, end, OTHER)
    if (this.#isOpen(id)) {
      while (this.#tagOf(this.#depth - 1) !== id) this.#closeInnermost()
      this.#closeInnermost()
    } else if (id === TAG.br || id === TAG.p) {
      // `</br>` and an unopened `</p>` stand for an empty element.
      return this.#addElement(at, end, ELEMENT_VOID, id)
    }
    return this.#add(at, end, OTHER)
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
      if (readTo === html.length) return this.#add(at, readTo, OTHER) // truncated by the end of the page
      this.#read(at)
      return this.#startTag(at)
    }
    let id = knownTagAt(codes, at + 1 - base, nameStop - base)
    if (id === -1) id = this.#idOfName(html.slice(at + 1, nameStop).toLowerCase())
    const context = this.#context()
    if (id === TAG.image && context === HTML) id = TAG.img
    else if (id === TAG.form && this.#isOpen(id)) return this.#add(at, end, OTHER) // a form inside a form is not an element

    if (id < KNOWN) {
      if (IMPLIES_ANY_END[id] === 1) this.#closeImplied(id)
      if (IS_VOID[id] === 1) return this.#addElement(at, end, ELEMENT_VOID, id)
      const isRaw = IS_RAW[id] === 1 && context === HTML
      if (isRaw) {
        this.#push(at, end, IS_RAW_WITH_ENTITIES[id] === 1 ? ELEMENT : ELEMENT_RAW, id)
        return id === TAG.plaintext ? -1 : rawTextEnd(html, end, at + 1, nameStop)
      }
    }
    const isIntegration = id === TAG.foreignobject && context === SVG
    if (isSelfClosing && this.#contextInside(id, isIntegration) !== HTML) {
      return this.#addElement(at, end, ELEMENT_VOID, id) // only svg and math have self-closing elements
    }
    return this.#push(at, end, isIntegration ? ELEMENT_INTEGRATION : ELEMENT, id)
  }

  #idOfName(name: string): number {
    this.#names ??= new Map()
    let id = this.#names.get(name)
    if (id === undefined) {
      id = KNOWN + this.#names.size
      this.#names.set(name, id)
      this.#openByName.push(0)
    }
    return id
  }

  #closeImplied(id: number): void {
    while (this.#depth > 0) {
      const open = this.#tagOf(this.#depth - 1)
      if (open >= KNOWN || IMPLIES_END[id * KNOWN + open] === 0) break
      this.#closeInnermost()
    }
  }

  /** The current token closes the innermost open element. */
  #closeInnermost(): void {
    const tokens = this.#tokens
    const token = this.#open[--this.#depth]!
    const tag = tokens.tag[token]!
    tokens.close[token] = this.#count
    if (tag < KNOWN) {
      this.#openByTag[tag] = this.#openByTag[tag]! - 1
      if (opensContext(tag) || tokens.kind[token] === ELEMENT_INTEGRATION) this.#contexts.pop()
    } else this.#openByName[tag - KNOWN]!--
  }

  #push(at: number, end: number, kind: number, id: number): number {
    if (this.#depth === DEPTH_MAX) throw new ScrapeError('E_HTML_LIMIT', `tags nested deeper than ${DEPTH_MAX}`)
    const token = this.#count
    const next = this.#addElement(at, end, kind, id)
    this.#open[this.#depth++] = token
    if (id < KNOWN) {
      this.#openByTag[id] = this.#openByTag[id]! + 1
      if (opensContext(id)) this.#contexts.push(this.#contextInside(id, false))
      else if (kind === ELEMENT_INTEGRATION) this.#contexts.push(HTML)
    } else this.#openByName[id - KNOWN]!++
    return next
  }

  #addElement(at: number, end: number, kind: number, id: number): number {
    const token = this.#count
    const next = this.#add(at, end, kind)
    const tokens = this.#tokens
    tokens.tag[token] = id
    tokens.parent[token] = this.#depth === 0 ? -1 : this.#open[this.#depth - 1]!
    tokens.close[token] = token + 1
    return next
  }

  #add(at: number, end: number, kind: number): number {
    if (this.#count === this.#capacity) {
      if (this.#count === TOKENS_MAX) throw new ScrapeError('E_HTML_LIMIT', `more than ${TOKENS_MAX} tags in one page`)
      this.#tokens = growTokens(this.#tokens)
      this.#capacity = Math.min(this.#tokens.start.length - 1, TOKENS_MAX)
    }
    const tokens = this.#tokens
    tokens.start[this.#count] = at
    tokens.end[this.#count] = end
    tokens.kind[this.#count] = kind
    tokens.tag[this.#count++] = -1
    return this.#nextMarkup(end)
  }

  /** Every third tag directly follows another; for the others, indexOf is worth the call. */
  #nextMarkup(from: number): number {
    const codes = this.#codes
    const base = this.#base
    const near = Math.min(from + 4, this.#readTo)
    let i = from
    while (i < near && codes[i - base] !== 60) i++
    return i < near ? i : this.#html.indexOf('<', i)
  }

  #tagOf(depth: number): number {
    return this.#tokens.tag[this.#open[depth]!]!
  }

  #isOpen(id: number): boolean {
    return (id < KNOWN ? this.#openByTag[id]! : this.#openByName[id - KNOWN]!) > 0
  }

  #context(): number {
    return this.#contexts.length === 0 ? HTML : this.#contexts[this.#contexts.length - 1]!
  }

  #contextInside(id: number, isIntegration: boolean): number {
    if (id === TAG.svg) return SVG
    if (id === TAG.math) return MATH
    return isIntegration || (id < KNOWN && IS_INTEGRATION[id] === 1) ? HTML : this.#context()
  }
}

const opensContext = (tag: number): boolean => tag === TAG.svg || tag === TAG.math || IS_INTEGRATION[tag] === 1

const indexer = new Indexer()
