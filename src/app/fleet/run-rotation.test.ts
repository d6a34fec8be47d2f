/** Which of many runs is next. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredRun } from '../../store/contract.ts'
import { RunRotation } from './run-rotation.ts'

/** Newest first, as a store lists them. */
const runsOf = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ record: { id: `run-${count - 1 - i}` } }) as StoredRun)

function rig(count: number) {
  const clock = { ms: 0 }
  const turns = new RunRotation(() => clock.ms)
  const order = () => turns.inOrder(turns.open(runsOf(count)).keys(), new Map())
  return { clock, turns, order }
}

test('starts with the oldest run, then takes the one served longest ago', () => {
  const { clock, turns, order } = rig(3)
  assert.deepEqual(order(), ['run-0', 'run-1', 'run-2'])
  clock.ms = 10
  turns.served('run-0')
  clock.ms = 20
  turns.served('run-1')
  assert.deepEqual(order(), ['run-2', 'run-0', 'run-1'])
})

test('rests an idle run longer each time if there are many, and puts it behind runs that were not asked', () => {
  const { clock, turns, order } = rig(100)
  const restedMs = () => {
    order()
    turns.idle('run-0')
    const fromMs = clock.ms
    while (!order().includes('run-0')) clock.ms += 1000
    return clock.ms - fromMs - 1000
  }
  assert.deepEqual(
    [restedMs(), restedMs(), restedMs(), restedMs(), restedMs()],
    [5, 10, 20, 40, 60].map((s) => s * 1000),
  )
  assert.equal(order().at(-1), 'run-0')
  turns.served('run-0')
  assert.equal(restedMs(), 5000, 'it had work in between')
})

test('asks an idle run again after 5 s if there are few, however often', () => {
  const { clock, turns, order } = rig(2)
  for (let i = 0; i < 5; i++) {
    order()
    turns.idle('run-0')
    assert.deepEqual(order(), ['run-1'])
    clock.ms += 5001
    assert.deepEqual(order(), ['run-1', 'run-0'])
  }
})

test('rests a hopeless run for a minute, and forgets a run that is gone', () => {
  const { clock, turns, order } = rig(1)
  turns.hopeless('run-0')
  clock.ms = 59_000
  assert.deepEqual(order(), [])
  turns.open([])
  assert.deepEqual(order(), ['run-0'])
})
