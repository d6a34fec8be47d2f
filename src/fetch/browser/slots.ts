/** Slots for pages, assigned in the order they were requested. */

interface Waiter {
  go: () => void
  fail: (reason: unknown) => void
}

export class Slots {
  size: number
  busy = 0
  readonly #waiting = new Set<Waiter>()
  readonly #listeners = new Set<() => void>()
  #closed: { reason: Error } | undefined

  constructor(size: number) {
    this.size = size
  }

  /** Rejects with the signal's reason, or with the reason given to `close`. */
  async take(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw signal.reason
    if (this.#closed !== undefined) throw this.#closed.reason
    if (this.busy < this.size && this.#waiting.size === 0) {
      this.busy++
      return
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter: Waiter = { go: resolve, fail: reject }
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    this.#waiting.add(waiter)
    try {
      await promise
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.#waiting.delete(waiter)
    }
  }

  free(): void {
    this.busy--
    this.#wake()
  }

  resize(size: number): void {
    this.size = Math.max(1, Math.floor(size))
    this.#wake()
  }

  onFree(listener: () => void): void {
    this.#listeners.add(listener)
  }

  close(reason: Error): void {
    this.#closed = { reason }
    for (const waiter of this.#waiting) waiter.fail(reason)
  }

  #wake(): void {
    for (const waiter of this.#waiting) {
      if (this.busy >= this.size) break
      this.#waiting.delete(waiter)
      this.busy++
      waiter.go()
    }
    if (this.busy < this.size) for (const listener of this.#listeners) listener()
  }
}
