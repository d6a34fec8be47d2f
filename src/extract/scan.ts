/** Where things in markup end. `codes` are characters of the page with a `>` behind the last, at `length`. */

export const isSpace = (c: number): boolean => c === 32 || c === 10 || c === 9 || c === 13 || c === 12
export const isAlpha = (c: number): boolean => (c >= 97 && c <= 122) || (c >= 65 && c <= 90)

/** Lower case as HTML means it: ASCII letters only. */
export function lowerCase(name: string): string {
  return /[A-Z]/.test(name) ? name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : name
}

/** A tag name ends at white space, `/` or `>`. */
export function nameEnd(codes: Uint16Array, from: number): number {
  let i = from
  for (let c = codes[i]!; c !== 62 && c !== 32 && c !== 47 && !(c <= 13 && isSpace(c)); ) c = codes[++i]!
  return i
}

/** One past the `>` of a tag; negative when it closes itself (`/>`); beyond `length` when they end before. */
export function attributesEnd(codes: Uint16Array, length: number, from: number): number {
  let i = from
  for (;;) {
    let c = codes[i]!
    while (c === 32 || (c <= 13 && isSpace(c))) c = codes[++i]!
    if (c === 62) return i + 1
    if (c === 47) {
      if (codes[++i] === 62) return i < length ? -i - 1 : i + 1
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

/** One past the `-->` or `--!>` of a comment whose text begins at `from`, or 0. `<!-->` and `<!--->` are whole comments. */
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

/** Where the end tag of a raw text begins that was opened with the name at `html[nameStart…nameStop)`, or -1. */
export function rawTextEnd(html: string, from: number, nameStart: number, nameStop: number): number {
  const length = nameStop - nameStart
  for (let at = html.indexOf('</', from); at !== -1; at = html.indexOf('</', at + 2)) {
    let i = 0
    while (i < length && (html.charCodeAt(at + 2 + i) | 32) === (html.charCodeAt(nameStart + i) | 32)) i++
    if (i === length && endsName(html, at + 2 + length)) return at
  }
  return -1
}

function endsName(html: string, at: number): boolean {
  const c = html.charCodeAt(at)
  return c === 62 || c === 47 || isSpace(c)
}

/**
 * Where the end tag of a script begins, or -1. Inside `<!-- … -->`, as old pages hide scripts, a `<script>` must be closed by a
 * `</script>` before the next one ends the element.
 */
export function scriptEnd(html: string, from: number): number {
  let isEscaped = false
  let isNested = false
  let dashes = -2 // where `-->` is next, while escaped
  for (let at = html.indexOf('<', from); at !== -1; at = html.indexOf('<', at + 1)) {
    if (isEscaped) {
      if (dashes === -2) dashes = html.indexOf('-->', from)
      if (dashes !== -1 && dashes < at) {
        isEscaped = isNested = false
        dashes = -2
      }
    }
    const next = html.charCodeAt(at + 1)
    if (next === 33 && !isEscaped && html.startsWith('--', at + 2)) {
      isEscaped = true
      from = at + 2 // `<!-->` ends what it begins
    } else if (next === 47 && isScript(html, at + 2)) {
      if (!isNested) return at
      isNested = false
    } else if (isEscaped && !isNested && isScript(html, at + 1)) isNested = true
  }
  return -1
}

const isScript = (html: string, at: number): boolean =>
  (html.charCodeAt(at) | 32) === 115 && html.slice(at, at + 6).toLowerCase() === 'script' && endsName(html, at + 6)
