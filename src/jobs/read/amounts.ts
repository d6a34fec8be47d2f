/** Amounts of money in text: number, currency, factor (k, 万, LPA) and position. */
import { type CurrencyFound, currencyAfter, currencyBefore, type Written } from './currency.ts'

export interface Amount {
  value: number
  currency: Written | undefined
  /** 1000 for "k", as written; the other end of a range may borrow it. */
  factor: number
  /** "100k+" */
  isOpen: boolean
  /** Where the currency or number starts, and where the whole amount ends. */
  start: number
  end: number
}

/** A text with more amounts is a price list. */
const AMOUNTS_MAX = 400

const GAP = ' \u00a0\u202f\u2009'
const NUMBER = new RegExp(`\\d{1,3}(?:[${GAP}]\\d{3})+(?!\\d)(?:[.,]\\d{1,2}(?!\\d))?|\\d+(?:[.,'’]\\d+)*`, 'g')

const FACTORS: readonly (readonly [RegExp, number])[] = [
  [
    /^\s?(?:k|K|тыс|tys\.?|tis\.?)(?![\p{L}\p{N}])|^[kK](?=[€£$])|^\s?[kK](?=(?:EUR|USD|GBP|PLN|CHF|SEK|CZK|AUD|CAD)(?!\p{L}))/u,
    1e3,
  ],
  [/^\s?T(?=€|EUR)/u, 1e3],
  [/^\s?(?:mil)(?=\s?(?:kr|euros?|pesos))/u, 1e3],
  [/^\s?(?:lpa|lacs?|lakhs?)(?![\p{L}])|^L(?=\s?(?:PA|p\.a|per|\/|-|–|$))/iu, 1e5],
  [/^\s?(?:crores?|cr)(?![\p{L}])/iu, 1e7],
  [/^\s?(?:万|萬|만)/u, 1e4],
  [/^\s?억/u, 1e8],
  [/^\s?(?:m|mm|jt|juta|mn|mio|million|millions|millionen|mln)(?![\p{L}\p{N}])/iu, 1e6],
  [/^\s?(?:b|bn|billion|billions|mrd)(?![\p{L}\p{N}])/iu, 1e9],
]

/** "95'000.–", "2.800,-": a dash instead of cents. */
const NO_CENTS = /^[.,][-\u2010-\u2015]{1,2}(?!\d)/

/** "100k+", but not "100k + bonus" or "100k+ super", where the plus adds something. */
const OPEN =
  /^\+(?!\p{L}|\d|\s?(?:\p{L}+ )?(?:bonus|equity|super|commission|benefits|stock|ote|tips|holiday|car|pension|rsu|\d))|^\s\+\s*$/iu

/** The amounts in a text, in order; includes numbers without a currency, which may be one end of a range. */
export function amountsIn(text: string): Amount[] {
  const amounts: Amount[] = []
  for (const match of text.matchAll(NUMBER)) {
    if (match[0].length > 20) continue
    const amount = amountAt(text, match.index, match[0])
    if (amount !== undefined) amounts.push(amount)
    if (amounts.length === AMOUNTS_MAX) break
  }
  return amounts
}

function amountAt(text: string, at: number, digits: string): Amount | undefined {
  const value = numberIn(digits)
  if (value === undefined) return undefined
  const before = text.slice(Math.max(0, at - 18), at)
  const prefix =
    currencyBefore(before) ??
    rand(before, digits, /^\s?k(?!\p{L})/iu.test(text.slice(at + digits.length, at + digits.length + 4)))
  // "Q3", "v2" and the like are not amounts.
  if (prefix === undefined && /[\p{L}\p{N}_#]$/u.test(before) && !/\p{Script=Han}|[가-힣ァ-ヶぁ-ん]$/u.test(before))
    return undefined
  let end = at + digits.length
  end += NO_CENTS.exec(text.slice(end, end + 4))?.[0].length ?? 0
  const factor = FACTORS.find(([pattern]) => pattern.test(text.slice(end, end + 16)))
  const factorText = factor === undefined ? '' : factor[0].exec(text.slice(end, end + 16))![0]
  end += factorText.length
  let isOpen = OPEN.test(text.slice(end, end + 24))
  if (isOpen) end = text.indexOf('+', end) + 1
  const after = currencyAfter(text.slice(end, end + 20))
  if (after !== undefined) end += after.chars
  isOpen ||= after !== undefined && OPEN.test(text.slice(end, end + 24))
  const isIndian = factor !== undefined && (factor[1] === 1e5 || factor[1] === 1e7)
  const isYen = factor?.[1] === 1e4
  const currency =
    pick(prefix?.currency, after?.currency) ??
    (isIndian ? 'INR' : isYen && factorText.includes('만') ? 'KRW' : undefined)
  return {
    value: value * (factor?.[1] ?? 1),
    currency,
    factor: factor?.[1] ?? 1,
    isOpen,
    start: at - (prefix?.chars ?? 0),
    end,
  }
}

/** South Africa's R is also an ordinary letter: it counts only before a number written as money. */
function rand(before: string, digits: string, isThousands: boolean): CurrencyFound | undefined {
  const sign = /(?<![\p{L}\p{N}])R ?$/u.exec(before)
  return sign !== null && (/[\s,.]\d{3}/u.test(digits) || isThousands)
    ? { currency: 'ZAR', chars: sign[0].length }
    : undefined
}

/** "$110,000 AUD": a code is more specific than a sign. */
function pick(before: Written | undefined, after: Written | undefined): Written | undefined {
  const isVague = before === undefined || before === '$' || before === '¥' || before === 'kr'
  return isVague ? (after !== undefined && after !== '$' ? after : (before ?? after)) : before
}

/** The length of the last group decides whether `.` or `,` groups digits: three digits mean thousands. */
function numberIn(digits: string): number | undefined {
  const marks = digits.replace(/\d+/g, '')
  const groups = digits.split(/[^\d]/)
  const last = groups.at(-1)!
  if (marks === '') return Number(digits)
  const mark = marks.at(-1)!
  const isMixed = [...marks].some((other) => other !== mark)
  const isDecimal = (mark === '.' || mark === ',') && (isMixed || last.length !== 3 || groups[0] === '0')
  if (!isDecimal) return isGrouped(groups) ? Number(groups.join('')) : undefined
  const whole = groups.slice(0, -1)
  if ((!isMixed && whole.length > 1) || last.length > 3 || !isGrouped(whole)) return undefined
  return Number(`${whole.join('')}.${last}`)
}

/** 120,000 or, in India, 12,00,000. */
function isGrouped(groups: readonly string[]): boolean {
  const [first = '', ...others] = groups
  if (others.length === 0) return true
  if (first.length > 3 || others.at(-1)!.length !== 3) return false
  return others.slice(0, -1).every(({ length }) => length === 3 || length === 2)
}
