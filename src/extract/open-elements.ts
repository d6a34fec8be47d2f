/**
 * The stack of open elements. Whether a name is open, and in which scope, is answered without a search, however deep a page
 * nests: each place knows the boundaries below it, and each name the innermost place it is open at.
 */
import { ScrapeError } from '../core/errors.ts'
import { BOUNDS, BOUNDS_SCOPE, HTML_BOUNDS, KNOWN, SPECIAL, TAG } from './tags.ts'

/** Deeper pages are traps: a browser flattens at 512. Such a page is refused, not flattened: its tree means nothing. */
const DEPTH_MAX = 10_000
/** With `html` and `body`, which need no tags. */
const SIZE_MAX = DEPTH_MAX + 2
/** A place in the stack fits in so many bits. */
const DEPTH_BITS = 14
const DEPTH_MASK = (1 << DEPTH_BITS) - 1
/** An element of SVG or MathML is its tag's id plus its namespace times this, so that it never equals an HTML element's. */
export const NAMESPACE_BIT = 24
const TAG_MASK = (1 << NAMESPACE_BIT) - 1

export class OpenElements {
  /** By depth; `size - 1` is the current node's. */
  readonly tokens = new Int32Array(SIZE_MAX)
  readonly elements = new Int32Array(SIZE_MAX)
  size = 0
  /** The current node; -1 for none. */
  top = -1
  /** Depth of the innermost open HTML element of each name, or -1. */
  readonly #innermost = new Int32Array(KNOWN).fill(-1)
  #innermostUnknown: number[] = []
  /** By depth: the next open HTML element of the same name below. */
  readonly #sameBelow = new Int32Array(SIZE_MAX)
  /** By depth: the innermost scope boundary at or below, and the innermost special element. */
  readonly #bounds = new Int32Array(SIZE_MAX)
  /** By depth: the innermost special element at or below other than `address`, `div` and `p`. */
  readonly #listItemBounds = new Int32Array(SIZE_MAX)

  clear(): void {
    this.size = 0
    this.top = -1
    this.#innermost.fill(-1)
    this.#innermostUnknown = []
  }

  get topToken(): number {
    return this.size === 0 ? -1 : this.tokens[this.size - 1]!
  }

  /** 0 HTML, 1 SVG, 2 MathML. */
  get topNamespace(): number {
    return this.top === -1 ? 0 : this.top >> NAMESPACE_BIT
  }

  /** Whatever its namespace. */
  get topTag(): number {
    return this.top === -1 ? -1 : this.top & TAG_MASK
  }

  push(token: number, tag: number, namespace: number): void {
    const depth = this.size
    if (depth === SIZE_MAX) throw new ScrapeError('E_HTML_LIMIT', `tags nested deeper than ${DEPTH_MAX}`)
    const element = tag + (namespace << NAMESPACE_BIT)
    this.tokens[depth] = token
    this.elements[depth] = element
    this.#enter(depth, element)
    this.size = depth + 1
    this.top = element
  }

