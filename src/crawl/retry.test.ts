import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backoffMs } from '../core/backoff.ts'
import { ERRORS, type ErrorCode } from '../core/error-table.ts'
import { type ErrorDetails, ScrapeError } from '../core/errors.ts'
import { decide, type RetryLimits } from './retry.ts'

const NOW_MS = 1_700_000_000_000
const limits: RetryLimits = { retries: 3, backoff: 500, backoffMax: 60_000, retryAfterMax: 3_600_000 }
const ONE = () => 1 // the ceiling of every jitter

interface Case {
  title: string
  code: ErrorCode
  attempt?: number
  details?: ErrorDetails
  /** `retry +500`, `postpone +1000`, `dead`, `halt`. */
  expected: string
}

const cases: Case[] = [
  { title: 'retries a timeout after a backoff', code: 'E_TIMEOUT_HEADERS', expected: 'retry +500' },
  { title: 'doubles the backoff with every try', code: 'E_CONNECTION', attempt: 3, expected: 'retry +2000' },
  { title: 'gives up after the last try', code: 'E_CONNECTION', attempt: 4, expected: 'dead' },
  { title: 'retries what another session may get', code: 'E_FORBIDDEN', expected: 'retry +500' },
  { title: 'gives up on what another session did not get either', code: 'E_FORBIDDEN', attempt: 4, expected: 'dead' },
  { title: 'tries a broken encoding only twice', code: 'E_ENCODING', attempt: 2, expected: 'dead' },
  {
    title: 'takes Retry-After as the least wait',
    code: 'E_SERVER',
    details: { retryAfterMs: 9000 },
    expected: 'retry +9000',
  },
  {
    title: 'keeps a backoff longer than Retry-After',
    code: 'E_SERVER',
    details: { retryAfterMs: 9 },
    expected: 'retry +500',
  },
  {
    title: 'obeys an absurd Retry-After only up to the limit',
    code: 'E_SERVER',
    details: { retryAfterMs: 1e12 },
    expected: 'retry +3600000',
  },
  {
    title: 'postpones a throttled task at no cost, however many tries it had',
    code: 'E_RATE_LIMITED',
    attempt: 4,
    details: { retryAfterMs: 5000 },
    expected: 'postpone +5000',
  },
  {
    title: 'postpones what was turned away while its host may be waited for',
    code: 'E_CAPTCHA',
    attempt: 4,
    details: { retryAfterMs: 2000 },
    expected: 'postpone +2000',
  },
  {
    title: 'charges a try for a wait longer than the limit',
    code: 'E_RATE_LIMITED',
    details: { status: 429, retryAfterMs: 1e12 },
    expected: 'retry +3600000',
  },
  {
    title: 'ends a task whose wait is always longer than the limit',
    code: 'E_RATE_LIMITED',
    attempt: 4,
    details: { status: 429, retryAfterMs: 1e12 },
    expected: 'dead',
  },
  {
    title: 'never charges a page that was not sent, however long its host is paused',
    code: 'E_RATE_LIMITED',
    attempt: 4,
    details: { retryAfterMs: 1e12 },
    expected: 'postpone +1000000000000',
  },
  { title: 'charges a try when nobody knows how long to wait', code: 'E_RATE_LIMITED', expected: 'retry +500' },
  {
    title: 'never comes back in the past',
    code: 'E_RATE_LIMITED',
    details: { retryAfterMs: -5 },
    expected: 'postpone +0',
  },
  { title: 'drops a missing page at once', code: 'E_NOT_FOUND', expected: 'dead' },
  { title: 'stops the run when the output cannot be written', code: 'E_OUTPUT', expected: 'halt' },
]

for (const { title, code, attempt = 1, details = {}, expected } of cases) {
  test(title, () => {
    const decision = decide(new ScrapeError(code, 'x', details), { attempt }, limits, NOW_MS, ONE)
    const found = 'atMs' in decision ? `${decision.kind} +${decision.atMs - NOW_MS}` : decision.kind
    assert.equal(found, expected)
  })
}

test('decides about every code, and ends each within the allowed attempts', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const { kind } = decide(new ScrapeError(code, 'x'), { attempt: limits.retries + 1 }, limits, NOW_MS)
    assert.ok(kind === 'dead' || kind === 'halt', `${code}: ${kind}`)
  }
})

test('draws the backoff from the whole span up to its ceiling', () => {
  const span = { delayMsMin: 500, delayMsMax: 60_000 }
  assert.equal(
    backoffMs(1, span, () => 0),
    0,
  )
  assert.equal(backoffMs(1, span, ONE), 500)
  assert.equal(backoffMs(8, span, ONE), 60_000)
  assert.equal(backoffMs(2000, span, ONE), 60_000)
})
