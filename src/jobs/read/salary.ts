/** The pay of a posting: numbers from the board's own fields first, then text. */

import { currencyOf } from './currency.ts'
import { isPlausible, PER_YEAR, sizeInterval } from './pay-size.ts'
import { intervalOf } from './pay-words.ts'
import type { RawPosting, RawSalary, Salary } from './posting.ts'
import { parseSalaryText } from './salary-text.ts'

const RAW_CHARS_MAX = 200

/** A given field wins, however little it says; without one, the description is searched. */
export function salaryOf(
  given: RawPosting['salary'],
  description: string | null,
  country: string | null,
): Salary | null {
  if (typeof given === 'string') {
    const found = parseSalaryText(given, { country, isPayField: true })
    if (found !== null) return { ...found, source: 'structured' }
  } else if (given !== null && given !== undefined) {
    const found = structuredSalary(given, country)
    if (found !== null) return found
  }
  return description === null ? null : parseSalaryText(description, { country })
}

/** Numbers as given by a board: 0 means unknown, the ends may be swapped, and implausible amounts are rejected. */
export function structuredSalary(given: RawSalary, country: string | null = null): Salary | null {
  const raw = typeof given.raw === 'string' && given.raw.trim() !== '' ? given.raw.trim().slice(0, RAW_CHARS_MAX) : null
  const source = given.isEstimate === true ? 'estimated' : 'structured'
  const [first, second] = [numberOf(given.min), numberOf(given.max)]
  if (first === null && second === null) {
    const range = [given.min, given.max, raw].find((text) => typeof text === 'string' && /\d/.test(text))
    if (typeof range !== 'string') return null
    const known = currencyOf(given.currency)
    const hints = { country, isPayField: true }
    const text = parseSalaryText(range, hints) ?? (known === null ? null : parseSalaryText(`${known} ${range}`, hints))
    if (text === null) return null
    const currency = known ?? text.currency
    return { ...text, currency, interval: intervalOf(given.interval) ?? text.interval, source, raw: raw ?? text.raw }
  }
  const isSwapped = first !== null && second !== null && first > second
  const [min, max] = isSwapped ? [second, first] : [first, second]
  const currency = currencyOf(given.currency)
  const interval = intervalOf(given.interval) ?? sizeInterval(max ?? min ?? 0, currency)
  const salary: Salary = { min, max, currency, interval, source, raw }
  return isPlausible(salary) ? salary : null
}

/** "80000-100000" is left to the text parser, so it is not a number here. */
function numberOf(value: number | string | null | undefined): number | null {
  const number = typeof value === 'string' && /^\s*\d{1,12}(?:\.\d{1,6})?\s*$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : null
}

export function annualSalary(salary: Salary | null): { min: number | null; max: number | null } {
  if (salary === null || salary.interval === null) return { min: null, max: null }
  const times = PER_YEAR[salary.interval]
  const annual = (amount: number | null) => (amount === null ? null : Math.round(amount * times * 100) / 100)
  return { min: annual(salary.min), max: annual(salary.max) }
}
