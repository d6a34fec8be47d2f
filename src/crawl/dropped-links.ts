/** The skipped links of one page, so that each is counted once, however often it appears on the page. */

/** Beyond this many skipped links, every occurrence counts. */
const REMEMBERED_MAX = 20_000

export class DroppedLinks {
  readonly #names = new Set<string>()

  /** False if it was skipped before. */
  isFirst(name: string): boolean {
    if (this.#names.has(name)) return false
    if (this.#names.size < REMEMBERED_MAX) this.#names.add(name)
    return true
  }
}
