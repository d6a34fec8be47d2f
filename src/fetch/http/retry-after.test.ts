import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseRetryAfterMs } from './retry-after.ts'

const NOW = Date.parse('Sun, 06 Nov 1994 08:49:37 GMT')
const HOUR = 3_600_000

describe('Retry-After', () => {
  const cases: Record<string, number | undefined> = {
    '120': 120_000,
    ' 5 ': 5000,
    '1.5': 1500,
    '0': 1000,
    '999999999999999999999999': HOUR,
    '-1': undefined,
    '': undefined,
    soon: undefined,
    '5 minutes': undefined,
    '0x10': undefined,
    Infinity: undefined,
    'Sun, 06 Nov 1994 08:50:37 GMT': 60_000,
    'Sunday, 06-Nov-94 08:50:37 GMT': 60_000,
    'Sun Nov  6 08:50:37 1994': 60_000,
    'Sun, 06 Nov 1994 08:00:00 GMT': 1000,
    'Fri, 31 Dec 9999 23:59:59 GMT': HOUR,
    'Sun, 99 Nov 1994 08:50:37 GMT': undefined,
    '1994-11-06T08:50:37Z': undefined,
  }
  for (const [value, expectedMs] of Object.entries(cases)) {
    it(`reads ${JSON.stringify(value)} as ${expectedMs} ms`, () => {
      assert.equal(parseRetryAfterMs(value, NOW, HOUR), expectedMs)
    })
  }

  it('returns undefined without a header', () => assert.equal(parseRetryAfterMs(undefined, NOW, HOUR), undefined))
})
