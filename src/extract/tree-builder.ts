/**
 * Builds the tree of a page as the HTML standard says: inserts elements, keeps the stack of open elements and the list of active
 * formatting elements, and moves nodes where the standard moves them. Which of it a tag causes is decided in tree-rules.ts.
 *
 * Most pages need no moves: then the order of the tree is the order of the page, and a node is a token in the arrays. The first
 * move links the nodes read so far (`NodeLinks`); at the end the tokens are put into the order of the tree.
 */
import { ScrapeError } from '../core/errors.ts'
import { FormattingElements, MARKER } from './formatting-elements.ts'
import { NodeLinks } from './node-links.ts'
import { OpenElements } from './open-elements.ts'
import { attributesOfTag } from './tag-attributes.ts'
import { HAS_IMPLIED_END, HAS_IMPLIED_END_IN_TEMPLATE, IS_FORMATTING, IS_TABLE_STRUCTURE, KNOWN, TAG } from './tags.ts'
import { growTokens, NO_TOKENS, newTokens, recycleTokens, type Tokens } from './tokens.ts'

/** Tags and comments of one page, 21 bytes each: 42 MB for a page of nothing but `<b>`. Real pages of 16 MB stay below a million. */
const TOKENS_MAX = 2_000_000
/** The same for a page with moved nodes, which take 45 bytes more each while they are put in order. */
const LINKED_TOKENS_MAX = 1_000_000
/** Steps through the stack and the list of formatting elements for one page. Real pages need some hundred, traps any number. */
const STEPS_MAX = 50_000_000

/** Tags of one `html` or `body` element whose attributes are read. */
const MORE_TAGS_MAX = 100

/** What a token is. Everything from `ELEMENT` on is an element. */
const NONE = 0 // an end tag, or something else that leaves nothing in the tree
export const COMMENT = 1
export const DOCTYPE = 2
export const CDATA = 3
/** Only in a page with moved nodes; elsewhere text is what lies between two tokens. */
export const TEXT = 4
export const RAW_TEXT = 5
export const ELEMENT = 8
export const ELEMENT_VOID = 9 // no content
export const ELEMENT_RAW = 10 // its text has no entities
/** The kind of an element in SVG or MathML is `ELEMENT` or `ELEMENT_VOID` plus its namespace times this. */
export const NAMESPACE = 16
export const SVG = 1
export const MATH = 2

/** Tokens in the order of the tree. The text after a token, up to the next, belongs to the tree unless `hasMoved`. */
export interface PageIndex extends Tokens {
  readonly html: string
  readonly count: number
  /** This page's unknown tag names, with ids from `KNOWN` on. */
  readonly names: ReadonlyMap<string, number>
  readonly isQuirks: boolean
  readonly hasTemplates: boolean
  /** Nodes were moved: the tokens are not in the order of the page, and texts are tokens, too. */
  readonly hasMoved: boolean
  /** Elements that no tag stands for but that have the attributes of one → its token. */
  readonly sources: ReadonlyMap<number, number> | undefined
  /** Where further tags of an element begin. */
  readonly moreTags: ReadonlyMap<number, readonly number[]> | undefined
  /** Filled in by the first selector that asks about siblings. */
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

/** What a tag does in an insertion mode. A start tag's rule returns what is read after it. */
export interface TagRules {
  start(b: TreeBuilder, mode: number, tag: number): number
  end(b: TreeBuilder, mode: number, tag: number): void
}

const STILL_OPEN = 0x7fffffff

export class TreeBuilder {
  html = ''
  tokens: Tokens = NO_TOKENS
  count = 0
  #capacity = 0
  readonly open = new OpenElements()
  mode = 0
  templateModes: number[] = []
  isQuirks = false
  isFramesetOk = true
  /** Text and elements that would go into a table's structure go in front of the table. */
  isFostering = false
  /** Tokens of `head` and of the form that is open; -1 for none. */
  head = -1
  form = -1
  hasTemplates = false
  /** Where the tag or text being read begins and ends. */
  at = 0
  end = 0
  isSelfClosing = false
  /** A formatting element may have to be opened again before the next text. */
  mayReconstruct = false
  readonly #formatting = new FormattingElements()
  /** Nodes can be moved; undefined as long as none was. */
  links: NodeLinks | undefined
  /** Tokens of formatting elements opened again → tokens of the tags they were opened by. */
  #sources: Map<number, number> | undefined
  /** Where further tags of `html` and `body` begin, whose attributes count if they are new. */
  #moreTags: Map<number, number[]> | undefined
  /** Elements taken out of the middle of the stack, by the open element above: they end with it. */
  #endsWith: Map<number, number> | undefined
  #steps = 0
  readonly #rules: TagRules

