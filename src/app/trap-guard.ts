/**
 * Traps: sites, or corners of sites, that never end. Told by the shape of a URL, and by what its pages said so far.
 *
 *   by the URL alone    a path that repeats itself (/a/b/a/b/a/b), more folders or parameters than people write
 *   by what was read    the same content under many URLs · pages of one shape in which only numbers and dates change ·
 *                       a path where the query changes nothing · ever new combinations of parameters
 *
 * What it knows is a hint, not state of the run: each process learns by itself, and after a resume learns again, at the price
 * of some pages. It may forget; so its memory is bounded.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** Heritrix stops at the third repetition, too; real paths repeat a folder twice at most (`/en/en/`). */
const REPEATS_MAX = 2
const SEGMENTS_MAX = 20
const PARAMETERS_MAX = 12
/** Pages with the same content whose links are followed. */
const COPIES_MAX = 3
/** Pages of one shape that differ in numbers and dates only. Generous: tables of numbers look like this, too. */
const LIKENESSES_MAX = 20
/** Pages of one path, with different queries, that must all have said the same before its queries count as meaningless. */
const QUERIES_PROOF = 6
/** Sets of parameter names at one path. Ten filters make 1,024 of them, all showing the same products. */
const COMBINATIONS_MAX = 24
const REMEMBERED_MAX = 20_000

/** Names of a visit in a URL: kept, they would make every page new each time. */
const SESSION_PARAMETER = /^(?:phpsessid|jsessionid|aspsessionid\w*|asp\.net_sessionid|cfid|cftoken|zenid|oscsid)$/i
/** Names of a visit or of a thing (`article.php?sid=12`): the length of the value tells which. */
const SESSION_OR_THING = /^(?:s|sid|s_id|sess|session|session_?id|sess_?id)$/i
const SESSION_CHARS_MIN = 16
const SESSION_IN_PATH = /;jsessionid=[^/?#]*/i

/** The URL without the name of a visit. */
export function withoutSession(url: string): string {
  if (!/[?;]/.test(url)) return url
  const parsed = new URL(url)
  if (SESSION_IN_PATH.test(parsed.pathname)) parsed.pathname = parsed.pathname.replace(SESSION_IN_PATH, '')
  for (const [name, value] of [...parsed.searchParams]) {
    const isVisit = SESSION_PARAMETER.test(name) || (SESSION_OR_THING.test(name) && value.length >= SESSION_CHARS_MIN)
    if (isVisit) parsed.searchParams.delete(name)
  }
  return parsed.href
}

export interface PageContent {
  /** Visible text. */
  text: string
  /** What else tells pages apart: a gallery has the same words on every page. */
  images: readonly string[]
}

interface Seen {
  first: string
  count: number
}

interface PathMemory {
  /** The content of all pages so far; undefined once two differed. */
  content: string | undefined
  pages: number
  combinations: Set<string>
}

export class TrapGuard {
  readonly #contents = new LRUCache<string, Seen>({ max: REMEMBERED_MAX })
  readonly #likenesses = new LRUCache<string, Seen>({ max: REMEMBERED_MAX })
  readonly #paths = new LRUCache<string, PathMemory>({ max: REMEMBERED_MAX })

  /** Why a link is not followed, or undefined. */
  whyNot(url: string): string | undefined {
    const parsed = new URL(url)
    const names = [...parsed.searchParams.keys()]
    return pathTrap(parsed.pathname) ?? parameterTrap(names) ?? this.#queryTrap(parsed, names)
  }

  /** Takes notice of a page. Says why its links are not followed, or undefined. */
  read(url: string, page: PageContent): string | undefined {
    const images = page.images.join('\n')
    const content = hash('sha256', `${page.text}\n${images}`, 'base64url')
    this.#rememberPath(new URL(url), content)
    const copy = remember(this.#contents, content, url)
    if (copy.count > COPIES_MAX) return `repeats the content of ${copy.first}`
    const likeness = hash('sha256', `${shapeOf(url)}\n${foldText(page.text)}\n${images}`, 'base64url')
    const like = remember(this.#likenesses, likeness, url)
    if (like.count > LIKENESSES_MAX) return `only numbers and dates differ from ${like.first}`
    return undefined
  }

  #queryTrap(url: URL, names: readonly string[]): string | undefined {
    const memory = this.#paths.get(pathKey(url))
    if (memory === undefined) return undefined
    if (memory.pages >= QUERIES_PROOF && memory.content !== undefined)
      return `${memory.pages} pages of ${url.pathname} said the same`
    const combination = names.toSorted().join('&')
    if (memory.combinations.size >= COMBINATIONS_MAX && !memory.combinations.has(combination))
      return `more than ${COMBINATIONS_MAX} combinations of parameters at ${url.pathname}`
    return undefined
  }

  #rememberPath(url: URL, content: string): void {
    const key = pathKey(url)
    const memory = this.#paths.get(key) ?? { content, pages: 0, combinations: new Set<string>() }
    memory.pages++
    if (memory.content !== content) memory.content = undefined
    if (memory.combinations.size <= COMBINATIONS_MAX)
      memory.combinations.add([...url.searchParams.keys()].sort().join('&'))
    this.#paths.set(key, memory)
  }
}

function remember(memory: LRUCache<string, Seen>, key: string, url: string): Seen {
  const seen = memory.get(key) ?? { first: url, count: 0 }
  seen.count++
  memory.set(key, seen)
  return seen
}

function pathTrap(path: string): string | undefined {
  const segments = path.split('/').filter(Boolean)
  if (segments.length > SEGMENTS_MAX) return `more than ${SEGMENTS_MAX} folders deep`
  for (let length = 1; length * (REPEATS_MAX + 1) <= segments.length; length++) {
    if (hasRepeats(segments, length)) return 'the path repeats itself'
  }
  return undefined
}

/** A run of `length` segments that stands more than `REPEATS_MAX` times in a row. */
function hasRepeats(segments: readonly string[], length: number): boolean {
  let same = 0
  for (let i = length; i < segments.length; i++) {
    same = segments[i] === segments[i - length] ? same + 1 : 0
    if (same === length * REPEATS_MAX) return true
  }
  return false
}

function parameterTrap(names: readonly string[]): string | undefined {
  if (names.length > PARAMETERS_MAX) return `more than ${PARAMETERS_MAX} parameters`
  return undefined
}

/** Long mixed words in a path are names of visits or of things; which of them, the content tells. */
const TOKEN = /(?=[\w-]{0,63}\d)(?=[\w-]{0,63}[a-z])[\w-]{16,}/gi

function pathKey(url: URL): string {
  return `${url.host}${url.pathname.replace(TOKEN, '*')}`
}

/** `/calendar/2031/05?day=7` → `/calendar/0/0?day` */
function shapeOf(url: string): string {
  const parsed = new URL(url)
  const path = pathKey(parsed).replace(/\d+/g, '0')
  return `${path}?${[...parsed.searchParams.keys()].sort().join('&')}`
}

const DATE_WORDS =
  /\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)(?:uary|ruary|ch|il|e|y|ust|t(?:ember)?|ober|ember|(?:s|nes|rs|ur)?day)?\b/gi

/** Traps show themselves at the top of the page; the rest of a long one is not worth the time. */
const FOLDED_CHARS_MAX = 20_000

function foldText(text: string): string {
  return text.slice(0, FOLDED_CHARS_MAX).replace(DATE_WORDS, '0').replace(/\d+/g, '0').replace(TOKEN, '*')
}
