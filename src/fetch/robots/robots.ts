/**
 * Robots: may this page be requested? Reads each origin's robots.txt once, according to RFC 9309.
 *
 *   2xx                     → its rules, for 24 h
 *   4xx, broken redirects   → everything is allowed, for 24 h
 *   429, 5xx, no answer     → nothing is allowed (`E_ROBOTS_UNREACHABLE`) until the file is requested again, 2 s to 5 min later;
 *                             rules read earlier stay in force until then
 *
 * Pages are not requested while the file answers with an error: their host is paused until the next request for the file, and
 * waiting costs them no attempt. If the host itself cannot be reached (`TELLING`), a page would fail in the same way: every
 * request for the file costs the page that caused it an attempt, and the others wait.
 */
import { LRUCache } from 'lru-cache'
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { Page } from '../../core/page.ts'
import { hostOf } from '../../core/url.ts'
import type { RateLimit } from '../contract.ts'
import { parseRobots, productToken, type RobotsRule, type RobotsRules } from './rules.ts'

interface RobotsOptions {
  userAgent: string
  /** Fetches the file and follows redirects; throws a `ScrapeError` with the status of a response that is not a page. */
  fetchRobots: (url: string, signal: AbortSignal) => Promise<Pick<Page, 'body' | 'redirects'>>
  /** Receives crawl-delays, and pauses for hosts whose file cannot be read. */
  rateLimit?: Pick<RateLimit, 'setDelay' | 'pause'>
  /** Longest Retry-After that is obeyed. */
  retryAfterMsMax?: number
  now?: () => number
}

export interface Robots extends AsyncDisposable {
  /**
   * Throws, or rejects with, `E_ROBOTS` or `E_ROBOTS_UNREACHABLE` if `url` may not be fetched. Answers synchronously if the
   * rules are known, so that a request takes its slot in the same turn of the crawl loop that saw it free.
   */
  check(url: string, signal: AbortSignal): Promise<void> | undefined
  /** The rules of the URL's origin. */
  rules(url: string, signal: AbortSignal): Promise<RobotsRules>
  /** Why `url` is allowed or not, for people to read. */
  explain(url: string, signal: AbortSignal): Promise<RobotsExplanation>
}

interface RobotsExplanation {
  robotsUrl: string
  isAllowed: boolean
  productToken: string
  /** The group that applies: our token, `*`, or undefined if the file has neither. */
  group: string | undefined
  /** The rule that decided; undefined if no rule matches, which means allowed. */
  rule: RobotsRule | undefined
  crawlDelayMs: number | undefined
  sitemaps: readonly string[]
}

/** RFC 9309 asks crawlers to read at least 500 KiB; the rest of a longer file is ignored. */
const ROBOTS_BYTES_MAX = 512 * 1024
const ROBOTS_REDIRECTS_MAX = 5

const RULES_MS = 86_400_000
const ASK_AGAIN_MS_MIN = 2000
const ASK_AGAIN_MS_MAX = 300_000
const RULES_BYTES_MAX = 64 * 1024 ** 2

/** Failures of the whole origin: the page would fail in the same way, and this code is more specific than ours. */
const TELLING: ReadonlySet<ErrorCode> = new Set([
  'E_TLS',
  'E_DNS',
  'E_CONNECTION',
  'E_RESOURCES',
  'E_PROXY',
  'E_TIMEOUT_CONNECT',
  'E_PRIVATE_ADDRESS',
  'E_URL_INVALID',
  'E_URL_SCHEME',
])
/** RFC 9309 2.3.1.2: a file that redirects endlessly is "unavailable", like a 404. */
const UNAVAILABLE: ReadonlySet<ErrorCode> = new Set(['E_REDIRECT_LIMIT', 'E_REDIRECT_BAD'])

/** What is known about an origin, and whether this page triggered the request. */
interface Known {
  state: OriginState
  isAsker: boolean
}

interface OriginState {
  /** The rules read last, if any. */
  rules: RobotsRules | undefined
  /** Why there are none now. */
  error: ScrapeError | undefined
  failures: number
  /** When to request the file again. */
  untilMs: number
  bytes: number
}

