/**
 * Numbers for operations that may have to be repeated. A claim's number is that of its lease; under the number of an add or
 * a commit the server keeps its answer until it hears that we have it.
 */
export class Operations {
  readonly #base: bigint
  #last = 0n
  #heard: string[] = []

  /** `clientNo` is from the database: no two clients have the same, and none after a restart. */
  constructor(clientNo: number) {
    this.#base = BigInt(clientNo) << 32n
  }

  next(): string {
    return String(this.#base + ++this.#last)
  }

  /** One that has an answer to be kept. `forget`: those the server may drop, because we have them. */
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
