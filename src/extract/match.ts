/**
 * Runs compiled selectors over a page's index, from right to left. The time is linear in the page for every selector: results for
 * all ancestors or all earlier siblings are remembered, so no chain is walked twice.
 */
import { findAttribute, foundValue, valueEnd, valueStart } from './attributes.ts'
import type { PageIndex, Siblings } from './page-index.ts'
import {
  CHILD,
  CONTAINS,
  type CompiledSelector,
  type Compound,
  DESCENDANT,
  END,
  EQUALS,
  EXISTS,
  FIRST,
  HYPHEN,
  LAST_CHILD,
  NEXT,
  NOT,
  NTH_CHILD,
  START,
  type Test,
  WORD,
} from './selector.ts'

/** Tokens of the matching elements inside `scope` (-1: the page), in page order. */
export function findAll(index: PageIndex, selector: CompiledSelector, scope: number): number[] {
  const found: number[] = []
  const stop = scope === -1 ? index.count : index.close[scope]!
  prepare(index, selector, scope)
  for (let token = scope + 1; ; token++) {
    token = nextMatch(index, selector, token, stop)
    if (token === -1) break
    found.push(token)
  }
  return found
}

/** The first match, or -1. */
export function findFirst(index: PageIndex, selector: CompiledSelector, scope: number): number {
  prepare(index, selector, scope)
  return nextMatch(index, selector, scope + 1, scope === -1 ? index.count : index.close[scope]!)
}

// The state of one search. Searches do not overlap, so module variables are enough and nothing is allocated.
let place = -1
let stamp = 0
/** Per far-reaching relation and element: `2 * stamp` for no, `2 * stamp + 1` for yes; other numbers are from older searches. */
let memory = new Int32Array(4096)

function prepare(index: PageIndex, selector: CompiledSelector, scope: number): void {
  place = scope
  if (selector.columns === 0) return
  const size = selector.columns * index.count
  if (memory.length < size || (memory.length > 1_000_000 && size < 65_536))
    memory = new Int32Array(Math.max(4096, size))
  if (stamp === 1_000_000_000) {
    memory.fill(0)
    stamp = 0
  }
  stamp++
}

function nextMatch(index: PageIndex, selector: CompiledSelector, from: number, stop: number): number {
  const alternatives = selector.alternatives!
  const { tag } = index
  if (alternatives.length === 1) {
    const compounds = alternatives[0]!
    const last = compounds.length - 1
    const wanted = tagIdIn(index, compounds[last]!)
    if (wanted === -2) return -1
    for (let token = from; token < stop; token++) {
      if (wanted === -1 ? tag[token] !== -1 : tag[token] === wanted) {
        if (matches(index, compounds, last, token)) return token
      }
    }
    return -1
  }
  for (let token = from; token < stop; token++) {
    if (tag[token] === -1) continue
    for (const compounds of alternatives) if (matches(index, compounds, compounds.length - 1, token)) return token
  }
  return -1
}

function tagIdIn(index: PageIndex, compound: Compound): number {
  return compound.tagId === -2 ? (index.names.get(compound.tag) ?? -2) : compound.tagId
}

/** Whether the element matches the compound and everything left of it. As in cheerio, the leftmost may be the scope itself. */
function matches(index: PageIndex, compounds: readonly Compound[], i: number, token: number): boolean {
  const compound = compounds[i]!
  if (!matchesCompound(index, compound, token)) return false
  if (token === place) return i === 0 && compound.relation === FIRST
  switch (compound.relation) {
    case FIRST:
      return true
    case CHILD: {
      const parent = index.parent[token]!
      if (i === 0) return parent === place
      return parent !== -1 && matches(index, compounds, i - 1, parent)
    }
    case NEXT: {
      const previous = previousOf(index, token)
      return previous !== -1 && matches(index, compounds, i - 1, previous)
    }
    default:
      return matchesFar(index, compounds, i, token)
  }
}

