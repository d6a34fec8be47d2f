/** The errors of a run, grouped by code and class, in constant memory. */
import type { EventOf } from '../core/events.ts'
import { redactText } from '../core/redact-text.ts'

export interface ErrorGroup {
  code: string
  class: string
  /** Pages given up on, or items rejected. */
  count: number
  /** Tries that failed with it and were retried. */
  retries: number
  /** A URL where it happened. */
  example: string
  message: string
}

/** Further groups are merged into one called `other`. */
const GROUPS_MAX = 100
const OTHER = 'other'

export class ErrorGroups {
  readonly #groups = new Map<string, ErrorGroup>()

  /** For a page or a file; a try without an error, or one that was skipped, changes nothing. */
  recordTry({ outcome, error, url }: EventOf<'page'> | EventOf<'file'>): void {
    if (error === undefined || outcome === 'skipped') return
    const group = this.#groupOf(error.code, error.class, url, error.message)
    if (outcome === 'failed') group.count += 1
    else if (outcome === 'retried') group.retries += 1
  }

  recordInvalidItem({ url, problems }: EventOf<'item.invalid'>): void {
    this.#groupOf('E_ITEM_INVALID', 'item', url, problems[0] ?? 'invalid item').count += 1
  }

  /** Most frequent first. */
  list(): ErrorGroup[] {
    return [...this.#groups.values()]
      .map((group) => ({ ...group }))
      .sort((a, b) => b.count - a.count || b.retries - a.retries)
  }

  #groupOf(code: string, cls: string, url: string, message: string): ErrorGroup {
    const key = `${code} ${cls}`
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    const isOther = this.#groups.size >= GROUPS_MAX
    const group = this.#groups.get(isOther ? OTHER : key) ?? {
      code: isOther ? OTHER : code,
      class: isOther ? OTHER : cls,
      count: 0,
      retries: 0,
      example: redactText(url),
      message: redactText(message),
    }
    this.#groups.set(isOther ? OTHER : key, group)
    return group
  }
}
