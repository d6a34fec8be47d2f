import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatBytes, formatCount, formatDuration, formatMs, formatRate, formatRatio, plural } from './format.ts'

test('groups thousands', () => {
  assert.deepEqual([0, 7, 999, 1000, 1284, 1_234_567, -1500, 12.6].map(formatCount), [
    '0',
    '7',
    '999',
    '1,000',
    '1,284',
    '1,234,567',
    '-1,500',
    '13',
  ])
  assert.equal(formatCount(Number.NaN), '–')
})

test('shows rates with an appropriate number of digits', () => {
  assert.deepEqual([0, 0.25, 0.999, 3.7, 9.99, 41.4, 12_345].map(formatRate), [
    '0',
    '0.25',
    '1',
    '3.7',
    '10',
    '41',
    '12,345',
  ])
})

test('shows sizes in powers of ten and never as 1000 of a unit', () => {
  assert.deepEqual([0, 999, 1000, 3_100_000, 118_000_000, 999_999, 1e15].map(formatBytes), [
    '0 B',
    '999 B',
    '1 kB',
    '3.1 MB',
    '118 MB',
    '1 MB',
    '1 PB',
  ])
})

test('shows durations as a clock and with units', () => {
  assert.deepEqual([0, 25_000, 723_000, 3_849_000, 180_600_000].map(formatDuration), [
    '0:00',
    '0:25',
    '12:03',
    '1:04:09',
    '2d 02:10',
  ])
  assert.deepEqual([0.42, 182.4, 999.6, 2440, 59_990, 185_000, 3_840_000].map(formatMs), [
    '0.4 ms',
    '182 ms',
    '1 s',
    '2.4 s',
    '1 min 00 s',
    '3 min 05 s',
    '1 h 04 min',
  ])
})

test('never rounds a nearly full field up to 100 %', () => {
  assert.deepEqual([0, 0.00001, 0.12, 0.998, 0.999_999, 1].map(formatRatio), [
    '0 %',
    '0.1 %',
    '12 %',
    '99.8 %',
    '99.9 %',
    '100 %',
  ])
})

test('counts one page and two pages', () => {
  assert.deepEqual([plural(1, 'page'), plural(2000, 'page')], ['1 page', '2,000 pages'])
})
