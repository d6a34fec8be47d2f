/**
 * Runs compiled selectors over a page's index, from right to left. The time is linear in the page for every selector: results for
 * all ancestors or all earlier siblings are remembered, so no chain is walked twice.
 */
import { attributeOf } from './attributes.ts'
import { matchesAttribute } from './match-attribute.ts'
import { isLanguageInRange } from './pseudo-classes.ts'
import { lowerCase } from './scan.ts'
import {
  CHILD,
  type CompiledSelector,
  type Compound,
  DESCENDANT,
  EMPTY,
  FIRST,
  HAS,
  HTML,
  IS,
  LANG,
  LAST_ATTRIBUTE_OP,
  NEXT,
  NOT,
  NTH,
  NTH_LAST,
  NTH_LAST_OF,
  NTH_LAST_OF_TYPE,
  NTH_OF,
  NTH_OF_TYPE,
  ROOT,
  SCOPE,
  type SelectorList,
  type Test,
} from './selector.ts'
import { lastPosition, previousOf, siblingsOf, typePositionsOf } from './siblings.ts'
import { knownTagId, TAG } from './tags.ts'
import { addTextAt, isVoid, textEnd, textStart } from './text.ts'
import { ELEMENT, type PageIndex } from './tree-builder.ts'

/** Tokens of the matching elements inside `scope` (-1: the page), in page order. */
export function findAll(index: PageIndex, selector: CompiledSelector, scope: number): number[] {
  const found: number[] = []
  prepare(index, selector, scope)
  for (let token = nextMatch(index, selector, scope + 1); token !== -1; ) {
    found.push(token)
    token = nextMatch(index, selector, index.hasTemplates ? after(index, token) : token + 1)
  }
  return found
}

/** The first match, or -1. */
export function findFirst(index: PageIndex, selector: CompiledSelector, scope: number): number {
  prepare(index, selector, scope)
  return nextMatch(index, selector, scope + 1)
}

// The state of one search. Searches do not overlap, so module variables are enough and nothing is allocated.
let place = -1
/** What a search looks at: the elements from this token up to the other. */
let start = 0
let stop = 0
let stamp = 0
/**
 * Columns with a number per element. Of those for yes and no: `2 * stamp` for no, `2 * stamp + 1` for yes; other numbers are from
 * older searches. Columns for positions hold negative numbers, so that none of them is taken for an answer later.
 */
let memory = new Int32Array(4096)
/** The stamps of columns that are filled in for all elements at once. */
let filled = new Int32Array(16)

function prepare(index: PageIndex, selector: CompiledSelector, scope: number): void {
  place = scope
  start = scope + 1
  stop = scope === -1 ? index.count : index.close[scope]!
  if (selector.looksBeside && scope !== -1) {
    const mother = index.parent[scope]!
    start = mother + 1
    stop = mother === -1 ? index.count : index.close[mother]!
  }
  const { columns } = selector
  if (columns === 0) return
  const size = columns * index.count
  if (memory.length < size || (memory.length > 1_000_000 && size < 65_536))
    memory = new Int32Array(Math.max(4096, size))
  if (filled.length < columns) filled = new Int32Array(columns)
  if (stamp === 1_000_000_000) {
    memory.fill(0)
    filled.fill(0)
    stamp = 0
  }
  stamp++
}

function nextMatch(index: PageIndex, selector: CompiledSelector, from: number): number {
  const alternatives = selector.alternatives!
  const { tag } = index
  if (alternatives.length !== 1 || index.hasTemplates) return nextMatchOfAny(index, selector, from)
  const compounds = alternatives[0]!
  const last = compounds.length - 1
  const wanted = tagIdIn(index, compounds[last]!)
  if (wanted === -2) return -1
  const end = stop
  for (let token = from; token < end; token++) {
    if (wanted === -1 ? tag[token] !== -1 : tag[token] === wanted) {
      if (matches(index, compounds, last, token)) return token
    }
  }
  return -1
}

function nextMatchOfAny(index: PageIndex, selector: CompiledSelector, from: number): number {
  const { tag, hasTemplates } = index
  const alternatives = selector.alternatives!
  const inside = selector.looksBeside && place !== -1 ? index.close[place]! : stop
  for (let token = from; token < stop; token = hasTemplates ? after(index, token) : token + 1) {
    if (tag[token] === -1) continue
    for (const compounds of alternatives) {
      if (token >= inside && compounds[0]!.relation < NEXT) continue
      if (matches(index, compounds, compounds.length - 1, token)) return token
    }
  }
  return -1
}

