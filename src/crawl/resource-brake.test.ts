import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ResourceBrake } from './resource-brake.ts'

test('a shortage halves the limit once, however many pages it affects, and the limit recovers later', () => {
  const brake = new ResourceBrake()
  assert.equal(brake.limit(0), Number.POSITIVE_INFINITY)
  assert.deepEqual([brake.refused(40, 0), brake.refused(39, 10), brake.limit(10)], [true, false, 20])
  assert.deepEqual([brake.refused(20, 1_500), brake.limit(1_500)], [true, 10])
  assert.equal(brake.limit(31_500), 13)
  for (let i = 0; i < 20; i++) brake.refused(1, 40_000 + i * 2_000)
  assert.equal(brake.limit(78_000), 1, 'one page is always allowed')
})
