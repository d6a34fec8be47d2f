/** CSS selectors, compiled once. Cheerio handles those that this tier does not support; invalid ones are an error. */
import { AttributeAction, parse, type Selector, SelectorType } from 'css-what'
import { LRUCache } from 'lru-cache'
import { ScrapeError } from '../core/errors.ts'
import { knownTagId } from './tags.ts'

export const EXISTS = 0
export const EQUALS = 1
export const WORD = 2
export const START = 3
export const END = 4
export const CONTAINS = 5
export const HYPHEN = 6
export const NOT = 7
export const NTH_CHILD = 8
export const LAST_CHILD = 9

export interface Test {
  readonly op: number
  /** Attribute name, lower case. */
  readonly name: string
  readonly value: string
  readonly ignoreCase: boolean
  /** `:not(…)`: any of these. */
  readonly not: readonly Compound[]
  /** `:nth-child(an+b)`. */
  readonly a: number
  readonly b: number
}

/** How a compound relates to the one before it. */
export const FIRST = 0
export const DESCENDANT = 1
export const CHILD = 2
export const NEXT = 3
const LATER = 4

/** Simple selectors without a combinator between them: `a.next[href]`. */
export interface Compound {
  relation: number
  /** Lower case; empty for any. */
  tag: string
  /** The ID of a known tag name; -1 for any, -2 for a name that each page numbers itself. */
  tagId: number
  tests: Test[]
  /** Column of the matcher's memory, for far-reaching relations. */
  column: number
}

export interface CompiledSelector {
  readonly css: string
  /** The comma-separated list; undefined if cheerio has to answer. */
  readonly alternatives: readonly (readonly Compound[])[] | undefined
  readonly columns: number
  /** Begins with `>`. */
  readonly isRelative: boolean
}

/** Scrapers use dozens of selectors; one that builds them from data must not fill the memory. */
const cache = new LRUCache<string, CompiledSelector>({ max: 1000 })
/** The most recent one, without the cost of a lookup: handlers use the same selector for every element of a list. */
let latest: CompiledSelector | undefined

export function compile(css: string): CompiledSelector {
  if (latest !== undefined && latest.css === css) return latest
  let selector = cache.get(css)
  if (selector === undefined) {
    selector = compileNew(css)
    cache.set(css, selector)
  }
  latest = selector
  return selector
}

export function invalid(css: string, cause: unknown): ScrapeError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new ScrapeError('E_SELECTOR_INVALID', `${JSON.stringify(css)} is not a valid CSS selector: ${why}`, { cause })
}

function compileNew(css: string): CompiledSelector {
  let parsed: Selector[][]
  try {
    parsed = parse(css)
  } catch (error) {
    throw invalid(css, error)
  }
  if (parsed.length === 0) throw invalid(css, 'it is empty')
  const counter = { columns: 0 }
  const alternatives: Compound[][] = []
  for (const tokens of parsed) {
    const compounds = compoundsOf(tokens, counter)
    if (compounds === undefined) return { css, alternatives: undefined, columns: 0, isRelative: false }
    alternatives.push(compounds)
  }
  const isRelative = alternatives.some(([first]) => first!.relation === CHILD)
  return { css, alternatives, columns: counter.columns, isRelative }
}

const RELATIONS: Partial<Record<SelectorType, number>> = {
  [SelectorType.Descendant]: DESCENDANT,
  [SelectorType.Child]: CHILD,
  [SelectorType.Adjacent]: NEXT,
  [SelectorType.Sibling]: LATER,
}

function newCompound(relation: number, counter: { columns: number }): Compound {
  const looksFar = relation === DESCENDANT || relation === LATER
  return { relation, tag: '', tagId: -1, tests: [], column: looksFar ? counter.columns++ : -1 }
}

/** undefined: not supported by this tier. */
function compoundsOf(tokens: Selector[], counter: { columns: number }): Compound[] | undefined {
  let current = newCompound(FIRST, counter)
  const compounds = [current]
  for (const [i, token] of tokens.entries()) {
    const relation = RELATIONS[token.type]
    if (relation !== undefined) {
      if (i === 0) {
        if (relation !== CHILD) return undefined // `+ a` would look outside the scope
        current.relation = CHILD
        continue
      }
      current = newCompound(relation, counter)
      compounds.push(current)
      continue
    }
    if (!add(current, token)) return undefined
  }
  return compounds
}