/** The next token to look at: the content of a template is not part of the page. */
function after({ tag, kind, close }: PageIndex, token: number): number {
  return tag[token] === TAG.template && kind[token] === ELEMENT ? close[token]! : token + 1
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
      if (previous === -1) return false
      return i === 0 ? previous === place : matches(index, compounds, i - 1, previous)
    }
    default:
      if (i > 0) return matchesFar(index, compounds, i, token)
      return compound.relation === DESCENDANT || isAfterPlace(index, token)
  }
}

function isAfterPlace({ parent }: PageIndex, token: number): boolean {
  return place !== -1 && token > place && parent[token] === parent[place]
}

function matchesAny(index: PageIndex, list: SelectorList, token: number): boolean {
  for (let i = 0; i < list.length; i++) if (matches(index, list[i]!, list[i]!.length - 1, token)) return true
  return false
}

/** Whether any ancestor (or earlier sibling) matches the part left of compound `i`. */
function matchesFar(index: PageIndex, compounds: readonly Compound[], i: number, token: number): boolean {
  const { relation, column } = compounds[i]!
  const isDescendant = relation === DESCENDANT
  const chain = isDescendant ? index.parent : siblingsOf(index).previous
  const end = isDescendant && place !== -1 ? chain[place]! : -1
  const base = column * index.count
  const yes = stamp * 2 + 1
  let answer = false
  let at = chain[token]!
  for (; at > end; at = chain[at]!) {
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
  const { op } = test
  if (op <= LAST_ATTRIBUTE_OP) return matchesAttribute(index, test, token)
  switch (op) {
    case NOT:
      return !matchesAny(index, test.list, token)
    case IS:
      return matchesAny(index, test.list, token)
    case HAS:
      return matchesHas(index, test, token)
    case NTH:
      return isNth(test, siblingsOf(index).position[token]!)
    case NTH_LAST:
      return isNth(test, lastPosition(index, token))
    case NTH_OF_TYPE:
      return isNth(test, typePositionsOf(index).first[token]!)
    case NTH_LAST_OF_TYPE:
      return isNth(test, typePositionsOf(index).last[token]!)
    case NTH_OF:
    case NTH_LAST_OF:
      return matchesNthOf(index, test, token)
    case EMPTY:
      return matchesEmpty(index, test, token)
    case ROOT:
      return index.parent[token] === -1
    case SCOPE:
      return place === -1 ? index.parent[token] === -1 : token === place
    case HTML:
      return index.kind[token]! >> 4 === 0
    case LANG:
      return matchesLanguage(index, test, token)
    default:
      return false
  }
}

function isNth({ a, b }: Test, position: number): boolean {
  const steps = position - b
  return a === 0 ? steps === 0 : steps % a === 0 && steps / a >= 0
}

function matchesHas(index: PageIndex, test: Test, token: number): boolean {
  if (filled[test.column] !== stamp) {
    filled[test.column] = stamp
    for (const compounds of test.list) fillHas(index, compounds)
  }
  return memory[test.column * index.count + token] === stamp * 2 + 1
}

/**
 * Goes from the elements that match the last compound to those they stand in its relation to; of these, on from the ones that match
 * the compound before; and so to the elements that have such a match. One pass over the page for each compound.
 */
function fillHas(index: PageIndex, compounds: readonly Compound[]): void {
  const { tag, count, hasTemplates } = index
  const yes = stamp * 2 + 1
  for (let i = compounds.length - 1; i >= 0; i--) {
    const compound = compounds[i]!
    const wanted = tagIdIn(index, compound)
    if (wanted === -2) return
    const found = i + 1 < compounds.length ? compounds[i + 1]!.column * count : -1
    for (let token = start; token < stop; token = hasTemplates ? after(index, token) : token + 1) {
      if (wanted === -1 ? tag[token] === -1 : tag[token] !== wanted) continue
      if (found !== -1 && memory[found + token] !== yes) continue
      if (matchesCompound(index, compound, token)) markRelated(index, compound, token)
    }
  }
}

function markRelated(index: PageIndex, { relation, column }: Compound, token: number): void {
  const base = column * index.count
  const yes = stamp * 2 + 1
  const { parent } = index
  if (relation === CHILD) {
    if (parent[token] !== -1) memory[base + parent[token]!] = yes
  } else if (relation === NEXT) {
    const previous = previousOf(index, token)
    if (previous !== -1) memory[base + previous] = yes
  } else {
    const isDescendant = relation === DESCENDANT
    const chain = isDescendant ? parent : siblingsOf(index).previous
    const end = isDescendant && place !== -1 ? chain[place]! : -1
    for (let at = chain[token]!; at > end && memory[base + at] !== yes; at = chain[at]!) memory[base + at] = yes
  }
}

function matchesNthOf(index: PageIndex, test: Test, token: number): boolean {
  if (token < start) return matchesNthOfAtPlace(index, test)
  const { count, parent } = index
  const positions = test.column * count
  const totals = positions + count + 1 // by parent, which may be -1
  if (filled[test.column] !== stamp) {
    filled[test.column] = stamp
    fillNthOf(index, test, positions, totals)
  }
  const position = -memory[positions + token]!
  if (position === 0) return false
  return isNth(test, test.op === NTH_OF ? position : -memory[totals + parent[token]!]! - position + 1)
}

/** Elements the selector does not match have position 0. */
function fillNthOf(index: PageIndex, test: Test, positions: number, totals: number): void {
  const { tag, parent, count } = index
  memory[totals + start - 1] = 0
  for (let token = start; token < stop; token++) {
    if (tag[token] === -1) continue
    if (token + 1 < count) memory[totals + token] = 0 // the last token has no children, and the next column begins there
    memory[positions + token] = matchesAny(index, test.list, token) ? --memory[totals + parent[token]!]! : 0
  }
}

function matchesNthOfAtPlace(index: PageIndex, test: Test): boolean {
  if (!matchesAny(index, test.list, place)) return false
  const { previous, lastChild } = siblingsOf(index)
  const isFirst = test.op === NTH_OF
  const end = isFirst ? -1 : place
  let position = 1
  for (let at = isFirst ? previous[place]! : lastChild[index.parent[place]! + 1]!; at !== end; at = previous[at]!)
    if (matchesAny(index, test.list, at)) position++
  return isNth(test, position)
}

/** Remembered: a parent of many children that begins with many comments is asked once per child. */
function matchesEmpty(index: PageIndex, test: Test, token: number): boolean {
  const at = test.column * index.count + token
  if (memory[at]! >> 1 !== stamp) memory[at] = stamp * 2 + (isEmpty(index, token) ? 1 : 0)
  return memory[at] === stamp * 2 + 1
}

function isEmpty(index: PageIndex, token: number): boolean {
  const { tag, kind, close } = index
  if (isVoid(kind[token]!) || (tag[token] === TAG.template && kind[token] === ELEMENT)) return true
  let hasText = false
  const text = { add: (piece: string) => (hasText ||= piece !== '') }
  for (let t = token; t < close[token]!; t++) {
    if (t > token && tag[t] !== -1) return false
    if (textStart(index, t) < textEnd(index, t) || t > token) addTextAt(index, t, text)
    if (hasText) return false
  }
  return true
}

/** The language is that of the innermost element that says one. Elements outside the place count, too: they are not selected. */
function matchesLanguage(index: PageIndex, test: Test, token: number): boolean {
  const { parent } = index
  const base = test.column * index.count
  const yes = stamp * 2 + 1
  let answer: boolean | undefined
  let at = token
  for (; at !== -1; at = parent[at]!) {
    const known = memory[base + at]!
    if (known >> 1 === stamp) {
      answer = known === yes
      break
    }
    const language =
      (index.kind[at]! >> 4 > 0 ? attributeOf(index, at, 'xml:lang') : undefined) ?? attributeOf(index, at, 'lang')
    if (language === undefined) continue
    answer = speaks(test, language)
    memory[base + at] = answer ? yes : yes - 1
    break
  }
  answer ??= speaks(test, pageLanguage(index))
  for (let passed = token; passed !== at; passed = parent[passed]!) memory[base + passed] = answer ? yes : yes - 1
  return answer
}

function speaks({ languages }: Test, language: string): boolean {
  const folded = lowerCase(language)
  return languages.some((range) => isLanguageInRange(folded, range))
}

const META = knownTagId('meta')
const pageLanguages = new WeakMap<PageIndex, string>()

/** `<meta http-equiv=content-language>`, for pages whose elements do not say a language. */
function pageLanguage(index: PageIndex): string {
  let language = pageLanguages.get(index)
  if (language !== undefined) return language
  language = ''
  for (let token = 0; token < index.count; token++) {
    if (index.tag[token] !== META) continue
    if (lowerCase(attributeOf(index, token, 'http-equiv') ?? '') !== 'content-language') continue
    const content = attributeOf(index, token, 'content')?.trim() ?? ''
    if (content !== '' && !content.includes(',')) language = content.split(/\s/)[0]!
  }
  pageLanguages.set(index, language)
  return language
}
