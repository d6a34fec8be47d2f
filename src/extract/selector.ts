/** CSS selectors, compiled once. Cheerio handles jQuery's extensions; selectors that are invalid or need a live page are an error. */
import { AttributeAction, parse, type Selector, SelectorType } from 'css-what'
import { LRUCache } from 'lru-cache'
import { ScrapeError } from '../core/errors.ts'
import {
  ALIASES,
  CHEERIO_PSEUDOS,
  LINK_ALIASES,
  LIVE_PSEUDOS,
  languageRanges,
  nthOf,
  SIMPLE_NTH,
} from './pseudo-classes.ts'
import { lowerCase } from './scan.ts'
import { knownTagId } from './tags.ts'

export const EXISTS = 0
export const EQUALS = 1
export const WORD = 2
export const START = 3
export const END = 4
export const CONTAINS = 5
export const HYPHEN = 6
/** Tests up to here are about an attribute. */
export const LAST_ATTRIBUTE_OP = HYPHEN
export const NOT = 7
export const IS = 8
export const HAS = 9
export const NTH = 10
export const NTH_LAST = 11
export const NTH_OF_TYPE = 12
export const NTH_LAST_OF_TYPE = 13
/** `:nth-child(an+b of S)` and `:nth-last-child(an+b of S)`. */
export const NTH_OF = 14
export const NTH_LAST_OF = 15
export const EMPTY = 16
export const ROOT = 17
export const SCOPE = 18
export const LANG = 19
/** Whether it is an HTML element. */
export const HTML = 20
const NEVER = 21

/** When the case of an attribute's value does not matter. */
const EXACT = 0
export const IGNORE = 1
/** Only on HTML elements. */
export const IGNORE_IN_HTML = 2
/** Only in quirks mode. */
export const IGNORE_IN_QUIRKS = 3

export interface Test {
  readonly op: number
  /** Attribute name, lower case. */
  readonly name: string
  readonly value: string
  readonly caseRule: number
  /** `value` in lower case. */
  readonly folded: string
  /** If the page has it, the value is spelt there as it is here. */
  readonly isPlain: boolean
  /** `[*|name]`: also with a prefix, in SVG and MathML. */
  readonly anyNamespace: boolean
  /** The selectors inside `:not(…)`, `:is(…)`, `:has(…)` and `:nth-child(… of …)`: any of these. */
  readonly list: SelectorList
  /** `:nth-…(an+b)`. */
  readonly a: number
  readonly b: number
  /** `:lang(…)`: subtags in lower case. */
  readonly languages: readonly (readonly string[])[]
  /** First of this test's columns in the matcher's memory. */
  readonly column: number
}

/** How a compound relates to the one before it, or, if it is the first, to the place (in `:has()`, to the element). */
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

/** Comma-separated. */
export type SelectorList = readonly (readonly Compound[])[]

export interface CompiledSelector {
  readonly css: string
  /** undefined if cheerio has to answer. */
  readonly alternatives: SelectorList | undefined
  readonly columns: number
  /** Begins with `+` or `~`: looks beside the place. */
  readonly looksBeside: boolean
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
  const compiler = new Compiler()
  let alternatives: SelectorList
  try {
    alternatives = compiler.list(parse(parseable(css)))
    if (alternatives.length === 0) throw new Error('it is empty')
  } catch (error) {
    throw invalid(css, error)
  }
  if (compiler.needsCheerio) return { css, alternatives: undefined, columns: 0, looksBeside: false }
  const looksBeside = alternatives.some(([first]) => first!.relation === NEXT || first!.relation === LATER)
  return { css, alternatives, columns: compiler.columns, looksBeside }
}

/**
 * What css-what does not read, said in another way: `:nth-child(2n of S)` is `:nth-child(2n):host-context(S)`, as the argument of
 * that one is read as selectors and it has no other use here; hexadecimal digits of escapes are in lower case.
 */
