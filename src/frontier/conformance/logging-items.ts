/** Checks for the item log between commit and sinks. */
import assert from 'node:assert/strict'
import type { ItemRow } from '../../core/item.ts'
import type { Committed } from '../contract.ts'
import { check, error, item, type Rig, task, tasks } from './rig.ts'

let pages = 0

async function emit(rig: Rig, ...items: ItemRow[]): Promise<Committed> {
  await rig.frontier.add([task(`page-${++pages}`)])
  return rig.commit({ kind: 'done', lease: await rig.claimOne(), items })
}

const all = { afterSeq: 0, max: 1000 }

export const loggingItems = [
  check('accepts an item once by its key and tells same from changed', async (rig) => {
    const first = await emit(rig, item('a', '{"n":1}'), item('b'), item('a', '{"n":1}'), item('a', '{"n":2}'))
    assert.deepEqual(first.items, { new: 2, same: 1, changed: 1, backlog: 2 })
    const second = await emit(rig, item('a', '{"n":3}'), item('b'), item('c'), item('A', '{"n":1}'))
    assert.deepEqual(second.items, { new: 2, same: 1, changed: 1, backlog: 4 })
    const logged = await rig.frontier.items.read(all)
    assert.deepEqual(
      logged.map(({ key, json }) => [key, json]),
      [
        ['a', '{"n":1}'],
        ['b', '{"id":"b"}'],
        ['c', '{"id":"c"}'],
        ['A', '{"n":1}'],
      ],
    )
    await rig.expect({ items: 4 })
  }),

  check('reads items in their order, from where the reader stands', async (rig) => {
    await emit(rig, ...['a', 'b', 'c', 'd', 'e'].map((key) => item(key)))
    const first = await rig.frontier.items.read({ afterSeq: 0, max: 2 })
    const second = await rig.frontier.items.read({ afterSeq: first.at(-1)!.seq, max: 2 })
    const third = await rig.frontier.items.read({ afterSeq: second.at(-1)!.seq, max: 2 })
    const read = [...first, ...second, ...third]
    assert.deepEqual(
      read.map(({ key }) => key),
      ['a', 'b', 'c', 'd', 'e'],
    )
    for (const [i, { seq }] of read.entries()) assert.ok(seq > (read[i - 1]?.seq ?? 0))
    assert.deepEqual(await rig.frontier.items.read({ afterSeq: read.at(-1)!.seq, max: 2 }), [])
  }),

  check('forgets confirmed items and keeps the positions of their sinks', async (rig) => {
    assert.deepEqual(await rig.frontier.items.confirmed(), { seq: 0, positions: {} })
    await emit(rig, item('a'), item('b'), item('c'))
    const [, second] = await rig.frontier.items.read(all)
    await rig.frontier.items.confirm(second!.seq, { 'out.jsonl': '42', csv: '7' })
    assert.deepEqual(await rig.frontier.items.confirmed(), {
      seq: second!.seq,
      positions: { 'out.jsonl': '42', csv: '7' },
    })
    assert.deepEqual(
      (await rig.frontier.items.read(all)).map(({ key }) => key),
      ['c'],
    )
    const next = await emit(rig, item('d'))
    assert.equal(next.items.backlog, 2)
    await rig.expect({ items: 4 })
  }),

  check('still knows a confirmed item, and never uses its number again', async (rig) => {
    await emit(rig, item('a'))
    const [a] = await rig.frontier.items.read(all)
    await rig.frontier.items.confirm(a!.seq, { jsonl: '10' })
    const again = await emit(rig, item('a'), item('b'))
    assert.deepEqual(again.items, { new: 1, same: 1, changed: 0, backlog: 1 })
    const [b] = await rig.frontier.items.read({ afterSeq: a!.seq, max: 10 })
    assert.equal(b?.key, 'b')
    assert.ok(b.seq > a!.seq)
  }),

  check('does not let a reader that was replaced set the sinks back', async (rig) => {
    await emit(rig, item('a'), item('b'))
    const [a, b] = await rig.frontier.items.read(all)
    await rig.frontier.items.confirm(b!.seq, { jsonl: '20' })
    await rig.frontier.items.confirm(a!.seq, { jsonl: '10' })
    assert.deepEqual(await rig.frontier.items.confirmed(), { seq: b!.seq, positions: { jsonl: '20' } })
    await rig.frontier.items.confirm(b!.seq, { jsonl: '25' })
    assert.deepEqual(await rig.frontier.items.confirmed(), { seq: b!.seq, positions: { jsonl: '25' } })
  }),

  check('keeps the items of a commit in which other pages fail', async (rig) => {
    await rig.frontier.add(tasks(3))
    const [good, retried, dead] = await rig.claim(3)
    await rig.commit(
      { kind: 'retry', lease: retried!, atMs: 0, error: error() },
      { kind: 'done', lease: good!, items: [item('kept')] },
      { kind: 'dead', lease: dead!, error: error() },
    )
    assert.deepEqual(
      (await rig.frontier.items.read(all)).map(({ key }) => key),
      ['kept'],
    )
  }),

  check('keeps an item whatever its key and text', async (rig) => {
    const odd = [
      item('', '{}'),
      item('ключ', '"ü€😀"'),
      item('k'.repeat(5000), '1'),
      item("'; drop table x --", 'null'),
    ]
    assert.equal((await emit(rig, ...odd)).items.new, 4)
    assert.deepEqual(
      (await rig.frontier.items.read(all)).map(({ key, json }) => ({ key, json })),
      odd,
    )
  }),
]