  #enter(depth: number, element: number): void {
    const below = depth === 0 ? 0 : this.#bounds[depth - 1]! // `html`, at 0, is a boundary of every kind
    if (element < KNOWN) {
      this.#sameBelow[depth] = this.#innermost[element]!
      this.#innermost[element] = depth
      const bounds = HTML_BOUNDS[element]!
      this.#bounds[depth] = bounds === 0 ? below : boundsAt(depth, bounds, below)
      const endsListItem = bounds !== 0 && element !== TAG.div && element !== TAG.p && element !== TAG.address
      this.#listItemBounds[depth] = endsListItem ? depth : this.#listItemBounds[depth - 1]!
      return
    }
    const tag = element & TAG_MASK
    const bounds = tag < KNOWN ? BOUNDS[element >> NAMESPACE_BIT]![tag]! : 0
    this.#bounds[depth] = boundsAt(depth, bounds, below)
    this.#listItemBounds[depth] = bounds === 0 ? this.#listItemBounds[depth - 1]! : depth
    if (tag !== element) return
    this.#sameBelow[depth] = this.#innermostUnknown[tag - KNOWN] ?? -1
    this.#innermostUnknown[tag - KNOWN] = depth
  }

  /** Takes the current node from the stack; returns its token. */
  pop(): number {
    const depth = --this.size
    const element = this.elements[depth]!
    if (element < KNOWN) this.#innermost[element] = this.#sameBelow[depth]!
    else if (element <= TAG_MASK) this.#innermostUnknown[element - KNOWN] = this.#sameBelow[depth]!
    this.top = depth === 0 ? -1 : this.elements[depth - 1]!
    return this.tokens[depth]!
  }

  /** Depth of the innermost open HTML element of that name, or -1. */
  depthOf(tag: number): number {
    return tag < KNOWN ? this.#innermost[tag]! : (this.#innermostUnknown[tag - KNOWN] ?? -1)
  }

  isOpen(tag: number): boolean {
    return this.depthOf(tag) !== -1
  }

  hasInScope(tag: number): boolean {
    return this.isInScope(this.depthOf(tag))
  }

  isInScope(depth: number): boolean {
    return depth !== -1 && depth >= this.#bounds[this.size - 1]! >> DEPTH_BITS
  }

  hasPInButtonScope(): boolean {
    const depth = this.#innermost[TAG.p]!
    return depth !== -1 && this.isInScope(depth) && depth > this.#innermost[TAG.button]!
  }

  hasLiInListScope(): boolean {
    const depth = this.#innermost[TAG.li]!
    return this.isInScope(depth) && depth > this.#innermost[TAG.ol]! && depth > this.#innermost[TAG.ul]!
  }

  hasInTableScope(tag: number): boolean {
    const depth = this.depthOf(tag)
    return depth !== -1 && depth >= this.#innermost[TAG.table]! // as parse5 does it; the standard stops at `template`, too
  }

  /** Depth of the innermost special element. */
  get #special(): number {
    return this.#bounds[this.size - 1]! & DEPTH_MASK
  }

  /** A special element stands between that depth and the current node. */
  hasSpecialAbove(depth: number): boolean {
    return this.#special > depth
  }

  /** The special element nearest to it on the way to the current node, or -1. */
  firstSpecialAbove(depth: number): number {
    if (!this.hasSpecialAbove(depth)) return -1
    let at = depth + 1
    while ((this.#bounds[at]! & DEPTH_MASK) !== at) at++
    return at
  }

  /** A special element that ends the search for a list item. */
  hasListItemBoundaryAbove(depth: number): boolean {
    return this.#listItemBounds[this.size - 1]! > depth
  }

  /** Depth of that token, or -1. `hint` is where it was last seen. */
  depthOfToken(token: number, hint: number): number {
    if (hint < this.size && this.tokens[hint] === token) return hint
    return this.tokens.subarray(0, this.size).lastIndexOf(token)
  }

  remove(depth: number): void {
    const { size } = this
    this.tokens.copyWithin(depth, depth + 1, size)
    this.elements.copyWithin(depth, depth + 1, size)
    this.#rebuild(size - 1)
  }

  removeAll(depths: ReadonlySet<number>): void {
    if (depths.size === 0) return
    let kept = 0
    for (let depth = 0; depth < this.size; depth++) {
      if (depths.has(depth)) continue
      this.tokens[kept] = this.tokens[depth]!
      this.elements[kept++] = this.elements[depth]!
    }
    this.#rebuild(kept)
  }

  insert(depth: number, token: number, tag: number): void {
    const { size } = this
    this.tokens.copyWithin(depth + 1, depth, size)
    this.elements.copyWithin(depth + 1, depth, size)
    this.tokens[depth] = token
    this.elements[depth] = tag
    this.#rebuild(size + 1)
  }

  #rebuild(size: number): void {
    this.#innermost.fill(-1)
    this.#innermostUnknown = []
    for (let depth = 0; depth < size; depth++) this.#enter(depth, this.elements[depth]!)
    this.size = size
    this.top = size === 0 ? -1 : this.elements[size - 1]!
  }
}

function boundsAt(depth: number, bounds: number, below: number): number {
  const scope = (bounds & BOUNDS_SCOPE) !== 0 ? depth : below >> DEPTH_BITS
  return (scope << DEPTH_BITS) | ((bounds & SPECIAL) !== 0 ? depth : below & DEPTH_MASK)
}
