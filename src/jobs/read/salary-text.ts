/**
 * Reads pay from text. Finding nothing is better than a wrong result: a number needs a currency next to it, a word for pay or an
 * interval around it, and no word before it that makes it a bonus, a budget or a company's revenue.
 */

import { type Amount, amountsIn } from './amounts.ts'
import { resolveCurrency } from './currency.ts'
import { isPlausible, sizeInterval } from './pay-size.ts'
import { BASE, hasPayWord, intervalsIn, isVetoedAfter, lastEnd, lastWords, ON_TARGET } from './pay-words.ts'
import type { Interval, Salary } from './posting.ts'

interface SalaryHints {
  /** Country of the job; tells ¥ and kr apart. */
  country?: string | null
  /** The text is a pay field and nothing else: numbers need no further evidence. */
  isPayField?: boolean
}

const TEXT_CHARS_MAX = 65_536
const WINDOW_CHARS = 40
const RAW_CHARS_MAX = 200
/** A text this short is a label, not prose: "55.000 € + Bonus". */
const TERSE_CHARS_MAX = 30

/** The pay a text names, or null. */
export function parseSalaryText(text: string, hints: SalaryHints = {}): Salary | null {
  if (typeof text !== 'string' || !/\d/.test(text)) return null
  const clean = repairEncoding(text.slice(0, TEXT_CHARS_MAX))
  let best: Offer | undefined
  for (const range of rangesIn(clean)) {
    const offer = offerOf(range, clean, hints)
    if (offer !== undefined && (best === undefined || offer.weight > best.weight)) best = offer
  }
  return best?.salary ?? null
}

const BROKEN: readonly (readonly [string, string])[] = [
  ['Â£', '£'],
  ['â‚¬', '€'],
  ['â\u0082¬', '€'],
  ['Â€', '€'],
  ['Â¥', '¥'],
  ['â€“', '–'],
  ['â€”', '—'],
  ['â\u0080\u0093', '–'],
  ['â\u0080\u0094', '—'],
  ['Â\u00a0', ' '],
  ['â‚¹', '₹'],
  ['&pound;', '£'],
  ['&euro;', '€'],
  ['&nbsp;', ' '],
  ['&ndash;', '–'],
  ['&mdash;', '—'],
  ['\u200b', ''],
]

/** Repairs UTF-8 read as Latin-1, which affects currency signs most. */
function repairEncoding(text: string): string {
  let out = text.normalize('NFC')
  for (const [wrong, right] of BROKEN) if (out.includes(wrong)) out = out.replaceAll(wrong, right)
  return out.replace(/[０-９]/g, (digit) => String.fromCharCode(digit.charCodeAt(0) - 0xfee0))
}

interface Range {
  low: Amount
  high: Amount | undefined
  start: number
  end: number
}

const SEPARATOR =
  /^\s{0,3}(?:[-\u2010-\u2015\u2212~\uff5e\u301c]|(?:rising |increasing |up )?to|through|thru|up to|bis(?: zu)?|à|do|до|tot|till|til|hasta|até|ate)\s{0,3}$/iu
/** These join a range only after a word that opens one: "between 30 and 40". */
const CONJUNCTION = /^\s{0,3}(?:and|et|und|och|og|en|y|e|a|i|&)\s{0,3}$/iu
const OPENER =
  /(?<![\p{L}])(?:between|entre|zwischen|mellan|mellem|mellom|tra|fra|tussen|from|de|da|desde|von|od|pomiędzy|between:)(?: (?:the|a range of))?[\s:]{0,3}$/iu
/** "Min: $50,000 Max: $60,000": both ends are labelled. */
const LOW_NAME = /(?<![\p{L}])(?:min(?:imum|\.)?|lowest|mindestens)(?: \p{L}{1,12}){0,3}[\s:]{0,3}$/iu
const HIGH_NAME =
  /^(?:\s?\/\s?\p{L}{1,6})?[\s,;/|\u2010-\u2015-]{0,4}(?:\p{L}{1,12} ){0,3}(?:max(?:imum|\.)?|highest|maximal)(?: \p{L}{1,12}){0,3}[\s:]{0,3}$/iu
/** "$25/hr - $32/hr", "50.000 € brutto - 60.000 €": text allowed between an end and the separator. */
const BETWEEN =
  /^\s?(?:\/\s?|per |an? |pro |p\.?)?(?:hours?|hr|h|days?|weeks?|wk|months?|mo|years?|yr|annum|annually|hourly|monthly|gross|brutto|brut|jahr|monat|a\.?|base)?\.?(?=\s{0,3}(?:[-\u2010-\u2015\u2212~]|to\s|bis\s|and\s|à\s))/iu

