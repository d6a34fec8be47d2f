/** Plausible amounts of pay per currency, and the interval that an amount suggests. */
import type { Interval, Salary } from './posting.ts'

/** Approximate units per US dollar; only the order of magnitude matters. */
const PER_DOLLAR = table(`
  USD 1, EUR 1, GBP 1, CHF 1, CAD 1, AUD 1, NZD 1, SGD 1, JPY 150, CNY 7, INR 85, PKR 280, BDT 120,
  LKR 300, NPR 135, KRW 1350, TWD 32, HKD 8, SEK 10, NOK 10, DKK 7, ISK 140, PLN 4, CZK 23, HUF 360,
  RON 4.6, BGN 1.8, RSD 108, UAH 41, RUB 90, TRY 35, ILS 3.7, AED 3.7, SAR 3.75, QAR 3.6, KWD 0.3,
  BHD 0.4, OMR 0.4, EGP 50, MAD 10, NGN 1500, KES 130, GHS 15, ZAR 18, MXN 18, BRL 5.5, ARS 1000,
  CLP 950, COP 4100, PEN 3.7, UYU 40, CRC 510, DOP 60, GTQ 7.7, PHP 57, IDR 16000, MYR 4.5, THB 35,
  VND 25000, KZT 500, GEL 2.7, JOD 0.7, TND 3.1
`)

export const CURRENCIES: readonly string[] = [...PER_DOLLAR.keys()]

/** Currencies in which hourly and yearly pay can be told apart by size. */
const MAJOR = new Set(['USD', 'EUR', 'GBP', 'CHF', 'CAD', 'AUD', 'NZD', 'SGD'])

/** From this amount on, it is annual pay. In these currencies a month's pay may be as large as a year's in dollars. */
const YEAR_MIN = table(`
  JPY 1500000, KRW 12000000, INR 200000, PKR 600000, SEK 150000, NOK 150000, DKK 150000, CNY 80000,
  TWD 400000, HKD 150000, CZK 300000, HUF 3500000, PLN 50000, BRL 50000, MXN 150000, ZAR 150000,
  PHP 300000, THB 400000, RUB 800000, TRY 600000, ILS 100000, AED 100000, SAR 100000, RON 50000
`)
const YEAR_MIN_DOLLARS = 30_000
const HOUR_MAX_DOLLARS = 350

/** The same job never pays ten times as much: two numbers that far apart are unrelated. */
const SPREAD_MAX = 10
const ANNUAL_DOLLARS = { min: 1000, max: 2_000_000 }

/** Intervals per year: weeks of 40 hours, no holidays. */
export const PER_YEAR: Readonly<Record<Interval, number>> = { year: 1, month: 12, week: 52, day: 260, hour: 2080 }

function table(text: string): ReadonlyMap<string, number> {
  return new Map(text.split(',').map((pair) => [pair.trim().slice(0, 3), Number(pair.trim().slice(4))]))
}

/** The interval that an amount suggests; null in between, where it would be a guess. */
export function sizeInterval(amount: number, currency: string | null): Interval | null {
  const isMajor = currency === null || MAJOR.has(currency)
  if (isMajor && amount <= HOUR_MAX_DOLLARS) return 'hour'
  const yearMin =
    currency === null
      ? YEAR_MIN_DOLLARS
      : (YEAR_MIN.get(currency) ?? YEAR_MIN_DOLLARS * Math.max(1, perDollar(currency) / 4))
  return amount >= yearMin ? 'year' : null
}

const perDollar = (currency: string | null): number => (currency === null ? 1 : (PER_DOLLAR.get(currency) ?? 1))

/** Whether someone could be paid this. For an unknown currency, any amount is plausible. */
export function isPlausible({
  min,
  max,
  currency,
  interval,
}: Pick<Salary, 'min' | 'max' | 'currency' | 'interval'>): boolean {
  if (min !== null && max !== null && max / min > SPREAD_MAX) return false
  const scale = perDollar(currency)
  const times = interval === null ? 1 : PER_YEAR[interval]
  const low = ((min ?? max ?? 0) * times) / scale
  const high = ((max ?? min ?? 0) * times) / scale
  if (currency !== null && !PER_DOLLAR.has(currency)) return low > 0
  const isMinor = currency !== null && !MAJOR.has(currency)
  // Purchasing power differs from the exchange rate in other currencies.
  return low >= ANNUAL_DOLLARS.min / (isMinor || interval === null ? 10 : 1) && high <= ANNUAL_DOLLARS.max
}
