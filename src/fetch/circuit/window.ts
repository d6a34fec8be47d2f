/** How many of the pages requested in the last minute failed, in six slices that expire one by one; plus the latest results. */

const PARTS = 6

export class RequestWindow {
  readonly #partMs: number
  readonly #requests = new Array<number>(PARTS).fill(0)
  readonly #failed = new Array<number>(PARTS).fill(0)
  readonly #windowMs: number
  readonly #lastMax: number
  /** The newest is last. */
  readonly #last: { atMs: number; isFailed: boolean }[] = []
  /** The number of the newest slice, counted from time 0. */
  #newest = 0

  /** `lastMax`: how many results are remembered individually. */
  constructor(windowMs: number, lastMax: number) {
    this.#windowMs = windowMs
    this.#lastMax = lastMax
    this.#partMs = windowMs / PARTS
  }

  add(nowMs: number, isFailed: boolean): void {
    this.#forget(nowMs)
    const part = this.#newest % PARTS
    this.#requests[part]!++
    if (isFailed) this.#failed[part]!++
    this.#last.push({ atMs: nowMs, isFailed })
    if (this.#last.length > this.#lastMax) this.#last.shift()
  }

  /** For the last `count` results, without those older than the window. */
  readLast(nowMs: number, count: number): { requests: number; failed: number; failedInARow: number } {
    const last = this.#last.slice(-count).filter(({ atMs }) => atMs > nowMs - this.#windowMs)
    const failed = last.filter(({ isFailed }) => isFailed).length
    const failedInARow = last.length - 1 - last.findLastIndex(({ isFailed }) => !isFailed)
    return { requests: last.length, failed, failedInARow }
  }

  read(nowMs: number): { requests: number; failed: number } {
    this.#forget(nowMs)
    const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0)
    return { requests: sum(this.#requests), failed: sum(this.#failed) }
  }

  clear(): void {
    this.#requests.fill(0)
    this.#failed.fill(0)
    this.#last.length = 0
  }

  #forget(nowMs: number): void {
    const part = Math.floor(nowMs / this.#partMs)
    if (part <= this.#newest) return
    if (part - this.#newest >= PARTS) this.clear()
    else
      for (let old = this.#newest + 1; old <= part; old++) {
        this.#requests[old % PARTS] = 0
        this.#failed[old % PARTS] = 0
      }
    this.#newest = part
  }
}
