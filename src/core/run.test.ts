import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { newRunId } from './run.ts'

const AT_MS = Date.UTC(2026, 10, 15, 11, 35, 1, 999)

describe('newRunId', () => {
  it('is the second in UTC and four letters or digits of chance', () => {
    assert.equal(
      newRunId(AT_MS, () => 0),
      '20261115_113501_0000',
    )
    assert.equal(
      newRunId(AT_MS, () => 1 - Number.EPSILON),
      '20261115_113501_zzzz',
    )
    assert.match(newRunId(AT_MS), /^20261115_113501_[0-9a-z]{4}$/)
  })

  it('sorts by time, whatever chance says', () => {
    const ids = [0, 1000, 60_000, 86_400_000, 400 * 86_400_000].map((laterMs, i) =>
      newRunId(AT_MS + laterMs, () => 0.9 - i / 10),
    )
    assert.deepEqual(ids.toSorted(), ids)
  })

  it('tells runs of one second apart', () => {
    // 36⁴ suffixes: of 100 ids, 2 are equal in 0.3 % of all cases; 10 are not in this universe.
    const ids = new Set(Array.from({ length: 100 }, () => newRunId(AT_MS)))
    assert.ok(ids.size > 90, `${ids.size} of 100`)
    let step = 0
    const spread = new Set(Array.from({ length: 1000 }, () => newRunId(AT_MS, () => step++ / 1000)))
    assert.equal(spread.size, 1000)
  })

  it('is a name for a folder on every system', () => {
    for (let i = 0; i < 50; i++) assert.match(newRunId(AT_MS + i * 12_345_678), /^[0-9a-z_]{20}$/)
  })
})
