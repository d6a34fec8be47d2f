/**
 * Crawler traps: sites, or areas of sites, that never end. Detected by the shape of a URL, and by the content of pages so far.
 *
 *   by the URL alone    a path that repeats itself (/a/b/a/b/a/b), more folders or parameters than people write
 *   by content          the same content under many URLs · pages of one shape in which only numbers and dates change ·
 *                       a path where the query changes nothing · ever new combinations of parameters
 *
 * Its knowledge is a hint, not state of the run: each process learns on its own, and learns again after a resume, at the cost of
 * some pages. It may forget, so its memory is bounded.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { LruSet } from '../../core/lru-set.ts'
import type { NotFetchedReason } from '../../core/not-fetched.ts'

/** Heritrix stops at the third repetition, too; real paths repeat a folder twice at most (`/en/en/`). */
const REPEATS_MAX = 2
/** Consecutive or not: `/a/x/a/y/a/z/a` grows as well. */
const OCCURRENCES_MAX = 3
const SEGMENTS_MAX = 20
const PARAMETERS_MAX = 12
/** How many pages with the same content have their links followed. */
const COPIES_MAX = 2
/** How many pages of one shape may differ only in numbers and dates. Generous, since tables of numbers look like this, too. */
const LIKENESSES_MAX = 20
/** How many pages of one path, with different queries, must have the same content before its queries count as meaningless. */
const PROBES = 3
/** Maximum number of sets of parameter names per path. Ten filters make 1,024 of them, all showing the same products. */
const COMBINATIONS_MAX = 24
const REMEMBERED_MAX = 20_000

