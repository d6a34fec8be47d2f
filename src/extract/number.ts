/** The first number in a text, as people write numbers: "£1,234.50", "1.234,50 €", "1 234,50", "1'234.50", "-3". */

const isDigit = (c: number): boolean => c >= 48 && c <= 57
/** Between groups of three digits: no-break, thin and narrow spaces, apostrophes. A plain space separates two numbers. */
const isGroupMark = (c: number): boolean =>
  c === 0xa0 || c === 0x202f || c === 0x2009 || c === 39 || c === 0x2019
const COMMA = 44
const POINT = 46

/**
 * Comma and point: the last of the two is the decimal mark when both occur. Alone, a mark that occurs twice or a comma before
 * exactly three digits groups thousands ("1,234" is 1234); any other is decimal ("12,5" is 12.5, "1.234" is 1.234).
 */
export function firstNumber(text: string): number | undefined {
  let at = 0
  while (at < text.length && !isDigit(text.charCodeAt(at))) at++
  if (at === text.length) return undefined
  const end = numberEnd(text, at)
  const number = Number(digitsOf(text, at, end))
  if (!Number.isFinite(number)) return undefined
  return isNegative(text, at) ? -number : number
}

/** One past the last digit: digits, and single marks between digits. */
function numberEnd(text: string, from: number): number {
  let i = from
  for (;;) {
    while (isDigit(text.charCodeAt(i))) i++
    const c = text.charCodeAt(i)
    if (!(c === COMMA || c === POINT || isGroupMark(c)) || !isDigit(text.charCodeAt(i + 1))) return i
    i++
  }
}

function digitsOf(text: string, from: number, to: number): string {
  const isFraction = from > 0 && text.charCodeAt(from - 1) === POINT && !isDigit(text.charCodeAt(from - 2))
  let whole = ''
  let mark = 0 // the grouping mark seen
  let i = from
  for (;;) {
    const groupStart = i
    while (i < to && isDigit(text.charCodeAt(i))) i++
    const digits = i - groupStart
    if (mark !== 0 && digits !== 3 && !(mark === COMMA && digits === 2)) return whole // "1,234,5": a list, not a number
    whole += text.slice(groupStart, i)
    if (i === to) break
    const c = text.charCodeAt(i)
    if (mark !== 0 ? c !== mark && (c === COMMA || c === POINT) : isDecimalMark(text, from, i, to)) {
      let stop = ++i
      while (stop < to && isDigit(text.charCodeAt(stop))) stop++
      whole += `.${text.slice(i, stop)}`
      break
    }
    if (mark !== 0 && c !== mark) break
    mark = c
    i++
  }
  return isFraction && mark === 0 && !whole.includes('.') ? `.${whole}` : whole
}

/** Whether the first mark of a number, at `at`, is its decimal mark. */
function isDecimalMark(text: string, from: number, at: number, to: number): boolean {
  const c = text.charCodeAt(at)
  if (isGroupMark(c)) return false
  let i = at + 1
  while (i < to && isDigit(text.charCodeAt(i))) i++
  if (at - from > 3 || i - at - 1 !== 3 || text.charCodeAt(from) === 48) return i === to || text.charCodeAt(i) !== c || i - at - 1 !== 2
  return i === to && c === POINT
}

/** A minus directly before the number, or before its currency sign; not the hyphen of "A-3". */
function isNegative(text: string, at: number): boolean {
  let i = at - 1
  if (i >= 0 && text.charCodeAt(i) === POINT) i--
  while (i >= 0 && /[\s\p{Sc}]/u.test(text[i]!)) i--
  if (i < 0 || (text[i] !== '-' && text[i] !== '\u2212')) return false
  if (i < at - 1 && !/\p{Sc}/u.test(text.slice(i + 1, at)) && text[at - 1] !== '.') return false // "a - 3"
  return i === 0 || !/[\p{L}\p{N}]/u.test(text[i - 1]!)
}
