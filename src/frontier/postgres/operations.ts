/**
 * Numbers for operations that may have to be repeated. A claim's number is also the number of its lease. For an add or a commit,
 * the server keeps the answer under its number until we confirm that we received it.
 */
export class Operations {
  readonly #base: bigint
  #last = 0n
  #heard: string[] = []

  /** `clientNo` comes from the database and is never reused, not even after a restart. */
  constructor(clientNo: number) {
    this.#base = BigInt(clientNo) << 32n
  }

  next(): string {
    return String(this.#base + ++this.#last)
  }

  /** Runs an operation whose answer is kept. `forget`: answers the server may drop, because we have them. */
  async answered<T>(call: (op: string, forget: readonly string[]) => Promise<T>): Promise<T> {
    const op = this.next()
    const forget = this.#heard.splice(0)
    try {
      const answer = await call(op, forget)
      this.#heard.push(op)
      return answer
    } catch (error) {
      this.#heard.push(...forget)
      throw error
    }
  }
}
