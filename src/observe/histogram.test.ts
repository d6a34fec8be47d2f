import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHistogram } from './histogram.ts'

test('returns quantiles within 3 % of the true ones', () => {
  const histogram = createHistogram()
  for (let ms = 1; ms <= 10_000; ms++) histogram.add(ms)
  for (const [q, exact] of [
    [0.5, 5000],
    [0.95, 9500],
    [0.01, 100],
  ] as const) {
    const error = Math.abs(histogram.quantile(q) - exact) / exact
    assert.ok(error < 0.03, `p${q * 100} is ${histogram.quantile(q)}, not ${exact}`)
  }
})

test('counts values outside its range at the ends', () => {
  const histogram = createHistogram()
  for (const ms of [0, -5, 0.001, 1e12]) histogram.add(ms)
  assert.equal(histogram.count, 4)
  assert.ok(histogram.quantile(0.5) < 0.2)
  assert.ok(histogram.quantile(1) > 3_000_000)
})

test('returns 0 before anything was added', () => {
  assert.equal(createHistogram().quantile(0.95), 0)
})
