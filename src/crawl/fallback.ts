/**
 * Decides which pages use a browser although their route does not: pages that a site has blocked, on routes with
 * `fallback: 'browser'`.
 */
import type { ErrorCode } from '../core/error-table.ts'
import { LruSet } from '../core/lru-set.ts'
import type { Lease } from '../frontier/contract.ts'
import type { CompiledScraper } from './compile-scraper.ts'

export const TURNED_AWAY: ReadonlySet<ErrorCode> = new Set(['E_BLOCKED', 'E_CAPTCHA', 'E_FORBIDDEN'])
/** Pages remembered. One that is forgotten, or was blocked in another worker, is tried without a browser once more. */
const REMEMBERED_MAX = 10_000
/** Whatever happened before, and wherever: a page that reaches this attempt gets its last attempts in a browser. */
const ATTEMPT_IN_BROWSER = 3

export class Fallbacks {
  readonly #routes: CompiledScraper['routes']
  readonly #hasBrowsers: boolean
  readonly #isAtOnce: boolean
  #turnedAway: LruSet | undefined

  /** `isAtOnce`: an earlier crawl was blocked, so even the first attempt is made in a browser. */
  constructor({ routes }: CompiledScraper, hasBrowsers: boolean, isAtOnce = false) {
    this.#routes = routes
    this.#hasBrowsers = hasBrowsers
    this.#isAtOnce = isAtOnce
  }

  isInBrowser({ task, attempt }: Pick<Lease, 'task' | 'attempt'>): boolean {
    const { fetch, fallback } = this.#routes.get(task.route)?.definition ?? {}
    if (fetch === 'browser') return true
    if (fallback !== 'browser' || !this.#hasBrowsers) return false
    if (this.#isAtOnce) return true
    return attempt >= ATTEMPT_IN_BROWSER || this.#turnedAway?.has(task.id) === true
  }

  /** Called when an attempt has failed. */
  note({ task }: Pick<Lease, 'task'>, code: ErrorCode): void {
    if (!TURNED_AWAY.has(code) || this.#routes.get(task.route)?.definition.fallback !== 'browser') return
    this.#turnedAway ??= new LruSet(REMEMBERED_MAX)
    this.#turnedAway.add(task.id)
  }
}
