import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { changedFields, type Difference, type DiffSide, type DiffTotals, diffItems } from './diff-runs.ts'

type Item = { id: string; [field: string]: string | number | null }

const byId = ({ json }: { json: string }) => (JSON.parse(json) as Item).id

function side(items: readonly Item[], batch = 3): DiffSide {
  return {
    keyOf: byId,
    items: {
      async *batches() {
        for (let i = 0; i < items.length; i += batch)
          yield items.slice(i, i + batch).map((item) => ({ json: JSON.stringify(item) }))
      },
    },
  }
}

async function diffOf(before: readonly Item[], after: readonly Item[], ignored?: string[]) {
  const found: Difference[] = []
  const all = diffItems(side(before), side(after), ignored)
  for (;;) {
    const { value, done } = await all.next()
    if (done) return { found, totals: value satisfies DiffTotals }
    found.push(value)
  }
}

/** The same in memory, implemented the plain way. */
function naive(before: readonly Item[], after: readonly Item[]) {
  const first = (items: readonly Item[]) => {
    const map = new Map<string, Item>()
    for (const item of items) if (!map.has(item.id)) map.set(item.id, item)
    return map
  }
  const [old, fresh] = [first(before), first(after)]
  const found: Difference[] = []
  for (const [key, item] of fresh) {
    const was = old.get(key)
    if (was === undefined) found.push({ kind: 'added', key, item })
    else {
      const fields = changedFields(was, item)
      if (Object.keys(fields).length > 0) found.push({ kind: 'changed', key, fields })
    }
  }
  for (const [key, item] of old) if (!fresh.has(key)) found.push({ kind: 'removed', key, item })
  return found
}

test('distinguishes added, removed and changed items, field by field', async () => {
  const { found, totals } = await diffOf(
    [
      { id: 'a', price: 1, title: 'A' },
      { id: 'b', price: 2 },
      { id: 'c', price: 3 },
    ],
    [
      { id: 'c', price: 3 },
      { id: 'a', price: 9, title: 'A', stock: 4 },
      { id: 'd', price: 5 },
    ],
  )
  assert.deepEqual(found, [
    { kind: 'changed', key: 'a', fields: { price: { old: 1, new: 9 }, stock: { old: null, new: 4 } } },
    { kind: 'added', key: 'd', item: { id: 'd', price: 5 } },
    { kind: 'removed', key: 'b', item: { id: 'b', price: 2 } },
  ])
  assert.deepEqual(totals, { added: 1, removed: 1, changed: 1, unchanged: 1, repeated: 0 })
})

test('ignores the order of fields, and fields to be ignored', async () => {
  const { totals } = await diffOf(
    [{ id: 'a', price: 1, title: 'A', at: 1 }],
    [{ id: 'a', title: 'A', price: 1, at: 2 }],
    ['at'],
  )
  assert.deepEqual(totals, { added: 0, removed: 0, changed: 0, unchanged: 1, repeated: 0 })
})

test('finds what a comparison in memory finds, whatever the items', async () => {
  const item = fc.record(
    {
      id: fc.oneof(fc.constantFrom('a', 'b', 'c', 'ü', '\u{1f4da}', ''), fc.string({ maxLength: 2, unit: 'binary' })),
      price: fc.oneof(fc.integer({ min: 0, max: 2 }), fc.constant(null)),
      title: fc.constantFrom('x', 'y'),
    },
    { noNullPrototype: true },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(item, { maxLength: 20 }), fc.array(item, { maxLength: 20 }), async (before, after) => {
      const { found, totals } = await diffOf(before, after)
      const expected = naive(before, after)
      assert.deepEqual(found, expected)
      const count = (kind: string) => expected.filter((one) => one.kind === kind).length
      const news = new Set(after.map(({ id }) => id)).size
      assert.deepEqual([totals.added, totals.removed, totals.changed], ['added', 'removed', 'changed'].map(count))
      assert.equal(totals.unchanged, news - totals.added - totals.changed)
      const olds = new Set(before.map(({ id }) => id)).size
      assert.equal(totals.repeated, before.length - olds + (after.length - news))
    }),
    { numRuns: 80 },
  )
})