export function createRobots(options: RobotsOptions): Robots {
  const now = options.now ?? Date.now
  const token = productToken(options.userAgent)
  const allowAll = parseRobots('', token)
  // Bounded by size, not count: a 512 KiB file with 40,000 rules weighs as much as 10,000 common ones.
  const origins = new LRUCache<string, OriginState>({ maxSize: RULES_BYTES_MAX, sizeCalculation: (o) => 500 + o.bytes })
  const asking = new Map<string, Promise<OriginState>>()
  const stop = new AbortController()

  async function ask(origin: string, before: OriginState | undefined): Promise<OriginState> {
    try {
      const page = await options.fetchRobots(`${origin}/robots.txt`, stop.signal)
      if (page.redirects.length > ROBOTS_REDIRECTS_MAX) return read(allowAll, 0)
      const text = readText(page.body)
      return read(parseRobots(text, token), text.length * 4)
    } catch (error) {
      if (!(error instanceof ScrapeError) || error.verdict === 'halt') throw error
      const { status } = error.details
      if (error.code === 'E_RATE_LIMITED' && status === undefined) throw error // not requested: the host is paused
      if (error.code === 'E_PROXIES_DOWN') throw error // not requested: says nothing about the host
      if (UNAVAILABLE.has(error.code)) return read(allowAll, 0)
      if (status !== undefined && status >= 300 && status < 500 && status !== 429) return read(allowAll, 0)
      return unreachable(origin, error, before)
    }
  }

  function read(rules: RobotsRules, bytes: number): OriginState {
    return { rules, error: undefined, failures: 0, untilMs: now() + RULES_MS, bytes }
  }

  function unreachable(origin: string, cause: ScrapeError, before: OriginState | undefined): OriginState {
    const failures = (before?.failures ?? 0) + 1
    const waitMs = Math.min(ASK_AGAIN_MS_MAX, ASK_AGAIN_MS_MIN * 2 ** (failures - 1))
    const error = TELLING.has(cause.code)
      ? new ScrapeError(cause.code, cause.message, cause.details)
      : new ScrapeError('E_ROBOTS_UNREACHABLE', `robots.txt cannot be read: ${cause.message}`, { cause }) // no status: the page was not sent
    const namedMs = Math.min(cause.details.retryAfterMs ?? 0, options.retryAfterMsMax ?? Number.POSITIVE_INFINITY)
    const untilMs = now() + Math.max(waitMs, namedMs)
    if (before?.rules === undefined && error.verdict !== 'drop')
      options.rateLimit?.pause(hostOf(`${origin}/`), untilMs, `robots.txt: ${cause.code}`)
    return { rules: before?.rules, error, failures, untilMs, bytes: before?.bytes ?? 0 }
  }

  /** One request per origin, however many pages wait for it; it outlives each of them. */
  function askOnce(origin: string, before: OriginState | undefined): Promise<OriginState> {
    const running = asking.get(origin)
    if (running !== undefined) return running
    const asked = ask(origin, before)
      .then((state) => {
        origins.set(origin, state)
        return state
      })
      .finally(() => asking.delete(origin))
    asked.catch(() => {}) // the page that asked may have left
    asking.set(origin, asked)
    return asked
  }

  function stateOf(url: string, signal: AbortSignal): Known | Promise<Known> {
    const origin = originOf(url)
    const state = origins.get(origin)
    if (state !== undefined && state.untilMs > now()) return { state, isAsker: false }
    signal.throwIfAborted()
    const isAsker = !asking.has(origin)
    return untilAborted(askOnce(origin, state), signal).then((asked) => ({ state: asked, isAsker }))
  }

  function rulesIn({ state, isAsker }: Known, url: string): RobotsRules {
    const { rules, error } = state
    if (rules === undefined) throw atUrl(error!, url, { isAsker, askAgainInMs: Math.ceil(state.untilMs - now()) })
    if (rules.crawlDelayMs !== undefined) options.rateLimit?.setDelay(hostOf(url), rules.crawlDelayMs)
    return rules
  }

  function obey(rules: RobotsRules, url: string): void {
    const rule = rules.find(pathOf(url))
    if (rule === undefined || rule.isAllowed) return
    const notes = [`line ${rule.line} of ${originOf(url)}/robots.txt: ${rule.text}`]
    throw new ScrapeError('E_ROBOTS', `robots.txt forbids ${url}`, { url, notes })
  }

  async function rulesOf(url: string, signal: AbortSignal): Promise<RobotsRules> {
    return rulesIn(await stateOf(url, signal), url)
  }

  return {
    rules: rulesOf,
    check(url, signal) {
      if (pathOf(url) === '/robots.txt') return undefined
      const known = stateOf(url, signal)
      if (known instanceof Promise) return known.then((asked) => obey(rulesIn(asked, url), url))
      return void obey(rulesIn(known, url), url)
    },
    async explain(url, signal) {
      const { group, crawlDelayMs, sitemaps, find } = await rulesOf(url, signal)
      const rule = pathOf(url) === '/robots.txt' ? undefined : find(pathOf(url))
      const robotsUrl = `${originOf(url)}/robots.txt`
      return { robotsUrl, isAllowed: rule?.isAllowed ?? true, productToken: token, group, rule, crawlDelayMs, sitemaps }
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new ScrapeError('E_STOPPED', 'stopped while reading robots.txt'))
      await Promise.allSettled(asking.values())
    },
  }
}

/** The next attempt comes when the file is requested again: an earlier one would only meet the same remembered failure. */
function atUrl(error: ScrapeError, url: string, wait: { isAsker: boolean; askAgainInMs: number }) {
  const { code, message, details } = error
  const retryAfterMs = Math.max(1, wait.askAgainInMs)
  // Errors that waiting cannot fix (a private address, a bad certificate) apply to every page.
  if (wait.isAsker || error.verdict === 'drop') return new ScrapeError(code, message, { ...details, url, retryAfterMs })
  return new ScrapeError('E_RATE_LIMITED', `waits for robots.txt: ${message}`, { url, retryAfterMs })
}

function readText(body: Buffer): string {
  if (body.length <= ROBOTS_BYTES_MAX) return body.toString('utf8')
  const text = body.toString('utf8', 0, ROBOTS_BYTES_MAX)
  return text.slice(0, Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r'))) // a rule cut in half could forbid too much
}

function originOf(url: string): string {
  const end = url.indexOf('/', url.indexOf('//') + 2)
  return end === -1 ? url : url.slice(0, end)
}

function pathOf(url: string): string {
  const path = url.slice(originOf(url).length)
  const hash = path.indexOf('#')
  return (hash === -1 ? path : path.slice(0, hash)) || '/'
}

async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
