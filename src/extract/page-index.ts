/**
 * A page as numbers: one pass over the text finds every tag and how they nest, and keeps them in typed arrays. No node objects,
 * no attributes, no text: those are read from the page's text when a selector asks for them.
 *
 * The tree is htmlparser2's (version 12, HTML mode); index.test.ts compares the two on generated and on real pages.
 */
import { ScrapeError } from '../core/errors.ts'
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

/** Deeper pages are traps: a browser flattens at 512. Such a page is refused, not flattened: its tree means nothing. */
export const DEPTH_MAX = 5000
/** Tags and comments of one page, 20 bytes each. The largest real page we know (the HTML standard on one page) has a million. */
export const TOKENS_MAX = 4_000_000

/** What a token is. Everything from `ELEMENT` on is an element's start tag. */
export const OTHER = 0 // end tag, comment, doctype: no part of any text
export const CDATA = 1 // text as it stands, inside svg and math
export const ELEMENT = 2
export const ELEMENT_VOID = 3 // no content
export const ELEMENT_RAW = 4 // its text has no entities
export const ELEMENT_INTEGRATION = 5 // a foreignObject inside svg: HTML rules again

export interface PageIndex {
  readonly html: string
  /** Tokens in page order; `start[count]` is the page's end. */
  readonly count: number
  readonly start: Int32Array
  /** One past the token's `>`. */
  readonly end: Int32Array
  readonly kind: Uint8Array
  /** Tag name id, -1 for other tokens; see `names` for ids from `KNOWN` on. */
  readonly tag: Int32Array
  /** Token of the parent element, or -1. Only for elements. */
  readonly parent: Int32Array
  /**
   * The first token after the element's content: its end tag, or the tag (or page end) that implied it. Descendants are exactly
   * the elements between the two. Only for elements.
   */
  readonly close: Int32Array
  /** This page's unknown tag names. */
  readonly names: Map<string, number> | undefined
}

interface Arrays {
  start: Int32Array
  end: Int32Array
  kind: Uint8Array
  tag: Int32Array
  parent: Int32Array
  close: Int32Array
}

/** Arrays given back by finished pages: with them a crawl allocates nothing per page. Larger ones are left to the collector. */
const pool: Arrays[] = []
const POOL_MAX = 64
const POOL_TOKENS_MAX = 16_384

function newArrays(size: number): Arrays {
  return {
    start: new Int32Array(size),
    end: new Int32Array(size),
    kind: new Uint8Array(size),
    tag: new Int32Array(size),
    parent: new Int32Array(size),
    close: new Int32Array(size),
  }
}

function grow(old: Arrays): Arrays {
  const arrays = newArrays(old.start.length * 2)
  arrays.start.set(old.start)
  arrays.end.set(old.end)
  arrays.kind.set(old.kind)
  arrays.tag.set(old.tag)
  arrays.parent.set(old.parent)
  arrays.close.set(old.close)
  return arrays
}

/** Gives a page's arrays to the next page. Nobody may use the index afterwards. */
export function recycle(index: PageIndex): void {
  if (pool.length < POOL_MAX && index.start.length <= POOL_TOKENS_MAX) {
    const { start, end, kind, tag, parent, close } = index
    pool.push({ start, end, kind, tag, parent, close })
  }
}

// Working memory of one pass. Passes do not overlap, so one set serves all.
const stack = new Int32Array(DEPTH_MAX + 1)
const openCount = new Int32Array(KNOWN)
/** Nested svg (1), math (2) and integration points (0), innermost last. */
const contexts: number[] = []

const isSpace = (c: number): boolean => c === 32 || c === 10 || c === 9 || c === 13 || c === 12
const isAlpha = (c: number): boolean => (c >= 97 && c <= 122) || (c >= 65 && c <= 90)

