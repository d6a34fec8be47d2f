/** The links of one page that are left out, so that each is counted once, however often the page names it. */

/** A page that leaves out more than this is counted link by link. */
const REMEMBERED_MAX = 20_000

export class DroppedLinks {
  readonly #names = new Set<string>()

  /** False when it was left out before. */
  isFirst(name: string): boolean {
    if (this.#names.has(name)) return false
    if (this.#names.size < REMEMBERED_MAX) this.#names.add(name)
    return true
  }
}
