/**
 * How many tasks an instance should run at once: as few as keep its requests busy. A task that shares the chain with fifty others
 * takes fifty times as long, and its timeout starts with the claim. Single-page tasks need as many as there are requests; with
 * forty pages each, three are enough, unless their pages come one after the other.
 */

interface TaskShareOptions {
  /** Maximum number of requests in flight. */
  concurrency: number
  tasksMax: number
  now?: () => number
}

/** Assumed pages per task before any has finished. */
const PAGES_AT_FIRST = 8
/** Weight of the latest task in the moving average. */
const WEIGHT = 0.2
/** A margin, since tasks begin and end with a single page. */
const SPARE = 1.5
/** How long requests may stay below their limit before another task is started. */
const GROW_MS = 250

export class TaskShare {
  readonly #options: TaskShareOptions
  readonly #now: () => number
  #pages = PAGES_AT_FIRST
  #grownAtMs = 0

  constructor(options: TaskShareOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** A task ended after this many requests. */
  learn(requests: number): void {
    this.#pages += WEIGHT * (Math.max(1, requests) - this.#pages)
  }

  /** How many tasks may be started now. */
  room({ active, inFlight }: { active: number; inFlight: number }): number {
    const { concurrency, tasksMax } = this.#options
    if (inFlight >= concurrency || active >= tasksMax) return 0
    const wanted = Math.min(tasksMax, Math.ceil((SPARE * concurrency) / this.#pages))
    if (active < wanted) {
      this.#grownAtMs = this.#now()
      return wanted - active
    }
    if (this.#now() - this.#grownAtMs < GROW_MS) return 0
    this.#grownAtMs = this.#now()
    return Math.min(tasksMax - active, Math.max(1, Math.floor(active / 4)))
  }
}
