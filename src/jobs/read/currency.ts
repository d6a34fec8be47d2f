/** Currencies: how they are written, and which one is meant. */
import { CURRENCIES } from './pay-size.ts'

/** Spellings of each currency. */
const SPELLINGS: Readonly<Record<string, string>> = {
  USD: 'us$|us $|usd$|dollars|us dollars',
  AUD: 'a$|au$|aud$',
  NZD: 'nz$|nzd$',
  CAD: 'c$|ca$|cad$|can$|cdn$',
  SGD: 's$|sg$|sgd$',
  HKD: 'hk$|hkd$',
  TWD: 'nt$',
  BRL: 'r$|reais',
  MXN: 'mx$|mxn$',
  ARS: 'ar$',
  CLP: 'clp$',
  COP: 'cop$',
  JPY: 'jp¥|円|yen',
  CNY: 'cn¥|rmb¥|rmb|人民币|元|yuan',
  GBP: '£|pounds|pounds sterling',
  EUR: '€|euro|euros|eur',
  INR: '₹|rs.|rs|inr.|rupees',
  KRW: '₩|원|만원',
  RUB: '₽|руб',
  TRY: '₺|tl',
  ILS: '₪|nis',
  NGN: '₦',
  PHP: '₱',
  THB: '฿',
  VND: '₫',
  UAH: '₴|грн',
  PLN: 'zł|zl|złotych',
  CZK: 'kč|kc|korun',
  HUF: 'ft',
  RON: 'lei',
  MYR: 'rm',
  IDR: 'rp',
  CHF: 'sfr.|sfr|fr.|franken',
  SEK: 'kronor',
  AED: 'dhs|aed',
  $: '$',
  '¥': '¥|￥',
  kr: 'kr|kr.|kroner',
  KES: 'ksh',
  PEN: 's/|s/.',
}

const WRITTEN: Record<string, string> = {}
for (const [code, spellings] of Object.entries(SPELLINGS)) for (const one of spellings.split('|')) WRITTEN[one] = code
for (const code of CURRENCIES) WRITTEN[code.toLowerCase()] ??= code

/** Signs need no word boundary; the others are words, and "alarm" does not contain "rm". */
const escaped = (text: string) => text.replace(/[$.]/g, '\\$&')
const written = Object.keys(WRITTEN).sort((a, b) => b.length - a.length)
const alternatives = written.map(escaped).join('|')
const BEFORE = new RegExp(`(?<![\\p{L}\\p{N}])(?:${alternatives})[\\s:\\u00a0]{0,2}$`, 'iu')
const SIGN_BEFORE = /[$£€₹¥￥₩₱₦₪₺][\s\u00a0]{0,2}$/u
const AFTER = new RegExp(`^[\\s\\u00a0]{0,2}\\(?(?:${alternatives})(?![\\p{L}])`, 'iu')
const AFTER_CJK = /^[\s]{0,1}(?:円|元|원)/u

/** `$`, `¥` and `kr` are kept as they are: the context decides which currency they mean. */
export type Written = string

export interface CurrencyFound {
  currency: Written
  chars: number
}

/** The currency at the end of this text (the text before a number), and its length. */
export function currencyBefore(text: string): CurrencyFound | undefined {
  const found = BEFORE.exec(text) ?? SIGN_BEFORE.exec(text)
  if (found === null) return undefined
  return { currency: WRITTEN[found[0].replace(/[\s:\u00a0]+$/, '').toLowerCase()]!, chars: found[0].length }
}

/** The currency at the start of this text (the text after a number). */
export function currencyAfter(text: string): CurrencyFound | undefined {
  const found = AFTER.exec(text) ?? AFTER_CJK.exec(text)
  if (found === null) return undefined
  return { currency: WRITTEN[found[0].trim().replace('(', '').toLowerCase()]!, chars: found[0].length }
}

const KR: Readonly<Record<string, string>> = { SE: 'SEK', NO: 'NOK', DK: 'DKK', IS: 'ISK' }
const CHINESE = /薪|元|人民币|工资|万\/年/
const SWEDISH = /månad|lön|timme|vecka/i
const NORWEGIAN = /lønn|i måneden|i året|per måned|norsk|(?<!\p{L})kr\.? ?\d{1,3} \d{3}/iu
const DANISH = /\bløn\b|pr\. |om måneden|om året|dansk|i timen|(?<!\p{L})kr\.(?!\p{L})/iu
const PAKISTANI = /\b(?:pakistan|lahore|karachi|islamabad)\b/i

/** The ISO code of a currency as written, given the country of the job and the surrounding text. */
export function resolveCurrency(
  currency: Written,
  { country, context }: { country?: string | null; context: string },
): string {
  if (currency === '$') return 'USD'
  if (currency === '¥') return country === 'CN' || (country !== 'JP' && CHINESE.test(context)) ? 'CNY' : 'JPY'
  if (currency === 'INR' && /\brs\b/i.test(context)) return country === 'PK' || PAKISTANI.test(context) ? 'PKR' : 'INR'
  if (currency !== 'kr') return currency
  if (country !== undefined && country !== null && Object.hasOwn(KR, country)) return KR[country]!
  if (SWEDISH.test(context)) return 'SEK'
  return DANISH.test(context) ? 'DKK' : NORWEGIAN.test(context) ? 'NOK' : 'SEK'
}

/** The ISO code for the value of a board's currency field. */
export function currencyOf(value: string | null | undefined): string | null {
  if (typeof value !== 'string') return null
  const text = value.trim()
  const code = Object.hasOwn(WRITTEN, text.toLowerCase()) ? WRITTEN[text.toLowerCase()]! : text.toUpperCase()
  return /^[A-Z]{3}$/.test(code) ? code : code === '$' ? 'USD' : code === '¥' ? 'JPY' : null
}