  constructor(rules: TagRules) {
    this.#rules = rules
  }

  /** Treats the tag being read by the rules of the current mode, or of another one. */
  startTag(tag: number): number {
    return this.#rules.start(this, this.mode, tag)
  }

  startTagIn(mode: number, tag: number): number {
    return this.#rules.start(this, mode, tag)
  }

  endTag(tag: number): void {
    this.#rules.end(this, this.mode, tag)
  }

  endTagIn(mode: number, tag: number): void {
    this.#rules.end(this, mode, tag)
  }

  begin(html: string): void {
    this.html = html
    this.tokens = newTokens()
    this.#capacity = Math.min(this.tokens.start.length - 1, TOKENS_MAX)
    this.count = this.mode = this.at = this.end = this.#steps = 0
    this.open.clear()
    this.templateModes.length = 0
    this.#formatting.clear()
    this.isQuirks = this.isFostering = this.mayReconstruct = this.hasTemplates = false
    this.isFramesetOk = true
    this.head = this.form = -1
    this.links = this.#sources = this.#moreTags = this.#endsWith = undefined
  }

  /** The page is read. `names` are those it uses that are not known everywhere. */
  finish(names: ReadonlyMap<string, number>): PageIndex {
    while (this.open.size > 0) this.pop()
    const { html, links } = this
    if (links !== undefined) this.#putInOrder(links)
    const { count } = this
    const { start, end, kind, tag, parent, close } = this.tokens
    start[count] = html.length
    const index = {
      html,
      count,
      names,
      start,
      end,
      kind,
      tag,
      parent,
      close,
      isQuirks: this.isQuirks,
      hasTemplates: this.hasTemplates,
      hasMoved: links !== undefined,
      sources: this.#sources,
      moreTags: this.#moreTags,
      siblings: undefined,
    }
    this.#forgetPage()
    return index
  }

  #putInOrder(links: NodeLinks): void {
    const { tokens, count, places } = links.inOrder(this.tokens, this.count)
    links.free()
    recycleTokens(this.tokens)
    this.tokens = tokens
    this.count = count
    this.#moreTags = moved(this.#moreTags, places)
  }

  /** After a failure. */
  abandon(): void {
    this.links?.free()
    recycleTokens(this.tokens)
    this.#forgetPage()
  }