export function indexPage(html: string): PageIndex {
  const n = html.length
  let arrays = pool.pop() ?? newArrays(2048)
  let { start, end, kind, tag, parent, close } = arrays
  let capacity = start.length - 1 // one more for the sentinel
  let count = 0
  let depth = 0
  let names: Map<string, number> | undefined
  let customOpen: number[] | undefined // how many elements of each unknown name are open
  openCount.fill(0)
  contexts.length = 0

  let at = html.indexOf('<')
  while (at !== -1 && at + 1 < n) {
    let c = html.charCodeAt(at + 1)
    const isEndTag = c === 47
    if (isEndTag) {
      if (at + 2 >= n) break
      c = html.charCodeAt(at + 2)
    } else if (c === 60) {
      at++ // a lone `<` is text; floods of them are passed without a call each
      continue
    }
    if (count === capacity) {
      if (count >= TOKENS_MAX) throw new ScrapeError('E_HTML_LIMIT', `more than ${TOKENS_MAX} tags in one page`)
      arrays = grow(arrays)
      ;({ start, end, kind, tag, parent, close } = arrays)
      capacity = start.length - 1
    }

    if (!isAlpha(c)) {
      if (isEndTag || c === 33 || c === 63) {
        let stop = -1
        let what = OTHER
        if (!isEndTag && c === 33 && html.startsWith('--', at + 2)) stop = commentEnd(html, at + 4)
        else if (!isEndTag && c === 33 && html.startsWith('[CDATA[', at + 2)) {
          stop = html.indexOf(']]>', at + 9)
          if (stop !== -1) {
            stop += 3
            if (contexts.length > 0 && contexts[contexts.length - 1] !== 0) what = CDATA
          }
        } else stop = html.indexOf('>', at + 2) + 1 || -1
        if (stop === -1) stop = n
        start[count] = at
        end[count] = stop
        kind[count] = what
        tag[count] = -1
        count++
        at = html.indexOf('<', stop)
      } else at = html.indexOf('<', at + 1)
      continue
    }

    // A tag name: up to white space, `/` or `>`.
    const nameStart = isEndTag ? at + 2 : at + 1
    let i = nameStart
    let hash = 0
    while (i < n) {
      c = html.charCodeAt(i)
      if (c === 62 || c === 32 || c === 47 || (c <= 13 && isSpace(c))) break
      hash = (Math.imul(hash, 31) + (c >= 65 && c <= 90 ? c | 32 : c)) | 0
      i++
    }
    let id = knownTagAt(html, nameStart, i, hash)
    const context = contexts.length === 0 ? 0 : contexts[contexts.length - 1]!
    if (id === TAG.image && context === 0) id = TAG.img

    if (isEndTag) {
      let stop = i < n ? html.indexOf('>', i) + 1 : 0
      if (stop === 0) stop = n
      const isCut = i >= n // the page ends inside the name: no tag
      start[count] = at
      end[count] = stop
      kind[count] = OTHER
      tag[count] = -1
      if (id === -1) {
        id = names?.get(html.slice(nameStart, i).toLowerCase()) ?? -1
        if (id !== -1 && customOpen![id - KNOWN] === 0) id = -1
      } else if (IS_VOID[id] === 1 || openCount[id] === 0) {
        if ((id === TAG.br || id === TAG.p) && !isCut) {
          // `</br>` and an unopened `</p>` stand for an empty element.
          kind[count] = ELEMENT_VOID
          tag[count] = id
          parent[count] = depth === 0 ? -1 : stack[depth - 1]!
          close[count] = count + 1
        }
        id = -1
      }
      if (id !== -1 && !isCut) {
        for (;;) {
          const open = stack[--depth]!
          const openTag = tag[open]!
          close[open] = count
          if (openTag < KNOWN) {
            openCount[openTag] = openCount[openTag]! - 1
            if (hasContext(openTag, kind[open]!)) contexts.pop()
          } else customOpen![openTag - KNOWN]!--
          if (openTag === id) break
        }
      }
      count++
      at = html.indexOf('<', stop)
      continue
    }

    // Attributes are only stepped over.
    let isSelfClosing = false
    let isCut = true
    while (i < n) {
      c = html.charCodeAt(i)
      if (c === 62) {
        isCut = false
        break
      }
      if (c === 32 || (c <= 13 && isSpace(c))) {
        i++
        continue
      }
      if (c === 47) {
        do i++
        while (i < n && isSpace(html.charCodeAt(i)))
        if (i < n && html.charCodeAt(i) === 62) {
          isSelfClosing = true
          isCut = false
          break
        }
        continue
      }
      i++
      while (i < n) {
        c = html.charCodeAt(i)
        if (c === 61 || c === 62 || c === 47 || c === 32 || (c <= 13 && isSpace(c))) break
        i++
      }
      if (c !== 61) {
        while (i < n && isSpace(html.charCodeAt(i))) i++
        if (i >= n || html.charCodeAt(i) !== 61) continue
      }
      do i++
      while (i < n && isSpace(html.charCodeAt(i)))
      if (i >= n) break
      c = html.charCodeAt(i)
      if (c === 34 || c === 39) {
        i++
        while (i < n && html.charCodeAt(i) !== c) i++
        i++
      } else {
        while (i < n) {
          c = html.charCodeAt(i)
          if (c === 62 || c === 32 || (c <= 13 && isSpace(c))) break
          i++
        }
      }
    }
    if (isCut) {
      start[count] = at
      end[count] = n
      kind[count] = OTHER
      tag[count] = -1
      count++
      break
    }
    const stop = i + 1
    start[count] = at
    end[count] = stop
    if (id === TAG.form && openCount[id]! > 0) {
      kind[count] = OTHER // a form inside a form is no element
      tag[count++] = -1
      at = html.indexOf('<', stop)
      continue
    }
    if (id === -1) {
      const name = html.slice(nameStart, nameEnd(html, nameStart)).toLowerCase()
      names ??= new Map()
      customOpen ??= []
      id = names.get(name) ?? -1
      if (id === -1) {
        id = KNOWN + names.size
        names.set(name, id)
        customOpen.push(0)
      }
    } else if (IMPLIES_ANY_END[id] === 1) {
      while (depth > 0) {
        const open = stack[depth - 1]!
        const openTag = tag[open]!
        if (openTag >= KNOWN || IMPLIES_END[id * KNOWN + openTag] === 0) break
        depth--
        close[open] = count
        openCount[openTag] = openCount[openTag]! - 1
        if (hasContext(openTag, kind[open]!)) contexts.pop()
      }
    }
    tag[count] = id
    parent[count] = depth === 0 ? -1 : stack[depth - 1]!
    if (id < KNOWN && IS_VOID[id] === 1) {
      kind[count] = ELEMENT_VOID
      close[count] = count + 1
      count++
      at = html.indexOf('<', stop)
      continue
    }

    let isRaw = false
    let here = context
    kind[count] = ELEMENT
    if (id < KNOWN) {
      if (id === TAG.svg) contexts.push((here = 1))
      else if (id === TAG.math) contexts.push((here = 2))
      else if (IS_INTEGRATION[id] === 1) contexts.push((here = 0))
      else if (id === TAG.foreignobject && context === 1) {
        contexts.push((here = 0))
        kind[count] = ELEMENT_INTEGRATION
      }
      isRaw = IS_RAW[id] === 1 && context === 0
      if (isRaw && IS_RAW_WITH_ENTITIES[id] === 0) kind[count] = ELEMENT_RAW
    }
    if (isSelfClosing && here !== 0) {
      // Only svg and math know self-closing elements.
      kind[count] = ELEMENT_VOID
      close[count] = count + 1
      if (id === TAG.svg || id === TAG.math) contexts.pop()
    } else {
      if (depth === DEPTH_MAX) throw new ScrapeError('E_HTML_LIMIT', `tags nested deeper than ${DEPTH_MAX}`)
      stack[depth++] = count
      if (id < KNOWN) openCount[id] = openCount[id]! + 1
      else customOpen![id - KNOWN]!++
    }
    count++
    if (isRaw) {
      at = id === TAG.plaintext ? -1 : rawEnd(html, stop, nameStart, nameEnd(html, nameStart))
    } else at = html.indexOf('<', stop)
  }

  while (depth > 0) close[stack[--depth]!] = count
  start[count] = n
  return { html, count, start, end, kind, tag, parent, close, names }
}

