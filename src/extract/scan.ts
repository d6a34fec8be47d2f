/** Finds where parts of the markup end. `codes` are characters of the page followed by a `>`, at `length`. */

export const isSpace = (c: number): boolean => c === 32 || c === 10 || c === 9 || c === 13 || c === 12
export const isAlpha = (c: number): boolean => (c >= 97 && c <= 122) || (c >= 65 && c <= 90)

/** A tag name ends at white space, `/` or `>`. */
export function nameEnd(codes: Uint16Array, from: number): number {
  let i = from
  for (let c = codes[i]!; c !== 62 && c !== 32 && c !== 47 && !(c <= 13 && isSpace(c)); ) c = codes[++i]!
  return i
}

/** One past the `>` of a start tag; negative if it is self-closing (`/>`); beyond `length` if the characters end first. */
export function attributesEnd(codes: Uint16Array, length: number, from: number): number {
  let i = from
  for (;;) {
    let c = codes[i]!
    while (c === 32 || (c <= 13 && isSpace(c))) c = codes[++i]!
    if (c === 62) return i + 1
    if (c === 47) {
      do c = codes[++i]!
      while (c === 32 || (c <= 13 && isSpace(c)))
      if (c === 62) return i < length ? -i - 1 : i + 1
      continue
    }
    // A name; its first character may be anything, even `=`.
    do c = codes[++i]!
    while (c !== 61 && c !== 62 && c !== 47 && c !== 32 && !(c <= 13 && isSpace(c)))
    while (c === 32 || (c <= 13 && isSpace(c))) c = codes[++i]!
    if (c !== 61) continue
    do c = codes[++i]!
    while (c === 32 || (c <= 13 && isSpace(c)))
    if (c === 34 || c === 39) {
      do i++
      while (i < length && codes[i] !== c)
      if (i >= length) return length + 1
      i++
    } else while (c !== 62 && c !== 32 && !(c <= 13 && isSpace(c))) c = codes[++i]!
  }
}

/** One past the `-->` or `--!>` of a comment whose text begins at `from`, or 0. `<!-->` and `<!--->` are complete comments. */
export function commentEnd(html: string, from: number): number {
  if (html.startsWith('>', from)) return from + 1
  if (html.startsWith('->', from)) return from + 2
  for (let dashes = html.indexOf('--', from); dashes !== -1; ) {
    let i = dashes + 2
    while (html.charCodeAt(i) === 45) i++
    if (html.charCodeAt(i) === 62) return i + 1
    if (html.startsWith('!>', i)) return i + 2
    dashes = html.indexOf('--', i)
  }
  return 0
}

/** Where the end tag begins of the raw text element whose name is at `html[nameStart…nameStop)`, or -1. */
export function rawTextEnd(html: string, from: number, nameStart: number, nameStop: number): number {
  const length = nameStop - nameStart
  for (let at = html.indexOf('</', from); at !== -1; at = html.indexOf('</', at + 2)) {
    let i = 0
    while (i < length && (html.charCodeAt(at + 2 + i) | 32) === (html.charCodeAt(nameStart + i) | 32)) i++
    if (i < length) continue
    const c = html.charCodeAt(at + 2 + length)
    if (c === 62 || c === 47 || isSpace(c)) return at
  }
  return -1
}
