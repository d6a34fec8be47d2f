/**
 * Equal bytes are stored once, including those that records do not know yet because they were stored a moment ago or are being
 * stored now. Of two concurrent jobs with the same bytes, the second waits for the first; if that one fails, the second stores
 * them.
 */
import { LRUCache } from 'lru-cache'

type Find = (sha256: string, place: string) => Promise<string | undefined>

const RECENT_MAX = 10_000

export class SameBytes {
  readonly #find: Find
  readonly #recent = new LRUCache<string, { where: string; taskId: string }>({ max: RECENT_MAX })
  /** By hash: the job that stores the bytes, and a promise for its end. */
  readonly #storing = new Map<string, { job: object; ended: Promise<void>; end: () => void }>()

  constructor(find: Find) {
    this.#find = find
  }

  /** Where the bytes are; undefined: `job` must store them, and call `settle` when it has, or has failed. */
  async find(job: object, taskId: string, sha256: string, place: string): Promise<string | undefined> {
    for (;;) {
      const recent = this.#recent.get(sha256)
      if (recent !== undefined) return recent.taskId === taskId ? undefined : recent.where // a repeated task writes the same again
      const storing = this.#storing.get(sha256)
      if (storing !== undefined && storing.job !== job) {
        await storing.ended
        continue
      }
      const { promise: ended, resolve: end } = Promise.withResolvers<void>()
      this.#storing.set(sha256, { job, ended, end })
      try {
        const where = await this.#find(sha256, place)
        if (where !== undefined) this.#end(sha256)
        return where
      } catch (error) {
        this.#end(sha256)
        throw error
      }
    }
  }

  /** `stored` is omitted for a job that failed. */
  settle(job: object, taskId: string, stored?: { sha256: string; where: string }): void {
    if (stored !== undefined && !this.#recent.has(stored.sha256))
      this.#recent.set(stored.sha256, { where: stored.where, taskId })
    for (const [sha256, storing] of this.#storing) if (storing.job === job) this.#end(sha256)
  }

  #end(sha256: string): void {
    this.#storing.get(sha256)?.end()
    this.#storing.delete(sha256)
  }
}