function* rangesIn(text: string): Generator<Range> {
  const amounts = amountsIn(text)
  for (let i = 0; i < amounts.length; i++) {
    const low = amounts[i]!
    const high = amounts[i + 1]
    if (high !== undefined && isRange(text, low, high)) {
      const pair = shareFactor(low, high)
      yield { ...pair, start: low.start, end: high.end }
      i++
    } else if (low.currency !== undefined) {
      yield { low, high: undefined, start: low.start, end: low.end }
    }
  }
}

function isRange(text: string, low: Amount, high: Amount): boolean {
  if (low.currency === undefined && high.currency === undefined) return false
  const gap = text.slice(low.end, high.start)
  if (gap.length > 30) return false
  const before = text.slice(Math.max(0, low.start - WINDOW_CHARS), low.start)
  if (HIGH_NAME.test(gap) && LOW_NAME.test(before)) return true
  const rest = gap.replace(BETWEEN, '')
  if (SEPARATOR.test(rest) || (rest === '' && gap === '')) return rest !== ''
  if (!CONJUNCTION.test(rest)) return false
  const isTwice = /^\s(?:a|e|i)\s$/i.test(rest) && low.currency !== undefined && low.currency === high.currency
  return isTwice || OPENER.test(before)
}

/** A single k, 万 or lakh applies to both ends: "$120-160k". */
function shareFactor(low: Amount, high: Amount): { low: Amount; high: Amount } {
  const borrow = (from: Amount, to: Amount): Amount =>
    to.factor === 1 && from.factor > 1 && to.value < 1000
      ? { ...to, value: to.value * from.factor, factor: from.factor }
      : to
  return { low: borrow(high, low), high: borrow(low, high) }
}

interface Offer {
  salary: Salary
  weight: number
}

function offerOf(range: Range, text: string, hints: SalaryHints): Offer | undefined {
  const { low, high, start, end } = range
  const before = windowBefore(text, start)
  const after = windowAfter(text, end)
  if (isVetoedAfter(after)) return undefined
  const { pay, veto } = lastWords(before)
  if (veto >= pay && veto !== -1) return undefined
  const sign = pickWritten(low, high)
  const written = sign === '$' ? (dollarCode(before, after) ?? sign) : sign
  if (written === undefined) return undefined
  const context = text.slice(Math.max(0, start - 60), end + 40)
  const currency = resolveCurrency(written, { country: hints.country ?? null, context })
  const ends = endsOf(range, before, after)
  const top = Math.max(ends.min ?? 0, ends.max ?? 0)
  const named = intervalNear(text, range, before, after)
  const interval = named ?? (low.factor === 1e5 || low.factor === 1e7 ? 'year' : sizeInterval(top, currency))
  const salary: Salary = {
    ...ends,
    currency,
    interval,
    source: 'description',
    raw: text.slice(start, end).trim().slice(0, RAW_CHARS_MAX),
  }
  const hasContext = pay !== -1 || named !== null || hasPayWord(after)
  if (!hasContext && !speaksForItself(range, text, salary, hints)) return undefined
  if (!isPlausible(salary)) return undefined
  return { salary, weight: weightOf(range, before, after, named !== null) }
}

/** Stops at the start of the sentence or line, unless the line before is a heading for this one. */
function windowBefore(text: string, start: number): string {
  const window = text.slice(Math.max(0, start - WINDOW_CHARS), start)
  const cut = lastEnd(window, /[.!?;]\s+(?=\p{Lu})|\n(?=[^\n]*\S)/gu)
  return cut === -1 ? window : window.slice(cut)
}

function windowAfter(text: string, end: number): string {
  const window = text.slice(end, end + WINDOW_CHARS)
  const cut = window.search(/[.!?;]\s+\p{Lu}|\n/u)
  return cut === -1 ? window : window.slice(0, cut)
}

function pickWritten(low: Amount, high: Amount | undefined): string | undefined {
  const [a, b] = [low.currency, high?.currency]
  if (a === undefined || b === undefined) return a ?? b
  const isVague = a === '$' || a === '¥' || a === 'kr'
  return isVague ? b : a
}

