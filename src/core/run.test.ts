import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newRunId } from './run.ts'

const AT_MS = Date.UTC(2026, 10, 15, 11, 35, 1, 999)

describe('newRunId', () => {
  it('consists of the second in UTC, the milliseconds, and two random letters or digits', () => {
    assert.equal(
      newRunId(AT_MS, () => 0),
      '20261115_113501_rr00',
    )
    assert.equal(
      newRunId(AT_MS - 999, () => 1 - Number.EPSILON),
      '20261115_113501_00zz',
    )
    assert.match(newRunId(AT_MS), /^20261115_113501_rr[0-9a-z]{2}$/)
  })

  it('sorts by time to the millisecond, whatever the random part', () => {
    const laterMs = [-999, -998, -500, -100, 0, 1, 1000, 60_000, 86_400_000, 400 * 86_400_000]
    const ids = laterMs.map((ms, i) => newRunId(AT_MS + ms, () => 0.95 - i / 20))
    assert.deepEqual(ids.toSorted(), ids)
    assert.equal(new Set(ids).size, ids.length)
  })

  it('distinguishes runs of the same millisecond by the random part', () => {
    let step = 0
    const ids = new Set(Array.from({ length: 1296 }, () => newRunId(AT_MS, () => (step++ + 0.5) / 1296)))
    assert.equal(ids.size, 1296)
    assert.ok(new Set(Array.from({ length: 100 }, () => newRunId(AT_MS))).size > 50) // about 96 are expected
  })

  it('is a valid folder name on every system', () => {
    for (let i = 0; i < 50; i++) assert.match(newRunId(AT_MS + i * 12_345_678), /^[0-9a-z_]{20}$/)
  })
})