function parseable(css: string): string {
  if (!/\\|\bof\b|:host/i.test(css)) return css
  return css.replace(UNREADABLE, (all, hex?: string, host?: string, nth?: string, formula?: string) => {
    if (host !== undefined) throw unknown(host.slice(1))
    if (hex !== undefined) return all.toLowerCase()
    return nth === undefined ? all : `${nth}${formula}):host-context(`
  })
}

const UNREADABLE =
  /(\\[\da-f]{1,6})|\\[\s\S]|"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|(:host-context)|(:nth-(?:last-)?child\()([+\-\w\s]*?)\s+of\s+(?=[^\s)])/gi

const RELATIONS: Partial<Record<SelectorType, number>> = {
  [SelectorType.Descendant]: DESCENDANT,
  [SelectorType.Child]: CHILD,
  [SelectorType.Adjacent]: NEXT,
  [SelectorType.Sibling]: LATER,
}

const TEST: Test = {
  op: NEVER,
  name: '',
  value: '',
  caseRule: EXACT,
  folded: '',
  isPlain: true,
  anyNamespace: false,
  list: [],
  a: 0,
  b: 0,
  languages: [],
  column: -1,
}

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

const ASCII_SPACE = /[ \t\n\f\r]/

/** Compiles one selector, throwing what is wrong with it. */
class Compiler {
  columns = 0
  needsCheerio = false

  list(parsed: Selector[][]): Compound[][] {
    return parsed.map((tokens) => this.#complex(tokens))
  }

  #compound(relation: number): Compound {
    const looksFar = relation === DESCENDANT || relation === LATER
    return { relation, tag: '', tagId: -1, tests: [], column: looksFar ? this.columns++ : -1 }
  }

  #complex(tokens: Selector[]): Compound[] {
    let current = this.#compound(FIRST)
    const compounds = [current]
    for (const [i, token] of tokens.entries()) {
      const relation = RELATIONS[token.type]
      if (relation === undefined) {
        this.#add(current, token, tokens[i + 1])
        continue
      }
      if (i === tokens.length - 1) throw new Error('it ends with a combinator')
      if (i === 0) current.relation = relation
      else {
        current = this.#compound(relation)
        compounds.push(current)
      }
    }
    return compounds
  }

  #add(compound: Compound, token: Selector, next: Selector | undefined): void {
    const { tests } = compound
    switch (token.type) {
      case SelectorType.Universal:
      case SelectorType.Tag:
        if (token.namespace === '')
          tests.push(TEST) // every element of a page is in a namespace
        else if (token.namespace !== null && token.namespace !== '*') throw namespaceError(token.namespace)
        if (token.type === SelectorType.Tag) addTag(compound, lowerCase(token.name))
        break
      case SelectorType.Attribute: {
        const op = OPS[token.action]
        if (token.namespace !== null && token.namespace !== '*') throw namespaceError(token.namespace)
        if (op === undefined) this.needsCheerio = true
        else tests.push(attributeTest(op, token.name, token.value, token.ignoreCase, token.namespace))
        break
      }
      case SelectorType.Pseudo:
        this.#addPseudo(tests, token.name, token.data, next)
        break
      case SelectorType.PseudoElement:
        throw new Error(`pseudo-elements are not supported: ::${token.name}`)
      case SelectorType.Parent:
        this.needsCheerio = true
        break
      default:
        throw new Error('the column combinator (||) is not supported')
    }
  }

  #addPseudo(tests: Test[], name: string, data: Selector[][] | string | null, next: Selector | undefined): void {
    const alias = ALIASES.get(name) ?? LINK_ALIASES.get(name)
    if (CHEERIO_PSEUDOS.has(name)) this.needsCheerio = true
    else if (Array.isArray(data)) this.#addList(tests, name, data)
    else if (alias !== undefined && data === null) {
      if (ALIASES.has(name)) tests.push({ ...TEST, op: HTML })
      tests.push({ ...TEST, op: IS, list: this.list(parse(alias)) })
    } else if (name === 'lang' && data !== null)
      tests.push({ ...TEST, op: LANG, languages: languageRanges(data), column: this.columns++ })
    else if (data !== null) this.#addNth(tests, name, data, next)
    else if (name === 'empty') tests.push({ ...TEST, op: EMPTY, column: this.columns++ })
    else if (name === 'root') tests.push({ ...TEST, op: ROOT })
    else if (name === 'scope') tests.push({ ...TEST, op: SCOPE })
    else {
      const steps = SIMPLE_NTH.get(name)
      if (steps === undefined) throw unknown(name)
      for (const step of steps) tests.push({ ...TEST, op: NTH_OPS[step]!, a: 0, b: 1 })
    }
  }

  #addNth(tests: Test[], name: string, data: string, next: Selector | undefined): void {
    const op = NTH_OPS[name]
    if (op === undefined) throw unknown(name)
    const { a, b } = nthOf(data)
    if (next?.type !== SelectorType.Pseudo || next.name !== 'host-context' || !Array.isArray(next.data)) {
      tests.push({ ...TEST, op, a, b })
      return
    }
    const column = this.columns
    this.columns += 2
    tests.push({ ...TEST, op: op === NTH ? NTH_OF : NTH_LAST_OF, a, b, column, list: this.list(next.data) })
  }

  #addList(tests: Test[], name: string, data: Selector[][]): void {
    if (name === 'host-context' && (tests.at(-1)?.op === NTH_OF || tests.at(-1)?.op === NTH_LAST_OF)) return
    if (name === 'has') tests.push(this.#has(data))
    else if (name === 'not') tests.push({ ...TEST, op: NOT, list: this.list(data) })
    else if (name === 'is' || name === 'where' || name === 'matches')
      tests.push({ ...TEST, op: IS, list: this.list(data) })
    else throw unknown(name)
  }

  /** Every compound has a column: for what stands in its relation to a match of it. The first ones share theirs. */
  #has(data: Selector[][]): Test {
    const column = this.columns++
    const list = this.list(data.map(withoutScope))
    for (const compounds of list) {
      for (const compound of compounds) if (compound.column === -1) compound.column = this.columns++
      if (compounds[0]!.relation === FIRST) compounds[0]!.relation = DESCENDANT
      compounds[0]!.column = column
    }
    return { ...TEST, op: HAS, list, column }
  }
}

