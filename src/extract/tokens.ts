/** The arrays of a page's index, reused from page to page. */

export interface Tokens {
  readonly start: Int32Array
  /** One past the token's `>`. */
  readonly end: Int32Array
  readonly kind: Uint8Array
  /** Tag name id, -1 for tokens that are not elements. */
  readonly tag: Int32Array
  /** Token of the parent element, or -1 for the document. Only for elements and comments. */
  readonly parent: Int32Array
  /**
   * The first token after the element's content: its end tag, or the tag (or page end) that implied it. Descendants are exactly
   * the elements between the two. Only for elements.
   */
  readonly close: Int32Array
}

/** Given back by finished pages: with these a crawl allocates nothing per page. Larger ones are freed at once. */
const pool: Tokens[] = []
const POOL_MAX = 64
const POOLED_SIZE_MAX = 16_384

export function newTokens(): Tokens {
  return pool.pop() ?? tokensOf(2048)
}

export function recycleTokens(tokens: Tokens): void {
  if (tokens.start.length > POOLED_SIZE_MAX) free(tokens)
  else if (pool.length < POOL_MAX) pool.push(tokens)
}

export function tokensOf(size: number): Tokens {
  return {
    start: new Int32Array(size),
    end: new Int32Array(size),
    kind: new Uint8Array(size),
    tag: new Int32Array(size),
    parent: new Int32Array(size),
    close: new Int32Array(size),
  }
}

const NAMES = ['start', 'end', 'kind', 'tag', 'parent', 'close'] as const

/** The collector comes late: the arrays of a page of 10 MB are 21 MB, and several such pages' were waiting for it. */
function free(tokens: Tokens): void {
  for (const name of NAMES) freeArray(tokens[name])
}

/** Gives the memory of an array back now. Nobody may use it afterwards. */
export function freeArray(array: Int32Array | Uint16Array | Uint8Array): void {
  ;(array.buffer as ArrayBuffer).transfer(0)
}

/** The same tokens with twice the room; the old ones are gone, one array after the other. */
export function growTokens(old: Tokens): Tokens {
  const size = old.start.length * 2
  const grown = <A extends Int32Array | Uint8Array>(from: A, to: A): A => {
    to.set(from)
    freeArray(from)
    return to
  }
  return {
    start: grown(old.start, new Int32Array(size)),
    end: grown(old.end, new Int32Array(size)),
    kind: grown(old.kind, new Uint8Array(size)),
    tag: grown(old.tag, new Int32Array(size)),
    parent: grown(old.parent, new Int32Array(size)),
    close: grown(old.close, new Int32Array(size)),
  }
}

export const NO_TOKENS: Tokens = tokensOf(0)
