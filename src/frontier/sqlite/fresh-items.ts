/**
 * Committed items of this process that its reader has not taken yet, in order: saves reading back what was just written (1 % of a
 * page's CPU). The log's table has them too, so these may be dropped at any time, and a copy can never be wrong: a number is used
 * once, and its row never changes.
 */
import type { LoggedItem } from '../../core/item.ts'

/** Maximum kept for the reader; a reader further behind reads from the table. */
const FRESH_ITEMS_MAX = 1000
const FRESH_CHARS_MAX = 2_000_000

export class FreshItems {
  #items: LoggedItem[] = []
  #chars = 0
  #uncommitted: LoggedItem[] = []
  /** Nothing is kept in a process that does not read: the workers of a shared file leave that to their parent. */
  isRead = false

  add(item: LoggedItem): void {
    if (this.isRead) this.#uncommitted.push(item)
  }

  /** Called after each transaction: only committed items may be read. */
  ended(isCommitted: boolean): void {
    if (this.#uncommitted.length === 0) return
    const items = this.#uncommitted
    this.#uncommitted = []
    if (!isCommitted) return
    for (const item of items) {
      this.#items.push(item)
      this.#chars += item.json.length
    }
    if (this.#items.length > FRESH_ITEMS_MAX || this.#chars > FRESH_CHARS_MAX) this.#remove(this.#items.length)
  }

  /** The items right after `afterSeq`; empty if the next one is not here. */
  take(afterSeq: number, max: number): LoggedItem[] {
    this.isRead = true
    this.forget(afterSeq) // the table may have been read in the meantime
    if (this.#items[0]?.seq !== afterSeq + 1) return [] // others committed in between, or there was too much to keep
    let count = 1
    while (count < this.#items.length && count < max && this.#items[count]!.seq === afterSeq + 1 + count) count++
    return this.#remove(count)
  }

  /** Everything up to `seq` was read or confirmed. */
  forget(seq: number): void {
    let count = 0
    while (count < this.#items.length && this.#items[count]!.seq <= seq) count++
    if (count > 0) this.#remove(count)
  }

  #remove(count: number): LoggedItem[] {
    const removed = this.#items.splice(0, count)
    for (const item of removed) this.#chars -= item.json.length
    return removed
  }
}
