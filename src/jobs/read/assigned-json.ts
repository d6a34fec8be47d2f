/**
 * JSON inside a script: `window.data = {…};`. Found by the text before it and read to its closing bracket, because the text of a
 * posting may contain `};`, quotes and brackets.
 */

/** Occurrences that are tried: a page may mention the name before it assigns the value. */
const PLACES_MAX = 16

/** The object or array assigned to the first `anchor` that has one; undefined if none of them parses. */
export function readAssignedJson(html: string, anchor: string): unknown {
  let at = -1
  for (let place = 0; place < PLACES_MAX; place++) {
    at = html.indexOf(anchor, at + 1)
    if (at === -1) return undefined
    const found = readJsonAt(html, startOfValue(html, at + anchor.length))
    if (found !== undefined) return found.value
  }
  return undefined
}

/** The object or array that starts here, if there is one and it parses; `end` is the position after it. */
export function readJsonAt(text: string, start: number): { value: unknown; end: number } | undefined {
  const end = endOfValue(text, start)
  if (end === undefined) return undefined
  try {
    return { value: JSON.parse(text.slice(start, end)), end }
  } catch {
    return undefined
  }
}

/** Skips white space and at most one `=` or `:`. */
function startOfValue(text: string, from: number): number {
  let at = skipSpace(text, from)
  if (text[at] === '=' || text[at] === ':') at = skipSpace(text, at + 1)
  return at
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\t' || text[at] === '\r') at++
  return at
}

/** Position after the bracket that closes the one at `start`; brackets in strings do not count. A single pass over any input. */
function endOfValue(text: string, start: number): number | undefined {
  if (text[start] !== '{' && text[start] !== '[') return undefined
  let depth = 0
  let isString = false
  for (let at = start; at < text.length; at++) {
    const character = text[at]
    if (isString) {
      if (character === '\\') at++
      else if (character === '"') isString = false
    } else if (character === '"') isString = true
    else if (character === '{' || character === '[') depth++
    else if ((character === '}' || character === ']') && --depth === 0) return at + 1
  }
  return undefined
}
