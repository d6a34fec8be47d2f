import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import { createBlockPauses } from './block-pauses.ts'

function given(isAlone = true) {
  const time = { nowMs: 1_700_000_000_000 }
  const pausesMs: number[] = []
  const blocks = createBlockPauses(
    (_host, untilMs) => void pausesMs.push(untilMs - time.nowMs),
    () => time.nowMs,
  )
  /** Blocks one page; returns when it may be retried without being charged an attempt. */
  const block = (path = '/', code: ErrorCode = 'E_CAPTCHA', startedMs = time.nowMs): number | undefined => {
    const error = new ScrapeError(code, 'x', { status: 200 })
    blocks.onBlocked('a', error, { url: `http://a${path}`, startedMs, isAlone })
    return error.details.retryAfterMs
  }
  /** One page after another, each when the pause is over. */
  const blockInTurn = (times: number, pathOf: (i: number) => string, code?: ErrorCode) =>
    Array.from({ length: times }, (_, i) => {
      time.nowMs += (pausesMs.at(-1) ?? 0) + 1
      return block(pathOf(i), code)
    })
  return { blocks, time, pausesMs, block, blockInTurn }
}

test('pauses longer with every block in a row if there is no other identity, and finally gives up on the host', () => {
  const { pausesMs, blockInTurn } = given()
  const named = blockInTurn(9, (i) => `/${i}`)
  assert.deepEqual(pausesMs, [2000, 4000, 8000, 16_000, 32_000])
  assert.deepEqual(named, [undefined, ...pausesMs, undefined, undefined, undefined])
})

test('charges a page that is the only one blocked, at the pace of the pauses', () => {
  const { pausesMs, blockInTurn } = given()
  assert.deepEqual(blockInTurn(4, () => '/private'), [undefined, undefined, undefined, undefined]) // biome-ignore format: one line
  assert.deepEqual(pausesMs, [2000, 4000, 8000])
})

test('never pauses for single blocked pages among successful ones', () => {
  const { blocks, pausesMs, block } = given()
  for (let i = 0; i < 50; i++) {
    assert.equal(block(`/${i}`), undefined)
    blocks.onAnswer('a')
  }
  assert.deepEqual(pausesMs, [])
})

test('lets pages continue with other identities until five in a row were blocked', () => {
  const { pausesMs, blockInTurn } = given(false)
  assert.deepEqual(blockInTurn(5, (i) => `/${i}`), [undefined, undefined, undefined, undefined, 2000]) // biome-ignore format: one line
  assert.deepEqual(pausesMs, [2000])
})

test('attributes a plain 403 to the host only after five in a row', () => {
  const { pausesMs, blockInTurn } = given()
  blockInTurn(4, (i) => `/${i}`, 'E_FORBIDDEN')
  assert.deepEqual(pausesMs, [])
  assert.deepEqual(
    blockInTurn(1, () => '/x', 'E_FORBIDDEN'),
    [2000],
  )
})

test('counts requests that were in flight together once, and makes them all wait equally long', () => {
  const { time, pausesMs, block } = given()
  const startedMs = time.nowMs - 100
  block('/0', 'E_CAPTCHA', startedMs)
  const named = Array.from({ length: 8 }, (_, i) => {
    time.nowMs += 10
    return block(`/${i + 1}`, 'E_CAPTCHA', startedMs)
  })
  assert.deepEqual(pausesMs, [2000])
  assert.deepEqual(named, [2000, 1990, 1980, 1970, 1960, 1950, 1940, 1930])
})