/** Adds one simple selector; false if this tier does not support it. */
function add(compound: Compound, token: Selector): boolean {
  switch (token.type) {
    case SelectorType.Universal:
      return token.namespace === null || token.namespace === '*'
    case SelectorType.Tag: {
      if (token.namespace !== null) return false
      const name = token.name.toLowerCase()
      if (compound.tag !== '' && compound.tag !== name) return false
      compound.tag = name
      const id = knownTagId(name)
      compound.tagId = id === -1 ? -2 : id
      return true
    }
    case SelectorType.Attribute: {
      const op = OPS[token.action]
      if (op === undefined || token.namespace !== null) return false
      if (op === WORD && token.value === '') return false
      const name = token.name.toLowerCase()
      const ignoreCase = token.ignoreCase === true || (token.ignoreCase === null && CASELESS.has(name))
      const value = ignoreCase ? token.value.toLowerCase() : token.value
      compound.tests.push({ ...TEST, op, name, value, ignoreCase })
      return true
    }
    case SelectorType.Pseudo:
      return addPseudo(compound, token.name, token.data)
    default:
      return false
  }
}

const TEST: Test = { op: EXISTS, name: '', value: '', ignoreCase: false, not: [], a: 0, b: 0 }

const OPS: Partial<Record<AttributeAction, number>> = {
  [AttributeAction.Exists]: EXISTS,
  [AttributeAction.Equals]: EQUALS,
  [AttributeAction.Element]: WORD,
  [AttributeAction.Start]: START,
  [AttributeAction.End]: END,
  [AttributeAction.Any]: CONTAINS,
  [AttributeAction.Hyphen]: HYPHEN,
}

/** Attributes whose values HTML compares case-insensitively (css-select's list, from the HTML standard). */
const CASELESS = new Set(
  (
    'accept accept-charset align alink axis bgcolor charset checked clear codetype color compact declare defer dir direction ' +
    'disabled enctype face frame hreflang http-equiv lang language link media method multiple nohref noresize noshade nowrap ' +
    'readonly rel rev rules scope scrolling selected shape target text type valign valuetype vlink'
  ).split(' '),
)

function addPseudo(compound: Compound, name: string, data: Selector[][] | string | null): boolean {
  if (name === 'first-child' && data === null) compound.tests.push({ ...TEST, op: NTH_CHILD, a: 0, b: 1 })
  else if (name === 'last-child' && data === null) compound.tests.push({ ...TEST, op: LAST_CHILD })
  else if (name === 'nth-child' && typeof data === 'string') {
    const nth = nthOf(data)
    if (nth === undefined) return false
    compound.tests.push({ ...TEST, op: NTH_CHILD, a: nth.a, b: nth.b })
  } else if (name === 'not' && Array.isArray(data)) {
    const not: Compound[] = []
    for (const tokens of data) {
      const inner = newCompound(FIRST, { columns: 0 })
      for (const token of tokens) if (!add(inner, token)) return false
      not.push(inner)
    }
    if (not.length === 0) return false
    compound.tests.push({ ...TEST, op: NOT, not })
  } else return false
  return true
}

function nthOf(text: string): { a: number; b: number } | undefined {
  const formula = text.trim().toLowerCase()
  if (formula === 'odd') return { a: 2, b: 1 }
  if (formula === 'even') return { a: 2, b: 0 }
  if (/^\d{1,9}$/.test(formula)) return { a: 0, b: Number(formula) }
  const match = /^([+-]?\d{0,9})n(?:\s*([+-])\s*(\d{1,9}))?$/.exec(formula)
  if (match === null) return undefined
  const [, step = '', sign = '+', offset = '0'] = match
  const a = step === '' || step === '+' ? 1 : step === '-' ? -1 : Number(step)
  const b = Number(sign + offset)
  return a === 1 && b <= 0 ? undefined : { a, b }
}
