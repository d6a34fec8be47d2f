/** Compares attribute values with what a selector asks for. */
import { findAttribute, foundValue, valueEnd, valueStart } from './attributes.ts'
import { isSpace, lowerCase } from './scan.ts'
import {
  CONTAINS,
  END,
  EQUALS,
  EXISTS,
  HYPHEN,
  IGNORE,
  IGNORE_IN_HTML,
  IGNORE_IN_QUIRKS,
  START,
  type Test,
  WORD,
} from './selector.ts'
import type { PageIndex } from './tree-builder.ts'

export function matchesAttribute(index: PageIndex, test: Test, token: number): boolean {
  if (findAttribute(index, token, test.name) && matchesValue(index, test, token)) return true
  if (!test.anyNamespace || index.kind[token]! >> 4 === 0) return false
  for (const prefix of ['xlink:', 'xml:', 'xmlns:'])
    if (findAttribute(index, token, prefix + test.name) && matchesValue(index, test, token)) return true
  return false
}

/** Compares the attribute value just found. The two most common comparisons read it in place. */
function matchesValue(index: PageIndex, test: Test, token: number): boolean {
  const { op } = test
  if (op === EXISTS) return true
  const { caseRule } = test
  const ignoreCase =
    caseRule === IGNORE_IN_QUIRKS
      ? index.isQuirks
      : caseRule === IGNORE || (caseRule === IGNORE_IN_HTML && index.kind[token]! >> 4 === 0)
  const value = ignoreCase ? test.folded : test.value
  if (!ignoreCase) {
    if (op === WORD) {
      const answer = hasWord(index.html, valueStart, valueEnd, value)
      if (answer !== undefined) return answer
    } else if (op === EQUALS && valueEnd - valueStart === value.length && index.html.startsWith(value, valueStart)) {
      return test.isPlain || foundValue(index) === value
    }
  }
  const found = ignoreCase ? lowerCase(foundValue(index)) : foundValue(index)
  switch (op) {
    case EQUALS:
      return found === value
    case START:
      return found.startsWith(value)
    case END:
      return found.endsWith(value)
    case CONTAINS:
      return found.includes(value)
    case HYPHEN:
      return found.startsWith(value) && (found.length === value.length || found[value.length] === '-')
    default:
      return hasWord(found, 0, found.length, value) ?? found.split(/[ \t\n\f\r]/).includes(value)
  }
}

/** Whether `word` is one of the words at `html[from…to)`; undefined if an entity there hides the answer. */
function hasWord(html: string, from: number, to: number, word: string): boolean | undefined {
  const first = word.charCodeAt(0)
  let isStart = true
  for (let i = from; i < to; i++) {
    const c = html.charCodeAt(i)
    if (c === 38 || c === 0) return undefined
    if (c === 32 || (c <= 13 && isSpace(c))) isStart = true
    else {
      if (isStart && c === first && html.startsWith(word, i)) {
        const after = i + word.length
        if (after === to) return true
        if (after < to) {
          const next = html.charCodeAt(after)
          if (next === 32 || (next <= 13 && isSpace(next))) return true
        }
      }
      isStart = false
    }
  }
  return false
}
