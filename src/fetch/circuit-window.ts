/** How many requests of the last minute failed, in six parts that are forgotten one by one. */

const PARTS = 6

export class RequestWindow {
  readonly #partMs: number
  readonly #requests = new Array<number>(PARTS).fill(0)
  readonly #failed = new Array<number>(PARTS).fill(0)
  /** The part counted last, from the beginning of time. */
  #newest = 0

  constructor(windowMs: number) {
    this.#partMs = windowMs / PARTS
  }

  add(nowMs: number, isFailed: boolean): void {
    this.#forget(nowMs)
    const part = this.#newest % PARTS
    this.#requests[part]!++
    if (isFailed) this.#failed[part]!++
  }

  read(nowMs: number): { requests: number; failed: number } {
    this.#forget(nowMs)
    const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0)
    return { requests: sum(this.#requests), failed: sum(this.#failed) }
  }

  clear(): void {
    this.#requests.fill(0)
    this.#failed.fill(0)
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
