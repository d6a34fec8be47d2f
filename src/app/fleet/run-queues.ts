/**
 * How much work runs have left, for repeated queries: the queues stay open in between, because a login costs more than the query.
 */
import { LRUCache } from 'lru-cache'
import type { FrontierStats } from '../../frontier/contract.ts'
import { runStats } from '../../runs/run-numbers.ts'
import type { OpenRun } from '../../runs/run-view.ts'
import type { StoredRun } from '../../store/contract.ts'

/** Maximum number of open queues; each may hold a connection. */
const OPEN_MAX = 8

export type AskedRun = Pick<OpenRun, 'record' | 'frontier' | 'trouble' | 'filling' | 'refresh'> & AsyncDisposable

export class RunQueues implements AsyncDisposable {
  readonly #openRun: (run: StoredRun) => Promise<AskedRun>
  readonly #closing = new Set<Promise<void>>()
  readonly #opened = new LRUCache<string, Promise<AskedRun>>({
    max: OPEN_MAX,
    dispose: (opened) => this.#close(opened),
  })

  constructor(openRun: (run: StoredRun) => Promise<AskedRun>) {
    this.#openRun = openRun
  }

  /** Undefined until all start tasks have been added. A queue that fails to answer is reopened the next time. */
  async stats(run: StoredRun): Promise<FrontierStats | undefined> {
    const { id } = run.record
    try {
      const opened = await this.#upToDate(run)
      if (opened.trouble !== undefined) throw opened.trouble
      return opened.filling === undefined ? await runStats(opened) : undefined
    } catch (error) {
      this.#opened.delete(id)
      throw error
    }
  }

  async #upToDate(run: StoredRun): Promise<AskedRun> {
    const { id } = run.record
    const known = await this.#opened.get(id)
    if (known !== undefined) {
      await known.refresh()
      return known
    }
    const opening = this.#openRun(run)
    this.#opened.set(id, opening)
    return await opening
  }

  #close(opened: Promise<AskedRun>): void {
    const closing: Promise<void> = opened
      .then((run) => run[Symbol.asyncDispose]())
      .catch(() => {}) // the caller has already received the error
      .finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#opened.clear()
    await Promise.all(this.#closing)
  }
}
