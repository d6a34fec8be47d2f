import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ResultMessage, resultSchema } from './messages.ts'
import { resultTexts } from './parts.ts'

const result = (more: Partial<ResultMessage>): ResultMessage => ({
  ...resultSchema.parse({
    task_id: '7d9f6a1e-6f0b-4c55-9f53-0a7b5b1c2d3e',
    status: 'success',
    scraper_type: 'things',
    execution_time: 1,
    jobs_found: 0,
    completed_at: '2026-11-15T12:00:00Z',
  }),
  ...more,
})
const read = (texts: readonly string[]) => texts.map((text) => resultSchema.parse(JSON.parse(text)))

test('a small result is one message without a part number', () => {
  const items = [{ text: '$& "quoted" \u2028' }]
  const [only, ...others] = read(resultTexts(result({ items, item_keys: ['a'] })))
  assert.deepEqual([only!.items, only!.item_keys, only!.part, others], [items, ['a'], undefined, []])
  assert.equal(resultTexts(result({})).length, 1)
})

test('a large one is split into parts that contain every item once, in order, with its key', () => {
  const items = Array.from({ length: 25 }, (_, i) => ({ id: i, text: 'x'.repeat(1000) }))
  const parts = read(resultTexts(result({ items, item_keys: items.map(({ id }) => `k${id}`) }), 5000))
  assert.ok(parts.length > 5)
  assert.deepEqual(
    parts.flatMap((part) => part.items),
    items,
  )
  assert.deepEqual(
    parts.flatMap((part) => part.item_keys),
    items.map(({ id }) => `k${id}`),
  )
  assert.deepEqual(
    parts.map(({ part }) => part),
    parts.map((_, i) => ({ number: i + 1, of: parts.length })),
  )
  assert.ok(resultTexts(result({ items }), 5000).every((text) => Buffer.byteLength(text) < 7000))
})

test('an item too large for any reader is left out and reported', () => {
  const items = [{ text: 'x'.repeat(5_000_000) }, { text: 'short' }]
  const [only] = read(resultTexts(result({ items, item_keys: ['long', 'short'] })))
  assert.deepEqual([only!.status, only!.items, only!.item_keys], ['partial', [{ text: 'short' }], ['short']])
  assert.match(only!.error!, /1 items over 4000000 bytes/)
})
