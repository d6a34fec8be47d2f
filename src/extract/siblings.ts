/** Where elements stand among their siblings. Computed by the first selector that asks. */
import type { PageIndex, Siblings } from './tree-builder.ts'

/**
 * The element before this one under the same parent, or -1. Found by walking back: all steps for all elements of a page together
 * are no more than its tokens, and a page with a single `+` does not need the table of all siblings (10 µs).
 */
export function previousOf(index: PageIndex, token: number): number {
  if (index.siblings !== undefined) return index.siblings.previous[token]!
  const { tag, parent } = index
  const mother = parent[token]!
  let at = token - 1
  while (at > mother && tag[at] === -1) at--
  if (at <= mother) return -1
  while (parent[at] !== mother) at = parent[at]!
  return at
}

export function siblingsOf(index: PageIndex): Siblings {
  if (index.siblings !== undefined) return index.siblings
  const { count, tag, parent } = index
  const previous = new Int32Array(count)
  const position = new Int32Array(count)
  const lastChild = new Int32Array(count + 1).fill(-1)
  for (let token = 0; token < count; token++) {
    if (tag[token] === -1) continue
    const before = lastChild[parent[token]! + 1]!
    previous[token] = before
    position[token] = before === -1 ? 1 : position[before]! + 1
    lastChild[parent[token]! + 1] = token
  }
  index.siblings = { previous, position, lastChild }
  return index.siblings
}

/** Counted from the end. */
export function lastPosition(index: PageIndex, token: number): number {
  const { position, lastChild } = siblingsOf(index)
  return position[lastChild[index.parent[token]! + 1]!]! - position[token]! + 1
}

/** Positions among siblings of the same name. */
interface TypePositions {
  readonly first: Int32Array
  readonly last: Int32Array
}

const typePositions = new WeakMap<Siblings, TypePositions>()

export function typePositionsOf(index: PageIndex): TypePositions {
  const siblings = siblingsOf(index)
  let positions = typePositions.get(siblings)
  if (positions === undefined) {
    positions = countTypes(index, siblings)
    typePositions.set(siblings, positions)
  }
  return positions
}

function countTypes({ count, tag }: PageIndex, { previous, lastChild }: Siblings): TypePositions {
  const first = new Int32Array(count)
  const last = new Int32Array(count)
  let names = 0
  for (let token = 0; token < count; token++) names = Math.max(names, tag[token]! + 1)
  const counted = new Int32Array(names)
  for (let slot = 0; slot <= count; slot++) {
    const youngest = lastChild[slot]!
    for (let child = youngest; child !== -1; child = previous[child]!) last[child] = ++counted[tag[child]!]!
    for (let child = youngest; child !== -1; child = previous[child]!)
      first[child] = counted[tag[child]!]! - last[child]! + 1
    for (let child = youngest; child !== -1; child = previous[child]!) counted[tag[child]!] = 0
  }
  return { first, last }
}
