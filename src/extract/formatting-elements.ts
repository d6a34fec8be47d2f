/**
 * The list of active formatting elements (`b`, `a`, `font` …), oldest first: those that are opened again in the next block if their own
 * block was closed before them.
 */
import type { OpenElements } from './open-elements.ts'

/** Where a table cell, caption, object or template begins: what is before it is not opened again inside. */
export const MARKER = -1
/** Of elements with the same name and attributes after the last marker, only the newest are kept. */
const SAME_MAX = 3

export class FormattingElements {
  readonly tokens: number[] = []
  /** Their depths in the stack of open elements, right for those that are open. */
  readonly #depths: number[] = []
  /** Their attributes, sorted, where they had to be compared. */
  readonly #keys: (string | undefined)[] = []

  get size(): number {
    return this.tokens.length
  }

  clear(): void {
    this.tokens.length = this.#depths.length = this.#keys.length = 0
  }

  push(token: number, depth: number): void {
    this.tokens.push(token)
    this.#depths.push(depth)
    this.#keys.push(undefined)
  }

  pop(): number {
    this.#depths.pop()
    this.#keys.pop()
    return this.tokens.pop()!
  }

  clearToMarker(): void {
    while (this.size > 0) if (this.pop() === MARKER) break
  }

  insert(i: number, token: number, depth: number): void {
    this.tokens.splice(i, 0, token)
    this.#depths.splice(i, 0, depth)
    this.#keys.splice(i, 0, undefined)
  }

  /** By a copy, which has the same attributes. */
  replace(i: number, token: number, depth: number): void {
    this.tokens[i] = token
    this.#depths[i] = depth
  }

  forget(i: number): void {
    this.tokens.splice(i, 1)
    this.#depths.splice(i, 1)
    this.#keys.splice(i, 1)
  }

  depthOf(i: number): number {
    return this.#depths[i]!
  }

  isOpen(i: number, open: OpenElements): boolean {
    const depth = this.#depths[i]!
    return depth < open.size && open.tokens[depth] === this.tokens[i]
  }

  /** The newest entry with that name after the last marker, or -1. `tagOf`: the names of tokens. */
  newest(tag: number, tagOf: Int32Array): number {
    const { tokens } = this
    for (let i = tokens.length - 1; i >= 0 && tokens[i] !== MARKER; i--) if (tagOf[tokens[i]!] === tag) return i
    return -1
  }

  /** How many entries after the last marker have that name. */
  count(tag: number, tagOf: Int32Array): number {
    const { tokens } = this
    let count = 0
    for (let i = tokens.length - 1; i >= 0 && tokens[i] !== MARKER; i--) if (tagOf[tokens[i]!] === tag) count++
    return count
  }

  /** Makes room for one more element with that name and these attributes. Returns false if there was room. */
  forgetSame(tag: number, tagOf: Int32Array, own: string, keyOf: (token: number) => string): boolean {
    const { tokens } = this
    const same: number[] = []
    for (let i = tokens.length - 1; i >= 0 && tokens[i] !== MARKER; i--) {
      if (tagOf[tokens[i]!] !== tag) continue
      this.#keys[i] ??= keyOf(tokens[i]!)
      if (this.#keys[i] === own) same.push(i)
    }
    if (same.length < SAME_MAX) return false
    this.forget(same.at(-1)!)
    return true
  }

  /** The elements from that depth on have moved up or down in the stack. */
  shiftDepths(from: number, by: 1 | -1): void {
    const depths = this.#depths
    for (let i = 0; i < depths.length; i++) if (depths[i]! >= from) depths[i]! += by
  }

  /** Tokens have new numbers. */
  renumber(places: Int32Array): void {
    const { tokens } = this
    for (let i = 0; i < tokens.length; i++) if (tokens[i] !== MARKER) tokens[i] = places[tokens[i]!]!
  }
}