  #forgetPage(): void {
    this.tokens = NO_TOKENS
    this.html = ''
    this.links = this.#sources = this.#moreTags = this.#endsWith = undefined
  }

  // ——— Tokens and nodes ———

  add(start: number, end: number, kind: number, tag: number): number {
    const token = this.count
    if (token === this.#capacity) this.#grow()
    const { tokens } = this
    tokens.start[token] = start
    tokens.end[token] = end
    tokens.kind[token] = kind
    tokens.tag[token] = tag
    this.count = token + 1
    if (this.links !== undefined) this.links.add(token)
    return token
  }

  #grow(): void {
    const max = this.links === undefined ? TOKENS_MAX : LINKED_TOKENS_MAX
    if (this.count === max) throw new ScrapeError('E_HTML_LIMIT', `more than ${max} tags in one page`)
    this.tokens = growTokens(this.tokens)
    this.#capacity = Math.min(this.tokens.start.length - 1, max)
  }

  /** Leaves these characters out of the tree. */
  drop(start: number, end: number): void {
    if (this.links === undefined) this.add(start, end, NONE, -1)
  }

  addComment(kind: number, parent: number): void {
    const token = this.add(this.at, this.end, kind, -1)
    this.tokens.parent[token] = parent
    this.links?.append(parent, token)
  }

  /** The current node, or -1: the document. */
  get current(): number {
    return this.open.topToken
  }

  /** Puts an element into the current node, or in front of its table. */
  #insert(start: number, end: number, kind: number, tag: number): number {
    const { open } = this
    const isFostered = this.isFostering && this.#isTableStructure(open.size - 1)
    if (isFostered) this.link(this.at)
    const token = this.add(start, end, kind, tag)
    if (isFostered) this.#foster(token)
    else {
      this.tokens.parent[token] = this.current
      this.links?.append(this.current, token)
    }
    return token
  }

  /** The element of the tag being read. */
  insertElement(tag: number, kind = ELEMENT): number {
    const { open } = this
    let token: number
    if (this.links === undefined && !this.isFostering) {
      token = this.add(this.at, this.end, kind, tag)
      this.tokens.parent[token] = open.size === 0 ? -1 : open.tokens[open.size - 1]!
    } else token = this.#insert(this.at, this.end, kind, tag)
    this.tokens.close[token] = STILL_OPEN
    open.push(token, tag, kind >> 4)
    return token
  }

  insertVoid(tag: number, kind = ELEMENT_VOID): void {
    const token = this.#insert(this.at, this.end, kind, tag)
    this.tokens.close[token] = token + 1
  }

  /** An element that no tag stands for. */
  insertImplied(tag: number, at = this.at): number {
    const token = this.#insert(at, at, ELEMENT, tag)
    this.tokens.close[token] = STILL_OPEN
    this.open.push(token, tag, 0)
    return token
  }

  insertText(from: number, to: number, kind = TEXT): void {
    if (from === to) return
    if (this.isFostering && this.#isTableStructure(this.open.size - 1)) {
      this.link(from)
      this.#foster(this.add(from, to, kind, -1))
    } else if (this.links !== undefined) this.links.append(this.current, this.add(from, to, kind, -1))
  }

  pop(): void {
    const { open } = this
    if (open.top < KNOWN && IS_FORMATTING[open.top] === 1) this.mayReconstruct = true
    this.#close(open.pop())
  }

  #close(token: number): void {
    this.tokens.close[token] = this.count
    if (this.#endsWith === undefined) return
    const below = this.#endsWith.get(token)
    if (below === undefined) return
    this.#endsWith.delete(token)
    this.#close(below)
  }

  /** Pops everything above that depth. */
  popTo(depth: number): void {
    while (this.open.size > depth) this.pop()
  }

  /** Pops up to and including the innermost open HTML element of that name. */
  popThrough(tag: number): void {
    this.popTo(this.open.depthOf(tag))
  }

  /** Closes the innermost open element of that name, unless a block lies between. */
  closeAny(tag: number): void {
    const { open } = this
    const depth = open.depthOf(tag)
    if (depth <= 0 || open.hasSpecialAbove(depth)) return
    this.generateImpliedEndTags(tag)
    this.popTo(depth)
  }

  /** Takes an element out of the stack; elements open inside it stay open. */
  remove(depth: number): void {
    const { open } = this
    if (depth === open.size - 1) {
      this.pop()
      return
    }
    if (this.links !== undefined) {
      this.#removeOpen(depth)
      return
    }
    const above = open.tokens[depth + 1]!
    this.#endsWith ??= new Map()
    // Several may end with the same element: the outer ones with the inner one.
    let last = above
    for (let next = this.#endsWith.get(last); next !== undefined; next = this.#endsWith.get(last)) last = next
    this.#endsWith.set(last, open.tokens[depth]!)
    this.#removeOpen(depth)
  }

  generateImpliedEndTags(except = -1): void {
    const { open } = this
    while (open.top < KNOWN && HAS_IMPLIED_END[open.top] === 1 && open.top !== except) this.pop()
  }

  generateAllImpliedEndTags(): void {
    const { open } = this
    while (open.top < KNOWN && HAS_IMPLIED_END_IN_TEMPLATE[open.top] === 1) this.pop()
  }

  closeP(): void {
    this.generateImpliedEndTags(TAG.p)
    this.popThrough(TAG.p)
  }

  /** Pops until the current node is one of these, `template` or `html`. */
  clearBackTo(...tags: readonly number[]): void {
    let depth = Math.max(this.open.depthOf(TAG.template), this.open.depthOf(TAG.html))
    for (const tag of tags) depth = Math.max(depth, this.open.depthOf(tag))
    this.popTo(depth + 1)
  }

  /** A second `<html>` or `<body>`. */
  addAttributes(token: number): void {
    this.#moreTags ??= new Map()
    const tags = this.#moreTags.get(token)
    if (tags === undefined) this.#moreTags.set(token, [this.at])
    else if (tags.length < MORE_TAGS_MAX) tags.push(this.at)
  }

  // ——— Formatting elements ———

  pushMarker(): void {
    this.#formatting.push(MARKER, 0)
  }

  clearToMarker(): void {
    this.#formatting.clearToMarker()
    this.mayReconstruct = this.#formatting.size > 0
  }

  /** The current node becomes an active formatting element. */
  pushFormatting(): void {
    const { open } = this
    const same = this.#formatting.count(open.top, this.tokens.tag)
    if (same >= 3) this.#forgetSame(same)
    this.#formatting.push(open.topToken, open.size - 1)
  }

  #forgetSame(sameName: number): void {
    this.#spend(sameName)
    const { top, topToken } = this.open
    const keyOf = (token: number) => this.#attributeText(token)
    if (this.#formatting.forgetSame(top, this.tokens.tag, keyOf(topToken), keyOf)) this.mayReconstruct = true
  }

  #attributeText(token: number): string {
    const source = this.#sources?.get(token) ?? token
    const attributes = attributesOfTag(this.html, this.tokens.start[source]!)
    return JSON.stringify([...attributes].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  #forget(i: number): void {
    this.#formatting.forget(i)
    this.mayReconstruct = true
  }

  #shiftDepths(from: number, by: 1 | -1): void {
    this.#formatting.shiftDepths(from, by)
    this.mayReconstruct = true
    this.#spend(this.open.size + this.#formatting.size)
  }

  #removeOpen(depth: number): void {
    this.open.remove(depth)
    this.#shiftDepths(depth + 1, -1)
  }

  /** Opens formatting elements again that were closed with the block they began in. */
  reconstruct(at = this.at): void {
    this.mayReconstruct = false
    const { open } = this
    const list = this.#formatting
    const { tokens } = list
    let i = list.size - 1
    if (i < 0 || tokens[i] === MARKER || list.isOpen(i, open)) return
    while (i > 0 && tokens[i - 1] !== MARKER && !list.isOpen(i - 1, open)) i--
    this.#spend(list.size - i)
    for (; i < list.size; i++) {
      if (this.isFostering && this.#isTableStructure(open.size - 1)) this.link(at)
      const depth = open.size
      list.replace(i, this.#clone(tokens[i]!, at), depth)
    }
  }

  #clone(token: number, at: number): number {
    const { tokens } = this
    const tag = tokens.tag[token]!
    let clone: number
    if (this.links === undefined) {
      clone = this.#insert(at, at, ELEMENT, tag)
      this.#sources ??= new Map()
      this.#sources.set(clone, this.#sources.get(token) ?? token)
    } else clone = this.#insert(tokens.start[token]!, tokens.end[token]!, ELEMENT, tag)
    this.tokens.close[clone] = STILL_OPEN
    this.open.push(clone, tag, 0)
    return clone
  }

  /** `</b>` where nothing else is open inside: the usual case, without the search. */
  closeFormatting(tag: number): boolean {
    const list = this.#formatting
    const { open } = this
    const last = list.size - 1
    if (open.top !== tag || last < 0 || list.tokens[last] !== open.topToken) return false
    this.#close(open.pop())
    list.pop()
    if (last > 0 && list.tokens[last - 1] !== MARKER && !list.isOpen(last - 1, open)) this.mayReconstruct = true
    return true
  }

  /** Ends the formatting element that a second `<a>` in it replaces. */
  replaceFormatting(tag: number): void {
    const list = this.#formatting
    const i = list.newest(tag, this.tokens.tag)
    if (i === -1) return
    const { links } = this
    const token = list.tokens[i]!
    this.adopt(tag)
    // Linking gives tokens new numbers; whatever was replaced is neither in the list nor in the stack then.
    if (links === undefined && this.links !== undefined) return
    const still = list.tokens.indexOf(token)
    if (still !== -1) this.#forget(still)
    const depth = this.open.depthOfToken(token, 0)
    if (depth !== -1) this.remove(depth)
  }

  /** The adoption agency: ends a formatting element across blocks that were opened in it. */
  adopt(tag: number): void {
    const { open } = this
    const list = this.#formatting
    if (open.top === tag && !list.tokens.includes(open.topToken)) {
      this.pop()
      return
    }
    for (let round = 0; round < 8; round++) {
      let entry = list.newest(tag, this.tokens.tag)
      if (entry === -1) {
        this.closeAny(tag)
        return
      }
      if (!list.isOpen(entry, open)) {
        this.#forget(entry)
        return
      }
      const depth = list.depthOf(entry)
      if (!open.isInScope(depth)) return
      let blockDepth = open.firstSpecialAbove(depth)
      if (blockDepth === -1) {
        this.popTo(depth)
        this.#forget(entry)
        return
      }
      this.link(this.at)
      const links = this.links!
      const formatting = list.tokens[entry]!
      const block = open.tokens[blockDepth]!
      let bookmark = entry
      let last = block
      const left = new Set<number>()
      for (let at = blockDepth - 1, steps = 1; at > depth; at--, steps++) {
        const node = open.tokens[at]!
        let i = list.tokens.indexOf(node)
        if (i !== -1 && steps > 3) {
          this.#forget(i)
          if (i < entry) entry--
          if (i <= bookmark) bookmark--
          i = -1
        }
        if (i === -1) {
          left.add(at)
          continue
        }
        const clone = this.#copy(node)
        open.tokens[at] = clone
        list.replace(i, clone, at)
        if (last === block) bookmark = i
        links.detach(last)
        links.append(clone, last)
        last = clone
      }
      open.removeAll(left)
      blockDepth -= left.size
      for (const at of left) this.#shiftDepths(at + 1, -1) // from the innermost on
      links.detach(last)
      if (this.#isTableStructure(depth - 1)) this.#foster(last)
      else links.append(open.tokens[depth - 1]!, last)
      const copy = this.#copy(formatting)
      links.moveChildren(block, copy)
      links.append(block, copy)
      this.#removeOpen(depth)
      this.#shiftDepths(blockDepth, 1)
      open.insert(blockDepth, copy, tag)
      list.insert(bookmark + 1, copy, blockDepth)
      this.#forget(entry <= bookmark ? entry : entry + 1)
    }
  }

  /** A linked node like that one, not yet in the tree. */
  #copy(token: number): number {
    const { start, end, tag } = this.tokens
    return this.add(start[token]!, end[token]!, ELEMENT, tag[token]!)
  }

  // ——— Moves ———

  #isTableStructure(depth: number): boolean {
    if (depth < 0) return false
    const element = this.open.elements[depth]!
    return element < KNOWN && IS_TABLE_STRUCTURE[element] === 1
  }

  #foster(token: number): void {
    const { open } = this
    const links = this.links!
    const table = open.depthOf(TAG.table)
    const template = open.depthOf(TAG.template)
    if (template > table) links.append(open.tokens[template]!, token)
    else if (table === -1) links.append(open.tokens[0]!, token)
    else {
      const parent = links.parentOf(open.tokens[table]!)
      if (parent === -2) links.append(open.tokens[table - 1]!, token)
      else links.insertBefore(parent, token, open.tokens[table]!)
    }
  }

  /** From a page without text tokens to one of linked nodes, with the text read so far: that up to `textTo`. */
  link(textTo: number): void {
    if (this.links !== undefined) return
    const old = this.tokens
    const { count, open } = this
    const sources = this.#sources
    const links = new NodeLinks(2 * count + 64)
    const places = new Int32Array(count)
    this.tokens = newTokens()
    this.#capacity = Math.min(this.tokens.start.length - 1, LINKED_TOKENS_MAX)
    this.count = 0
    this.links = links
    this.#sources = undefined
    const inside: number[] = []
    for (let token = -1; token < count; token++) {
      if (token >= 0) {
        while (inside.length > 0 && old.close[inside.at(-1)!]! <= token) inside.pop()
        const kind = old.kind[token]!
        if (kind !== NONE) {
          const source = sources?.get(token) ?? token
          const node = this.add(old.start[source]!, old.end[source]!, kind, old.tag[token]!)
          this.tokens.close[node] = STILL_OPEN
          places[token] = node
          const parent = old.parent[token]!
          links.append(parent === -1 ? -1 : places[parent]!, node)
          if (kind >= ELEMENT && (kind & 7) !== (ELEMENT_VOID & 7)) inside.push(token)
        }
      }
      const from = token === -1 ? 0 : old.end[token]!
      const to = token + 1 < count ? old.start[token + 1]! : textTo
      const container = inside.at(-1)
      if (to > from && container !== undefined) {
        const isRaw = old.kind[container] === ELEMENT_RAW
        links.append(places[container]!, this.add(from, to, isRaw ? RAW_TEXT : TEXT, -1))
      }
    }
    for (let depth = 0; depth < open.size; depth++) open.tokens[depth] = places[open.tokens[depth]!]!
    this.#formatting.renumber(places)
    if (this.head !== -1) this.head = places[this.head]!
    if (this.form !== -1) this.form = places[this.form]!
    this.#moreTags = moved(this.#moreTags, places)
    this.#endsWith = undefined // links know what is inside what
    recycleTokens(old)
  }

  #spend(steps: number): void {
    this.#steps += steps
    if (this.#steps > STEPS_MAX)
      throw new ScrapeError('E_HTML_LIMIT', 'formatting tags that cross each other too often and too deep')
  }
}

function moved<T>(map: Map<number, T> | undefined, places: Int32Array): Map<number, T> | undefined {
  return map === undefined ? undefined : new Map([...map].map(([token, value]) => [places[token]!, value]))
}
