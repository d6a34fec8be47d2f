/** The parts of a WHERE clause, with their values numbered in order. */
import type { Value } from './rows.ts'

export class Conditions {
  readonly values: Value[] = []
  readonly #parts: string[] = []

  /** Each `?` is replaced by the next value. */
  add(sql: string, ...values: Value[]): this {
    let at = 0
    this.#parts.push(sql.replace(/\?/g, () => this.value(values[at++]!)))
    return this
  }

  /** Adds the condition only if there is a value. */
  maybe(sql: string, value: Value | undefined): this {
    return value === undefined ? this : this.add(sql, value)
  }

  value(value: Value): string {
    this.values.push(value)
    return `$${this.values.length}`
  }

  copy(): Conditions {
    const copy = new Conditions()
    copy.values.push(...this.values)
    copy.#parts.push(...this.#parts)
    return copy
  }

  get sql(): string {
    return this.#parts.length === 0 ? '' : `where ${this.#parts.join(' and ')}`
  }
}
