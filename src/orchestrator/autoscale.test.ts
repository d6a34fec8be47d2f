import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  decideScale,
  NO_MEMORY,
  neededWorkers,
  type RunDepth,
  runToStaff,
  type ScaleMemory,
  type ScalePolicy,
  workerToDrain,
} from './autoscale.ts'

const POLICY: ScalePolicy = { min: 0, max: 8, perWorker: 1000, cooldownMs: 30_000 }
const depth = (pending: number, isPaused = false): RunDepth => ({ pending, isPaused })

/** Decisions over time: `[at, pending]` → targets. */
function targets(looks: readonly (readonly [atMs: number, pending: number])[], policy = POLICY): number[] {
  let memory: ScaleMemory = NO_MEMORY
  return looks.map(([atMs, pending]) => {
    const decision = decideScale([depth(pending)], policy, memory, atMs)
    memory = decision.memory
    return decision.target
  })
}

test('one worker for every thousand pending pages, within the bounds', () => {
  const needed = (pending: number, policy: Partial<ScalePolicy> = {}) =>
    neededWorkers([depth(pending)], { ...POLICY, ...policy })
  assert.deepEqual(
    [1, 1000, 1001, 7999, 1_000_000].map((pending) => needed(pending)),
    [1, 1, 2, 8, 8],
  )
  assert.equal(needed(1, { min: 3 }), 3)
  assert.equal(needed(2500, { perWorker: 500 }), 5)
})

test('an open run needs somebody to close it, a paused one needs nobody, and none at all needs none', () => {
  assert.equal(neededWorkers([depth(0)], POLICY), 1)
  assert.equal(neededWorkers([depth(50_000, true)], POLICY), 0)
  assert.equal(neededWorkers([depth(50_000, true), depth(1500)], POLICY), 2)
  assert.equal(neededWorkers([], POLICY), 0)
  assert.equal(neededWorkers([], { ...POLICY, min: 2 }), 2)
})

test('the first look decides at once, the next rise waits for the cooldown', () => {
  const looks = [
    [0, 500],
    [5_000, 4_000],
    [29_999, 4_000],
    [30_000, 4_000],
    [35_000, 9_000],
  ] as const
  assert.deepEqual(targets(looks), [1, 1, 1, 4, 4])
})

test('goes down only after a whole cooldown of less, and to the most that was needed in it', () => {
  const looks = [
    [0, 8_000],
    [10_000, 1_000],
    [20_000, 3_000],
    [39_999, 500],
    [40_000, 500],
    [60_000, 500],
    [70_001, 500],
  ] as const
  assert.deepEqual(targets(looks), [8, 8, 8, 8, 3, 3, 3])
  assert.equal(targets([...looks, [90_000, 500]]).at(-1), 1)
})

test('one high look begins the wait anew', () => {
  const looks = [
    [0, 4_000],
    [10_000, 1_000],
    [35_000, 4_000],
    [45_000, 1_000],
    [70_000, 1_000],
  ] as const
  assert.deepEqual(targets(looks), [4, 4, 4, 4, 4])
})

test('whatever comes: within the bounds, never lowered below what is needed now, never two changes of one kind too soon', () => {
  const look = fc.record({ afterMs: fc.integer({ min: 1, max: 40_000 }), pending: fc.integer({ min: 0, max: 20_000 }) })
  fc.assert(
    fc.property(fc.array(look, { maxLength: 60 }), fc.integer({ min: 0, max: 3 }), (looks, min) => {
      const policy = { ...POLICY, min }
      let memory: ScaleMemory = NO_MEMORY
      let atMs = 0
      let raisedAtMs = Number.NEGATIVE_INFINITY
      for (const { afterMs, pending } of looks) {
        atMs += afterMs
        const before = memory.target
        const decision = decideScale([depth(pending)], policy, memory, atMs)
        memory = decision.memory
        assert.ok(decision.target >= min && decision.target <= policy.max)
        assert.equal(decision.isChanged, decision.target !== before)
        if (before === undefined) raisedAtMs = atMs
        else if (decision.target < before) assert.ok(decision.target >= decision.needed)
        else if (decision.target > before) {
          assert.equal(decision.target, decision.needed)
          assert.ok(atMs - raisedAtMs >= policy.cooldownMs)
          raisedAtMs = atMs
        }
      }
    }),
  )
})

test('the next worker joins the run with most to do for each of its own, one without any first', () => {
  const share = (runId: string, pending: number, workers: number, isPaused = false) => ({
    runId,
    pending,
    workers,
    isPaused,
  })
  assert.equal(runToStaff([share('a', 9000, 2), share('b', 5000, 1)]), 'a')
  assert.equal(runToStaff([share('a', 9000, 4), share('b', 5000, 1)]), 'b')
  assert.equal(runToStaff([share('a', 900_000, 1), share('b', 1, 0)]), 'b')
  assert.equal(runToStaff([share('a', 10, 0, true)]), undefined)
})

test('the newest worker is drained, but the last one of a run last', () => {
  const worker = (name: string, runId: string, startedAtMs: number) => ({ name, runId, startedAtMs })
  const crew = [worker('1', 'a', 1), worker('2', 'a', 2), worker('3', 'b', 3)]
  assert.equal(workerToDrain(crew)?.name, '2')
  assert.equal(workerToDrain([crew[0]!, crew[2]!])?.name, '3')
  assert.equal(workerToDrain([]), undefined)
})