/** Whether any ancestor (or earlier sibling) matches the part left of compound `i`. */
function matchesFar(index: PageIndex, compounds: readonly Compound[], i: number, token: number): boolean {
  const { relation, column } = compounds[i]!
  const isDescendant = relation === DESCENDANT
  const chain = isDescendant ? index.parent : siblingsOf(index).previous
  const stop = isDescendant && place !== -1 ? chain[place]! : -1
  const base = column * index.count
  const yes = stamp * 2 + 1
  let answer = false
  let at = chain[token]!
  for (; at !== stop; at = chain[at]!) {
    const known = memory[base + at]!
    if (known >> 1 === stamp) {
      answer = known === yes
      break
    }
    if (matches(index, compounds, i - 1, at)) {
      answer = true
      memory[base + at] = yes
      break
    }
  }
  // The answer holds for every element passed on the way: it is about an element *or* the rest of its chain.
  for (let passed = chain[token]!; passed !== at; passed = chain[passed]!)
    memory[base + passed] = answer ? yes : yes - 1
  return answer
}

function matchesCompound(index: PageIndex, compound: Compound, token: number): boolean {
  if (compound.tagId !== -1 && index.tag[token] !== tagIdIn(index, compound)) return false
  const { tests } = compound
  for (let i = 0; i < tests.length; i++) if (!matchesTest(index, tests[i]!, token)) return false
  return true
}

function matchesTest(index: PageIndex, test: Test, token: number): boolean {
  switch (test.op) {
    case NOT:
      for (const compound of test.not) if (matchesCompound(index, compound, token)) return false
      return true
    case NTH_CHILD: {
      const { position } = siblingsOf(index)
      const steps = position[token]! - test.b
      return test.a === 0 ? steps === 0 : steps % test.a === 0 && steps / test.a >= 0
    }
    case LAST_CHILD:
      return siblingsOf(index).lastChild[index.parent[token]! + 1] === token
    default:
      return findAttribute(index, token, test.name) && matchesValue(index, test)
  }
}

/** Compares the attribute value just found. The two most common comparisons read it in place. */
function matchesValue(index: PageIndex, test: Test): boolean {
  const { op, value } = test
  if (op === EXISTS) return true
  if (!test.ignoreCase) {
    if (op === WORD) {
      const answer = hasWord(index.html, valueStart, valueEnd, value)
      if (answer !== undefined) return answer
    } else if (op === EQUALS && valueEnd - valueStart === value.length && index.html.startsWith(value, valueStart)) {
      return !value.includes('&') || foundValue(index) === value
    }
  }
  const found = test.ignoreCase ? foundValue(index).toLowerCase() : foundValue(index)
  switch (op) {
    case EQUALS:
      return found === value
    case START:
      return value !== '' && found.startsWith(value)
    case END:
      return value !== '' && found.endsWith(value)
    case CONTAINS:
      return value !== '' && found.includes(value)
    case HYPHEN:
      return found.startsWith(value) && (found.length === value.length || found[value.length] === '-')
    default:
      return found.split(/\s/).includes(value)
  }
}

/** Whether `word` is one of the words at `html[from…to)`; undefined if an entity there hides the answer. */
function hasWord(html: string, from: number, to: number, word: string): boolean | undefined {
  const first = word.charCodeAt(0)
  let isStart = true
  for (let i = from; i < to; i++) {
    const c = html.charCodeAt(i)
    if (c === 38 || c > 127) return undefined
    if (c === 32 || (c >= 9 && c <= 13)) isStart = true
    else {
      if (isStart && c === first && html.startsWith(word, i)) {
        const after = i + word.length
        if (after === to) return true
        if (after < to) {
          const next = html.charCodeAt(after)
          if (next === 32 || (next >= 9 && next <= 13)) return true
        }
      }
      isStart = false
    }
  }
  return false
}

/**
 * The element before this one under the same parent, or -1. Found by walking back: all steps for all elements of a page together
 * are no more than its tokens, and a page with a single `+` does not need the table of all siblings (10 µs).
 */
function previousOf(index: PageIndex, token: number): number {
  if (index.siblings !== undefined) return index.siblings.previous[token]!
  const { tag, parent } = index
  const mother = parent[token]!
  let at = token - 1
  while (at > mother && tag[at] === -1) at--
  if (at <= mother) return -1
  while (parent[at] !== mother) at = parent[at]!
  return at
}

function siblingsOf(index: PageIndex): Siblings {
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
