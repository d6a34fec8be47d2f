/** Pay given as numbers by boards. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RawSalary } from './posting.ts'
import { annualSalary, salaryOf, structuredSalary } from './salary.ts'

const short = (raw: RawSalary) => {
  const found = structuredSalary(raw)
  return found === null ? null : [found.min, found.max, found.currency, found.interval]
}

test('recognises the interval names that boards use', () => {
  const intervals: readonly [string, string | null][] = [
    ['per-year-salary', 'year'],
    ['per-month-salary', 'month'],
    ['per-hour-wage', 'hour'],
    ['1 YEAR', 'year'],
    ['1-hour', 'hour'],
    ['1 WEEK', 'week'],
    ['YEARLY', 'year'],
    ['HOURLY', 'hour'],
    ['DAILY', 'day'],
    ['p.a.', 'year'],
    ['MONTH', 'month'],
    ['annually', 'year'],
  ]
  for (const [interval, expected] of intervals) {
    assert.equal(structuredSalary({ min: 4000, max: 5000, currency: 'BRL', interval })?.interval, expected, interval)
  }
})

test('infers a missing interval from the amount, and leaves it open in between', () => {
  assert.deepEqual(short({ min: 25, max: 32, currency: 'USD' }), [25, 32, 'USD', 'hour'])
  assert.deepEqual(short({ min: 90_000, max: 120_000, currency: 'USD' }), [90_000, 120_000, 'USD', 'year'])
  assert.deepEqual(short({ min: 4000, max: 5000, currency: 'EUR' }), [4000, 5000, 'EUR', null])
  assert.deepEqual(short({ min: 45_000, max: 55_000, currency: 'SEK' }), [45_000, 55_000, 'SEK', null])
})

test('swaps ends, reads numbers in text, and rejects implausible amounts', () => {
  assert.deepEqual(short({ min: '120000', max: '90000', currency: 'usd', interval: 'year' }), [
    90_000,
    120_000,
    'USD',
    'year',
  ])
  assert.deepEqual(short({ min: '80000-100000', currency: 'USD', interval: 'YEAR' }), [80_000, 100_000, 'USD', 'year'])
  assert.deepEqual(short({ min: 0, max: 90_000, currency: 'USD', interval: 'year' }), [null, 90_000, 'USD', 'year'])
  assert.equal(short({ min: 0, max: 0, currency: 'USD' }), null)
  assert.equal(short({ min: 10_000, max: 900_000, currency: 'USD', interval: 'year' }), null)
  assert.equal(short({ min: 9_000_000, max: 9_500_000, currency: 'USD', interval: 'year' }), null)
  assert.equal(short({ min: Number.NaN, max: Number.POSITIVE_INFINITY }), null)
})

test('a field from the board takes precedence over the description', () => {
  const description = 'The salary is $50,000 - $60,000 per year.'
  assert.deepEqual(salaryOf({ min: 70_000, currency: 'USD', isEstimate: true }, description, null)?.source, 'estimated')
  assert.equal(salaryOf('£30,000 a year', description, null)?.currency, 'GBP')
  assert.equal(salaryOf('£30,000 a year', description, null)?.source, 'structured')
  assert.equal(salaryOf(undefined, description, null)?.source, 'description')
  assert.equal(salaryOf('competitive', null, null), null)
})

test('a year has 12 months, 52 weeks, 260 days and 2080 hours', () => {
  const annual = (interval: 'year' | 'month' | 'week' | 'day' | 'hour' | null) =>
    annualSalary({ min: 10, max: null, currency: 'USD', interval, source: 'structured', raw: null })
  assert.deepEqual(
    ['year', 'month', 'week', 'day', 'hour'].map((each) => annual(each as 'year').min),
    [10, 120, 520, 2600, 20_800],
  )
  assert.deepEqual(annual(null), { min: null, max: null })
  assert.equal(annual('year').max, null)
})
