/**
 * How many tasks an instance should have at once. As few as keep its requests going: a task that shares the chain with fifty
 * others takes fifty times as long, and its time runs from the claim. Tasks of one page need as many as there are requests;
 * of forty pages three are enough, unless their pages come one after the other.
 */

interface TaskShareOptions {
  /** Requests in flight, at most. */
  concurrency: number
  tasksMax: number
  now?: () => number
}

/** Pages of a task before anything is known of them. */
const PAGES_AT_FIRST = 8
/** Of what the last task tells. */
const WEIGHT = 0.2
/** More than what would do, since tasks begin and end with a single page. */
const SPARE = 1.5
/** How long requests may stay below their number before there is another task. */
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

  /** A task ended after so many requests. */
  learn(requests: number): void {
    this.#pages += WEIGHT * (Math.max(1, requests) - this.#pages)
  }

  /** How many tasks may be begun now. */
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
