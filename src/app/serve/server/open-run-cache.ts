/** Runs kept open for a server that queries them all the time: opened once, refreshed now and then. */

import { ScrapeError } from '../../../core/errors.ts'
import { every } from '../../../core/every.ts'
import { openRun } from '../../../runs/open-run.ts'
import type { OpenRun, RunPlaces } from '../../../runs/run-view.ts'

/** A run is closed after this long without a query. */
const IDLE_MS = 30_000
const OPEN_MAX = 200
/** Data of this age is fresh enough: a record is written twice a second. */
const FRESH_MS = 500

interface Look {
  run: Promise<OpenRun>
  askedAtMs: number
  freshAtMs: number
  refreshing: Promise<void> | undefined
}

export class OpenRunCache implements AsyncDisposable {
  readonly #places: RunPlaces
  readonly #openRuns = new Map<string, Look>()
  readonly #sweeping: NodeJS.Timeout

  constructor(places: RunPlaces) {
    this.#places = places
    this.#sweeping = every(() => this.#closeIdle(), IDLE_MS / 3)
    this.#sweeping.unref()
  }

  /** Throws `E_RUN_NOT_FOUND`. The cache owns the run: do not dispose of it. */
  async run(id: string): Promise<OpenRun> {
    const nowMs = performance.now()
    let look = this.#openRuns.get(id)
    if (look === undefined) {
      look = { run: this.#open(id), askedAtMs: nowMs, freshAtMs: nowMs, refreshing: undefined }
      this.#openRuns.set(id, look)
      look.run.catch(() => this.#openRuns.delete(id))
      this.#closeOldest()
    }
    look.askedAtMs = nowMs
    const run = await look.run
    if (nowMs - look.freshAtMs > FRESH_MS) {
      look.refreshing ??= run.refresh().finally(() => {
        look.freshAtMs = performance.now()
        look.refreshing = undefined
      })
    }
    await look.refreshing
    return run
  }

  /** For changes to a run: cached data about it is out of date afterwards. */
  async change<T>(id: string, change: (run: OpenRun) => Promise<T>): Promise<T> {
    try {
      return await change(await this.run(id))
    } finally {
      const look = this.#openRuns.get(id)
      if (look !== undefined) look.freshAtMs = Number.NEGATIVE_INFINITY
    }
  }

  async #open(id: string): Promise<OpenRun> {
    const run = await openRun(id, this.#places)
    if (run.record.id === id) return run
    await run[Symbol.asyncDispose]() // the name was a scraper's, not an id
    throw new ScrapeError('E_RUN_NOT_FOUND', `no run ${id}`)
  }

  #closeIdle(): void {
    const before = performance.now() - IDLE_MS
    for (const [id, look] of this.#openRuns) if (look.askedAtMs < before) this.#close(id, look)
  }

  #closeOldest(): void {
    if (this.#openRuns.size <= OPEN_MAX) return
    const [oldest] = [...this.#openRuns].sort(([, a], [, b]) => a.askedAtMs - b.askedAtMs)
    if (oldest !== undefined) this.#close(...oldest)
  }

  #close(id: string, look: Look): void {
    this.#openRuns.delete(id)
    void look.run.then((run) => run[Symbol.asyncDispose]()).catch(() => {})
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#sweeping)
    const open = [...this.#openRuns.values()]
    this.#openRuns.clear()
    await Promise.allSettled(open.map(async ({ run }) => (await run)[Symbol.asyncDispose]()))
  }
}