/** `:has(:scope > a)` is `:has(> a)` to cheerio and jQuery, and never matches in a browser. */
function withoutScope(tokens: Selector[]): Selector[] {
  const [first, second] = tokens
  const isScope = first?.type === SelectorType.Pseudo && first.name === 'scope'
  return isScope && second !== undefined && RELATIONS[second.type] !== undefined ? tokens.slice(1) : tokens
}

const NTH_OPS: Record<string, number> = {
  'nth-child': NTH,
  'nth-last-child': NTH_LAST,
  'nth-of-type': NTH_OF_TYPE,
  'nth-last-of-type': NTH_LAST_OF_TYPE,
}

function unknown(name: string): Error {
  return new Error(
    LIVE_PSEUDOS.has(name) ? `:${name} is not supported, it needs a live page` : `:${name} is not supported`,
  )
}

function namespaceError(namespace: string): Error {
  return new Error(`namespaces are not supported: ${namespace}|`)
}

function addTag(compound: Compound, name: string): void {
  if (compound.tag !== '' && compound.tag !== name) compound.tests.push(TEST)
  compound.tag = name
  const id = knownTagId(name)
  compound.tagId = id === -1 ? -2 : id
}

function attributeTest(
  op: number,
  attribute: string,
  value: string,
  ignoreCase: boolean | 'quirks' | null,
  namespace: string | null,
): Test {
  const name = lowerCase(attribute)
  if (op === WORD ? value === '' || ASCII_SPACE.test(value) : value === '' && op >= START && op <= CONTAINS) return TEST
  const caseRule =
    ignoreCase === 'quirks'
      ? IGNORE_IN_QUIRKS
      : ignoreCase === null && CASELESS.has(name)
        ? IGNORE_IN_HTML
        : ignoreCase === true
          ? IGNORE
          : EXACT
  const isPlain = !/[&\r\0]/.test(value)
  return { ...TEST, op, name, value, caseRule, folded: lowerCase(value), isPlain, anyNamespace: namespace === '*' }
}