/** Session ids in a URL: if kept, they would make every page new each time. */
const SESSION_PARAMETER = /^(?:phpsessid|jsessionid|aspsessionid\w*|asp\.net_sessionid|cfid|cftoken|zenid|oscsid)$/i
/** Either a session id or the id of an object (`article.php?sid=12`): the length of the value decides. */
const SESSION_OR_THING = /^(?:s|sid|s_id|sess|session|session_?id|sess_?id)$/i
const SESSION_CHARS_MIN = 16
const SESSION_IN_PATH = /;jsessionid=[^/?#]*/i

/** The URL without a session id. */
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

interface PageContent {
  /** Visible text. */
  text: string
  /** Also distinguishes pages: a gallery has the same words on every page. */
  images: readonly string[]
}

interface Seen {
  first: string
  count: number
}

interface PathMemory {
  /** Content of the latest page. */
  content: string | undefined
  /** Pages read, and links queued. */
  pages: number
  queued: number
  /** Two pages had different content: the query is meaningful here. */
  isTrusted: boolean
  combinations: Set<string>
}

/**
 * follow: yes · refuse: no, with the reason · wait: a few pages of the same path, with other queries, are in flight and will
 * decide.
 *
 * Without `wait`, a page with fifty links, each with a new session id, would fill the queue before the second one is read.
 */
type Advice = { kind: 'follow' | 'wait' } | ({ kind: 'refuse' } & Refusal)

export interface Refusal {
  reason: NotFetchedReason
  /** For the user. */
  why: string
}

const FOLLOW: Advice = { kind: 'follow' }
const WAIT: Advice = { kind: 'wait' }

export class TrapGuard {
  readonly #contents = new LRUCache<string, Seen>({ max: REMEMBERED_MAX })
  readonly #likenesses = new LRUCache<string, Seen>({ max: REMEMBERED_MAX })
  readonly #paths = new LRUCache<string, PathMemory>({ max: REMEMBERED_MAX })
  readonly #handedOut = new LruSet(REMEMBERED_MAX)

  /** Whether to follow a link. Remembers links that are followed. */
  judge(url: string): Advice {
    const parsed = new URL(url)
    const names = [...parsed.searchParams.keys()]
    const why = pathTrap(parsed.pathname) ?? parameterTrap(names)
    if (why !== undefined) return { kind: 'refuse', reason: 'trap', why }
    if (this.#handedOut.has(url)) return FOLLOW // already queued, so following it again changes nothing
    const key = pathKey(parsed)
    if (names.length === 0 && !key.includes('*')) return FOLLOW
    const advice = this.#judgePath(parsed, names, this.#pathOf(key))
    if (advice.kind === 'follow') this.#handedOut.add(url)
    return advice
  }

  /** Learns from a page. Returns why its links are not followed, or undefined. */
  read(url: string, page: PageContent): Refusal | undefined {
    const images = page.images.join('\n')
    const content = hash('sha256', `${page.text}\n${images}`, 'base64url')
    this.#learn(this.#pathOf(pathKey(new URL(url))), content)
    const copy = remember(this.#contents, content, url)
    if (copy.count > COPIES_MAX) return { reason: 'copy', why: `repeats the content of ${copy.first}` }
    const likeness = hash('sha256', `${shapeOf(url)}\n${foldText(page.text)}\n${images}`, 'base64url')
    const like = remember(this.#likenesses, likeness, url)
    if (like.count > LIKENESSES_MAX) return { reason: 'trap', why: `only numbers and dates differ from ${like.first}` }
    return undefined
  }

  #judgePath({ pathname }: URL, names: readonly string[], path: PathMemory): Advice {
    const combination = names.toSorted().join('&')
    if (path.combinations.size >= COMBINATIONS_MAX && !path.combinations.has(combination))
      return {
        kind: 'refuse',
        reason: 'facets',
        why: `more than ${COMBINATIONS_MAX} combinations of parameters at ${pathname}`,
      }
    if (!path.isTrusted) {
      if (path.pages >= PROBES)
        return { kind: 'refuse', reason: 'copy', why: `${path.pages} pages of ${pathname} all said the same` }
      if (path.queued >= PROBES) return WAIT
    }
    path.combinations.add(combination)
    path.queued++
    return FOLLOW
  }

  #learn(path: PathMemory, content: string): void {
    path.pages++
    if (path.content !== undefined && path.content !== content) path.isTrusted = true
    path.content = content
  }

  #pathOf(key: string): PathMemory {
    const known = this.#paths.get(key)
    if (known !== undefined) return known
    const fresh = { content: undefined, pages: 0, queued: 0, isTrusted: false, combinations: new Set<string>() }
    this.#paths.set(key, fresh)
    return fresh
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
  const counts = new Map<string, number>()
  for (const segment of segments) counts.set(segment, (counts.get(segment) ?? 0) + 1)
  if (Math.max(0, ...counts.values()) > OCCURRENCES_MAX) return 'the path repeats itself'
  for (let length = 1; length * (REPEATS_MAX + 1) <= segments.length; length++) {
    if (hasRepeats(segments, length)) return 'the path repeats itself'
  }
  return undefined
}

/** Whether a sequence of `length` segments repeats more than `REPEATS_MAX` times in a row. */
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

/** Long words of mixed letters and digits are ids of sessions or of objects; the content decides which. */
const TOKEN = /(?<![A-Za-z0-9])(?=[A-Za-z0-9]{0,63}\d)(?=[A-Za-z0-9]{0,63}[A-Za-z])[A-Za-z0-9]{16,}/g

function pathKey(url: URL): string {
  return `${url.host}${url.pathname.replace(TOKEN, '*')}`
}

/** `/calendar/2031/05?day=7` → `/calendar/0/0?day` */
function shapeOf(url: string): string {
  const parsed = new URL(url)
  const path = pathKey(parsed).replace(/\d+/g, '0')
  return `${path}?${[...parsed.searchParams.keys()].sort().join('&')}`
}

/** Endless calendars exist in other languages, too. */
const LANGUAGES = ['en', 'de', 'fr', 'it', 'es', 'pt', 'nl', 'pl', 'cs', 'sv', 'da', 'nb', 'fi', 'tr', 'ru', 'uk', 'el']
let dateWords: ReadonlySet<string> | undefined

/** Names of months and days, long and short, in lower case; created on first use. */
function dateWordsOf(): ReadonlySet<string> {
  const words = new Set<string>()
  for (const language of LANGUAGES) {
    for (const style of ['long', 'short'] as const) {
      const format = new Intl.DateTimeFormat(language, { month: style, weekday: style, timeZone: 'UTC' })
      for (let month = 0; month < 12; month++) {
        for (const { type, value } of format.formatToParts(Date.UTC(2026, month, month + 1)))
          if (type === 'month' || type === 'weekday') words.add(value.toLowerCase().replace('.', ''))
      }
    }
  }
  return words
}

/** Also splits words joined by markup without spaces: `calendarJanuary`. */
const WORD = /\p{Lu}+(?!\p{Ll})|\p{L}\p{Ll}*/gu

/** A trap is recognisable at the top of the page; the rest of a long one is not worth the time. */
const FOLDED_CHARS_MAX = 20_000

function foldText(text: string): string {
  dateWords ??= dateWordsOf()
  return text
    .slice(0, FOLDED_CHARS_MAX)
    .replace(TOKEN, '*')
    .replace(/\d+/g, '0')
    .replace(WORD, (word) => (dateWords!.has(word.toLowerCase()) ? '0' : word))
}
