/** Dates as boards write them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseEndDate, parsePostedDate } from './dates.ts'

const NOW = new Date('2026-03-10T12:00:00Z')
const read = (value: string | number) => {
  const found = parsePostedDate(value, NOW)
  return found === null ? null : [found.date, found.precision]
}

test('reads instants and converts them to UTC', () => {
  const at = '2026-03-01T09:30:00.000Z'
  const cases = [
    '2026-03-01T09:30:00Z',
    '2026-03-01T10:30:00+01:00',
    '2026-03-01T04:30:00-0500',
    '2026-03-01 09:30:00 UTC',
    '2026-03-01T09:30',
    'Sun, 01 Mar 2026 09:30:00 +0000',
    'Sun, 01 Mar 2026 09:30:00 GMT',
    '1 Mar 2026 04:30:00 EST',
    '1772357400',
    '1772357400000',
  ]
  for (const text of cases) assert.deepEqual(read(text), [at, 'instant'], text)
  assert.deepEqual(read(1_772_357_400), [at, 'instant'])
  assert.deepEqual(read(1_772_357_400_000), [at, 'instant'])
})

test('a day stays a day', () => {
  const cases = [
    '2026-03-01',
    '2026/3/1',
    '1.3.2026',
    '01.03.2026',
    'March 1, 2026',
    'Mar 1st, 2026',
    '1 March 2026',
    '1. März 2026',
    '1 mars 2026',
    '20260301',
    '2026年3月1日',
  ]
  for (const text of cases) assert.deepEqual(read(text), ['2026-03-01', 'day'], text)
  assert.deepEqual(read('3/14/2026'), ['2026-03-14', 'day'])
  assert.deepEqual(read('14/3/2026'), ['2026-03-14', 'day'])
})

test('relative dates are marked as such', () => {
  const cases: readonly [string, string][] = [
    ['Posted Today', '2026-03-10'],
    ['Just posted', '2026-03-10'],
    ['Posted Yesterday', '2026-03-09'],
    ['3 days ago', '2026-03-07'],
    ['Active 3 days ago', '2026-03-07'],
    ['3d', '2026-03-07'],
    ['2 weeks ago', '2026-02-24'],
    ['a month ago', '2026-02-08'],
    ['vor 3 Tagen', '2026-03-07'],
    ['il y a 3 jours', '2026-03-07'],
    ['hace 3 días', '2026-03-07'],
    ['3天前', '2026-03-07'],
    ['3日前', '2026-03-07'],
    ['5 hours ago', '2026-03-10T07:00:00.000Z'],
  ]
  for (const [text, date] of cases) assert.deepEqual(read(text), [date, 'relative'], text)
})

test('30+ days ago is a bound, not a day', () => {
  for (const text of ['Posted 30+ Days Ago', '30+ days ago', '30d+']) {
    assert.deepEqual(parsePostedDate(text, NOW), { date: '2026-02-08', precision: 'relative', isOlder: true }, text)
  }
  assert.equal(parsePostedDate('3 days ago', NOW)?.isOlder, false)
})

test('invalid and ambiguous dates are null', () => {
  for (const text of [
    '',
    'soon',
    '2026-02-30',
    '2026-13-01',
    '3/4/2026',
    'Engineer II',
    '-1',
    '0',
    '99999999999999999',
    'in 3 days',
  ])
    assert.equal(read(text), null, text)
  assert.equal(parsePostedDate(new Date(Number.NaN), NOW), null)
  assert.equal(parsePostedDate(Number.NaN, NOW), null)
})

test('an end date is never made up', () => {
  assert.equal(parseEndDate('2026-04-01', NOW), '2026-04-01')
  assert.equal(parseEndDate('3 days ago', NOW), null)
  assert.equal(parseEndDate(null, NOW), null)
})
