/** A page's position in its trace, with a given random source and clock, and ignoring texts that are not traces. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventOf } from '../core/events.ts'
import type { NewTask } from '../core/task.ts'
import type { Settled } from './settle.ts'
import { tracePage } from './trace.ts'

const PARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`

function traced(trace: string | undefined, random = () => 0.5) {
  const tasks = [{ route: 'list' }, { route: 'product' }] as NewTask[]
  const task = { route: 'list', ...(trace === undefined ? {} : { trace }) }
  const event = {} as EventOf<'page'>
  const settled = { outcome: { kind: 'done', lease: { task }, tasks, items: [] }, event } as unknown as Settled
  tracePage(settled, { startedAtMs: 7, ratio: 0.6, random })
  return { own: event.trace, tasks }
}

test('a new trace is created from the given random source', () => {
  const { own, tasks } = traced(undefined)
  assert.deepEqual(own, { own: `00-${'80000000'.repeat(4)}-${'80000000'.repeat(2)}-01`, startedAtMs: 7, itemKeys: [] })
  assert.deepEqual(
    tasks.map(({ trace }) => trace),
    [`~${own!.own}`, own!.own],
  )
  assert.equal(traced(undefined, () => 0.6).own, undefined, 'not within the share')
})

test('a page continues the trace of its task, or links to it', () => {
  assert.equal(traced(PARENT).own!.parent, PARENT)
  assert.equal(traced(PARENT).own!.own.slice(0, 35), PARENT.slice(0, 35))
  assert.equal(traced(`~${PARENT}`).own!.link, PARENT)
})

test('a text that is not a trace becomes neither a parent nor a link', () => {
  for (const odd of ['', '~', '~x', `~${PARENT}x`, `~~${PARENT}`, `~${PARENT.toUpperCase()}`, 'x'.repeat(100_000)]) {
    const { own } = traced(odd)
    assert.deepEqual([own!.parent, own!.link], [undefined, undefined], odd.slice(0, 80))
  }
})