function hasContext(tag: number, kind: number): boolean {
  return tag === TAG.svg || tag === TAG.math || IS_INTEGRATION[tag] === 1 || kind === ELEMENT_INTEGRATION
}

function nameEnd(html: string, from: number): number {
  let i = from
  for (; i < html.length; i++) {
    const c = html.charCodeAt(i)
    if (c === 62 || c === 47 || isSpace(c)) break
  }
  return i
}

/** One past the `-->` or `--!>` of a comment whose text begins at `from`; `<!-->` and `<!--->` are whole comments. */
function commentEnd(html: string, from: number): number {
  if (html.startsWith('>', from)) return from + 1
  if (html.startsWith('->', from)) return from + 2
  let dashes = html.indexOf('--', from)
  while (dashes !== -1) {
    let i = dashes + 2
    while (i < html.length && html.charCodeAt(i) === 45) i++
    if (html.charCodeAt(i) === 62) return i + 1
    if (html.charCodeAt(i) === 33 && html.charCodeAt(i + 1) === 62) return i + 2
    dashes = html.indexOf('--', i)
  }
  return -1
}

/** Where the end tag of raw text begins that was opened with the name at `html[nameStart…nameStop)`, or -1. */
function rawEnd(html: string, from: number, nameStart: number, nameStop: number): number {
  const length = nameStop - nameStart
  for (let at = html.indexOf('</', from); at !== -1; at = html.indexOf('</', at + 2)) {
    let i = 0
    while (i < length && (html.charCodeAt(at + 2 + i) | 32) === (html.charCodeAt(nameStart + i) | 32)) i++
    if (i < length) continue
    const c = html.charCodeAt(at + 2 + length)
    if (c === 62 || c === 47 || isSpace(c)) return at
  }
  return -1
}
