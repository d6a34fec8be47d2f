/**
 * A tree whose nodes can be moved, for the few pages that need it: text in front of its table, formatting that crosses blocks.
 * Nodes are tokens; the document is -1. When the page is read, the tokens are put into the order of the tree.
 */
import { freeArray, type Tokens, tokensOf } from './tokens.ts'

export class NodeLinks {
  #parent: Int32Array
  #first: Int32Array
  #last: Int32Array
  #next: Int32Array
  #previous: Int32Array

  constructor(capacity: number) {
    this.#parent = new Int32Array(capacity)
    this.#first = new Int32Array(capacity)
    this.#last = new Int32Array(capacity)
    this.#next = new Int32Array(capacity)
    this.#previous = new Int32Array(capacity)
    this.#first[0] = this.#last[0] = -2
  }

  // Every place is one further than its token, so that the document has one; -2 stands for none.

  /** A new node, not yet in the tree. */
  add(token: number): void {
    const i = token + 1
    if (i >= this.#parent.length) this.#grow(2 * i)
    this.#parent[i] = this.#first[i] = this.#last[i] = this.#next[i] = this.#previous[i] = -2
  }

  parentOf(token: number): number {
    return this.#parent[token + 1]!
  }

  previousOf(token: number): number {
    return this.#previous[token + 1]!
  }

  lastChildOf(token: number): number {
    return this.#last[token + 1]!
  }

  append(parent: number, token: number): void {
    this.#insert(parent, token, this.#last[parent + 1]!, -2)
  }

  insertBefore(parent: number, token: number, next: number): void {
    this.#insert(parent, token, this.#previous[next + 1]!, next)
  }

  #insert(parent: number, token: number, previous: number, next: number): void {
    const i = token + 1
    this.#parent[i] = parent
    this.#previous[i] = previous
    this.#next[i] = next
    if (previous === -2) this.#first[parent + 1] = token
    else this.#next[previous + 1] = token
    if (next === -2) this.#last[parent + 1] = token
    else this.#previous[next + 1] = token
  }

  detach(token: number): void {
    const i = token + 1
    const parent = this.#parent[i]!
    if (parent === -2) return
    const previous = this.#previous[i]!
    const next = this.#next[i]!
    if (previous === -2) this.#first[parent + 1] = next
    else this.#next[previous + 1] = next
    if (next === -2) this.#last[parent + 1] = previous
    else this.#previous[next + 1] = previous
    this.#parent[i] = this.#previous[i] = this.#next[i] = -2
  }

  moveChildren(from: number, to: number): void {
    for (let child = this.#first[from + 1]!; child !== -2; child = this.#first[from + 1]!) {
      this.detach(child)
      this.append(to, child)
    }
  }

  /** The tokens in the order of the tree, and where each has gone; what is not in the tree is left out. */
  inOrder(old: Tokens, count: number): { tokens: Tokens; count: number; places: Int32Array } {
    const tokens = tokensOf(count + 1)
    const places = new Int32Array(count).fill(-1)
    let size = 0
    let token = this.#first[0]!
    while (token !== -2) {
      const place = size++
      places[token] = place
      tokens.start[place] = old.start[token]!
      tokens.end[place] = old.end[token]!
      tokens.kind[place] = old.kind[token]!
      tokens.tag[place] = old.tag[token]!
      const parent = this.#parent[token + 1]!
      tokens.parent[place] = parent === -1 ? -1 : places[parent]!
      tokens.close[place] = place + 1
      const child = this.#first[token + 1]!
      if (child !== -2) {
        token = child
        continue
      }
      for (;;) {
        const next = this.#next[token + 1]!
        if (next !== -2) {
          token = next
          break
        }
        token = this.#parent[token + 1]!
        if (token === -1) {
          token = -2
          break
        }
        tokens.close[places[token]!] = size
      }
    }
    return { tokens, count: size, places }
  }

  free(): void {
    for (const array of [this.#parent, this.#first, this.#last, this.#next, this.#previous]) freeArray(array)
  }

  #grow(size: number): void {
    const grown = (old: Int32Array): Int32Array => {
      const array = new Int32Array(size)
      array.set(old)
      freeArray(old)
      return array
    }
    this.#parent = grown(this.#parent)
    this.#first = grown(this.#first)
    this.#last = grown(this.#last)
    this.#next = grown(this.#next)
    this.#previous = grown(this.#previous)
  }
}
