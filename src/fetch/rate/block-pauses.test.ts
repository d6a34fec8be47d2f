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
  /** One page is turned away; returns when it may come again at no cost. */
  const block = (path = '/', code: ErrorCode = 'E_CAPTCHA', startedMs = time.nowMs): number | undefined => {
    const error = new ScrapeError(code, 'x', { status: 200 })
    blocks.onBlocked('a', error, { url: `http://a${path}`, startedMs, isAlone })
    return error.details.retryAfterMs
  }
  /** One page after the other, each when the pause is over. */
  const blockInTurn = (times: number, pathOf: (i: number) => string, code?: ErrorCode) =>
    Array.from({ length: times }, (_, i) => {
      time.nowMs += (pausesMs.at(-1) ?? 0) + 1
      return block(pathOf(i), code)
    })
  return { blocks, time, pausesMs, block, blockInTurn }
}

test('pauses longer with every block in a row when there is nobody else to be, and in the end gives the host up', () => {
  const { pausesMs, blockInTurn } = given()
  const named = blockInTurn(9, (i) => `/${i}`)
  assert.deepEqual(pausesMs, [2000, 4000, 8000, 16_000, 32_000])
  assert.deepEqual(named, [undefined, ...pausesMs, undefined, undefined, undefined])
})

test('makes a page that is alone in being turned away pay for it, at the pace of the pauses', () => {
  const { pausesMs, blockInTurn } = given()
  assert.deepEqual(blockInTurn(4, () => '/private'), [undefined, undefined, undefined, undefined]) // biome-ignore format: one line
  assert.deepEqual(pausesMs, [2000, 4000, 8000])
})

test('never pauses for single pages that are turned away among others that come', () => {
  const { blocks, pausesMs, block } = given()
  for (let i = 0; i < 50; i++) {
    assert.equal(block(`/${i}`), undefined)
    blocks.onAnswer('a')
  }
  assert.deepEqual(pausesMs, [])
})

test('lets pages go on as others until five in a row were turned away', () => {
  const { pausesMs, blockInTurn } = given(false)
  assert.deepEqual(blockInTurn(5, (i) => `/${i}`), [undefined, undefined, undefined, undefined, 2000]) // biome-ignore format: one line
  assert.deepEqual(pausesMs, [2000])
})

test('takes a plain 403 for the host’s only when there are five in a row', () => {
  const { pausesMs, blockInTurn } = given()
  blockInTurn(4, (i) => `/${i}`, 'E_FORBIDDEN')
  assert.deepEqual(pausesMs, [])
  assert.deepEqual(
    blockInTurn(1, () => '/x', 'E_FORBIDDEN'),
    [2000],
  )
})

test('counts what was under way together once, and lets all of it wait for the same time', () => {
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