const DOLLARS = '(USD|AUD|CAD|NZD|SGD|HKD|TWD|MXN|COP|CLP|ARS)'
const CODE_BEFORE = new RegExp(`(?<!\\p{L})${DOLLARS}[\\s:(]{0,2}$`, 'u')
const CODE_AFTER = new RegExp(`^.{0,20}?(?<!\\p{L})${DOLLARS}(?!\\p{L})`, 'u')

/** "CAD $30", "$15,000 mensuales MXN": a code next to the amount says which dollar or peso it is. */
function dollarCode(before: string, after: string): string | undefined {
  return (CODE_BEFORE.exec(before) ?? CODE_AFTER.exec(after))?.[1]
}

const UP_TO =
  /(?<![\p{L}])(?:up to|upto|to|max\.?|maximum(?: of)?|as much as|bis(?: zu)?|jusqu.?(?:à|au)?|hasta|fino a|até|tot|upp till|opptil|op til|do|до|less than|under|maximal|max(?:imum)? (?:salary|pay|rate))[\s:]{0,3}$/iu
const FROM =
  /(?<![\p{L}])(?:from|starting(?: (?:at|from|salary of|pay of|rate of))?|starts? (?:at|from)|at least|min\.?|minimum(?: of)?|no less than|above|over|ab|mindestens|à partir de|a partir (?:de|da)|desde|da|von|od|vanaf|från|fra|от|від|minimal|more than|min(?:imum)? (?:salary|pay|wage|rate)|mindest(?:gehalt|lohn|entgelt))[\s:]{0,3}$/iu

function endsOf({ low, high }: Range, before: string, after: string): Pick<Salary, 'min' | 'max'> {
  if (high !== undefined) {
    return { min: round(Math.min(low.value, high.value)), max: round(Math.max(low.value, high.value)) }
  }
  const value = round(low.value)
  if (UP_TO.test(before) || /^\s?(?:max|maximum)(?!\p{L})/iu.test(after)) return { min: null, max: value }
  const isOpen =
    low.isOpen ||
    FROM.test(before) ||
    /^(?:\s?\/?\s?\p{L}{1,6}){0,2}\s?\+(?:\s*$|[.,;)])|^\s?(?:and up|or more|minimum|以上|から|～$|~$)/iu.test(after)
  return isOpen ? { min: value, max: null } : { min: value, max: value }
}

/** 120.7 k is 120,700, not 120,700.00000000001. */
const round = (value: number) => Math.round(value * 100) / 100

/** The nearest interval word: first after the number, then between its ends, then before. */
function intervalNear(text: string, { low, high, end }: Range, before: string, after: string): Interval | null {
  const [next] = intervalsIn(after)
  const between = high === undefined ? [] : intervalsIn(text.slice(low.end, Math.min(high.start, end)))
  const isFactor = intervalsIn(text.slice(low.end - 4, low.end)).length > 0 && low.factor === 1e5
  if (next !== undefined && next.at <= 12) return next.interval
  if (between.length > 0) return between[0]!.interval
  if (isFactor) return 'year'
  const previous = intervalsIn(before).at(-1)
  if (previous !== undefined && next !== undefined)
    return before.length - previous.end <= next.at ? previous.interval : next.interval
  return (next ?? previous)?.interval ?? null
}

/** A text that is only a range, or a range that looks like annual pay: "$60,000 to $80,000", "A$120,000 - A$140,000 + super". */
function speaksForItself(
  { low, high, start, end }: Range,
  text: string,
  { interval }: Salary,
  { isPayField }: SalaryHints,
): boolean {
  const isWhole = end - start >= text.trim().length * 0.6
  const isTerse = text.trim().length <= TERSE_CHARS_MAX && interval === 'year'
  if (isPayField || isWhole || isTerse) return true
  return high !== undefined && interval === 'year' && low.factor < 1e6
}

function weightOf({ high }: Range, before: string, after: string, hasInterval: boolean): number {
  // Words before another number belong to that number: "OTE: $300K ($150K base)".
  const near = before.slice(lastEnd(before, /\d/g) + 1)
  const isBase = lastEnd(near, BASE) !== -1 || lastEnd(after.slice(0, 15), BASE) !== -1
  const isOnTarget = lastEnd(near, ON_TARGET) > lastEnd(near, BASE) || /^\s?(?:ote|on[ -]target|total)/i.test(after)
  return (
    (isBase ? 8 : 0) -
    (isOnTarget ? 16 : 0) +
    (high === undefined ? 0 : 4) +
    (hasInterval ? 2 : 0) +
    (hasPayWord(before) ? 1 : 0)
  )
}
