/** The first number in a text, as people write numbers: "£1,234.50", "1.234,50 €", "1'234.50", "-3". */

const COMMA = ','
const POINT = '.'
/** Between groups of digits: no-break, thin and narrow spaces, apostrophes. A plain space separates two numbers. */
const GROUP_MARKS = "\u00a0\u202f\u2009'\u2019"
/** Longer runs of groups are lists, not numbers. */
const GROUPS_MAX = 20

const isDigit = (c: number): boolean => c >= 48 && c <= 57

/**
 * With two different marks the last is the decimal one. A single kind of mark groups thousands if it occurs twice, or if it is a
 * comma before exactly three digits ("1,234" is 1234); else it is decimal ("12,5" is 12.5, "1.234" is 1.234, "0,123" is 0.123).
 */
export function firstNumber(text: string): number | undefined {
  let at = 0
  while (at < text.length && !isDigit(text.charCodeAt(at))) at++
  if (at === text.length) return undefined
  const { groups, marks } = split(text, at)
  const isFraction = marks.length === 0 && text[at - 1] === POINT && !isDigit(text.charCodeAt(at - 2))
  const number = Number(isFraction ? `.${groups[0]}` : plain(groups, marks))
  if (!Number.isFinite(number)) return undefined
  return isNegative(text, at) ? -number : number
}

/** Splits "1,234.50" into its digits (1 · 234 · 50) and the marks between them (, · .). */
function split(text: string, from: number): { groups: string[]; marks: string[] } {
  const groups: string[] = []
  const marks: string[] = []
  for (let i = from; ; ) {
    const start = i
    while (isDigit(text.charCodeAt(i))) i++
    groups.push(text.slice(start, i))
    const mark = text[i]
    const isMark = mark === COMMA || mark === POINT || (mark !== undefined && GROUP_MARKS.includes(mark))
    if (!isMark || !isDigit(text.charCodeAt(i + 1)) || groups.length === GROUPS_MAX) return { groups, marks }
    marks.push(mark)
    i++
  }
}

/** The number as JavaScript writes it. */
function plain(groups: string[], marks: string[]): string {
  const [whole = '', next = ''] = groups
  const [mark] = marks
  if (mark === undefined) return whole
  let grouped = 1
  while (marks[grouped] === mark) grouped++
  const isDecimal = mark === POINT && marks.length === 1
  if (!isDecimal && isGrouping(groups.slice(0, grouped + 1), mark)) {
    const decimal = marks[grouped]
    const digits = groups.slice(0, grouped + 1).join('')
    return decimal === COMMA || decimal === POINT ? `${digits}.${groups[grouped + 1]}` : digits
  }
  // "12,5", "v1.2.3", and "1,2,3", which is a list.
  return mark === POINT || (mark === COMMA && marks.length === 1) ? `${whole}.${next}` : whole
}

/** 1,234,567, or in India 12,34,567. */
function isGrouping(groups: string[], mark: string): boolean {
  const [first = '', ...others] = groups
  if (first.length > 3 || first.startsWith('0') || others.at(-1)?.length !== 3) return false
  return others.slice(0, -1).every(({ length }) => length === 3 || (length === 2 && mark === COMMA))
}

/** A minus directly before the number, or before its currency sign; not the hyphen of "A-3". */
function isNegative(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - 8), at)
  return /(?:^|[^\p{L}\p{N}])[-\u2212](?:\s?\p{Sc}\s?)?\.?$/u.test(before)
}
