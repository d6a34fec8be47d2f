import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  decideScale,
  NO_MEMORY,
  neededWorkers,
  type RunDepth,
  type ScaleMemory,
  type ScalePolicy,
  staffChanges,
} from './autoscale.ts'

const POLICY: ScalePolicy = { min: 0, max: 8, perWorker: 1000, cooldownMs: 30_000 }
const depth = (pending: number, isPaused = false, runId = 'a'): RunDepth => ({
  runId,
  pending,
  remaining: pending,
  isPaused,
})
const run = (runId: string, pending: number, isPaused = false) => depth(pending, isPaused, runId)
const first = (runs: readonly RunDepth[], policy: Partial<ScalePolicy> = {}) =>
  decideScale(runs, { ...POLICY, ...policy }, NO_MEMORY, 0)
const sharesOf = (runs: readonly RunDepth[], policy: Partial<ScalePolicy> = {}) =>
  Object.fromEntries(first(runs, policy).shares)
const sum = (numbers: Iterable<number>) => [...numbers].reduce((total, one) => total + one, 0)

/** Decisions over time: `[at, pending]` → targets. */
function targets(looks: readonly (readonly [atMs: number, pending: number])[], policy = POLICY): number[] {
  let memory: ScaleMemory = NO_MEMORY
  return looks.map(([atMs, pending]) => {
    const decision = decideScale([depth(pending)], policy, memory, atMs)
    memory = decision.memory
    return decision.target
  })
}

test('assigns one worker per thousand pending pages, within the bounds', () => {
  const target = (pending: number, policy: Partial<ScalePolicy> = {}) => first([depth(pending)], policy).target
  assert.deepEqual(
    [1, 1000, 1001, 7999, 1_000_000].map((pending) => target(pending)),
    [1, 1, 2, 8, 8],
  )
  assert.equal(target(1, { min: 3 }), 3)
  assert.equal(target(2500, { perWorker: 500 }), 5)
})

test('assigns an open run a worker to close it, and none to a paused run or without runs', () => {
  assert.equal(neededWorkers(depth(0), POLICY), 1)
  assert.equal(neededWorkers(depth(50_000, true), POLICY), 0)
  assert.equal(first([run('a', 50_000, true), run('b', 1500)]).target, 2)
  assert.equal(first([]).target, 0)
  assert.deepEqual([first([], { min: 2 }).target, first([], { min: 2 }).shares.size], [2, 0])
})

test('decides at once on the first look, and delays the next increase by the cooldown', () => {
  const looks = [
    [0, 500],
    [5_000, 4_000],
    [29_999, 4_000],
    [30_000, 4_000],
    [35_000, 9_000],
  ] as const
  assert.deepEqual(targets(looks), [1, 1, 1, 4, 4])
})

test('scales down only after less was needed for a whole cooldown, and to the peak of that time', () => {
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

test('restarts the wait after one high look', () => {
  const looks = [
    [0, 4_000],
    [10_000, 1_000],
    [35_000, 4_000],
    [45_000, 1_000],
    [70_000, 1_000],
  ] as const
  assert.deepEqual(targets(looks), [4, 4, 4, 4, 4])
})

test('stays within the bounds, never scales below the current need, and never changes one way twice too soon', () => {
  const look = fc.record({ afterMs: fc.integer({ min: 1, max: 40_000 }), pending: fc.integer({ min: 0, max: 20_000 }) })
  fc.assert(
    fc.property(fc.array(look, { maxLength: 60 }), fc.integer({ min: 0, max: 3 }), (looks, min) => {
      const policy = { ...POLICY, min }
      let memory: ScaleMemory = NO_MEMORY
      let atMs = 0
      let raisedAtMs = Number.NEGATIVE_INFINITY
      for (const { afterMs, pending } of looks) {
        atMs += afterMs
        const before = memory.last?.target
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

test('gives each run one worker, then each a second, if there are too few for all; unwanted ones go to others', () => {
  assert.deepEqual(sharesOf([run('a', 1_000_000), run('b', 1_000_000)]), { a: 4, b: 4 })
  assert.deepEqual(sharesOf([run('b', 1_000_000), run('a', 1_000_000)], { max: 5 }), { a: 3, b: 2 })
  assert.deepEqual(sharesOf([run('a', 1_000_000), run('b', 1500)]), { a: 6, b: 2 })
  assert.deepEqual(sharesOf([run('a', 9000), run('b', 9000), run('c', 1)], { max: 2 }), { a: 1, b: 1, c: 0 })
  assert.deepEqual(sharesOf([run('a', 0), run('b', 9000)], { max: 1 }), { a: 0, b: 1 })
  assert.deepEqual(sharesOf([run('a', 1), run('b', 1)], { min: 5 }), { a: 3, b: 2 })
})

test('gives a new run its share at once, and everything to the other run when one is paused', () => {
  const looks = [
    [run('a', 1_000_000)],
    [run('a', 1_000_000), run('b', 1_000_000)],
    [run('a', 1_000_000, true), run('b', 1_000_000)],
    [run('a', 1_000_000), run('b', 1_000_000)],
    [run('a', 1_000_000)],
  ]
  let memory: ScaleMemory = NO_MEMORY
  const shares = looks.map((runs, second) => {
    const decision = decideScale(runs, POLICY, memory, second * 1000)
    memory = decision.memory
    assert.equal(decision.isChanged, true)
    return Object.fromEntries(decision.shares)
  })
  assert.deepEqual(shares, [{ a: 8 }, { a: 4, b: 4 }, { a: 0, b: 8 }, { a: 4, b: 4 }, { a: 8 }])
})

test('states a reason for each run if there are several', () => {
  const before = first([run('a', 500), run('b', 500)])
  const { why } = decideScale([run('a', 500), run('b', 9_000)], POLICY, before.memory, 30_000)
  assert.equal(why, 'b: 8 needed for 9000 pending; fair shares of 8')
  assert.equal(decideScale([run('a', 1, true)], POLICY, before.memory, 1).why, 'no run has anything to do')
})

const someRuns = fc.uniqueArray(
  fc.record({
    runId: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    pending: fc.oneof(fc.integer({ min: 0, max: 20_000 }), fc.constant(0)),
    remaining: fc.constant(0),
    isPaused: fc.boolean(),
  }),
  { selector: ({ runId }) => runId },
)
const someLooks = fc.array(
  fc.record({ afterMs: fc.integer({ min: 1, max: 40_000 }), runs: someRuns, claimed: fc.integer({ min: 0, max: 3 }) }),
  { maxLength: 40 },
)

test('never exceeds max; no run with work is without a worker while another has two, and paused runs have none', () => {
  fc.assert(
    fc.property(someLooks, fc.integer({ min: 1, max: 8 }), fc.nat(3), (looks, max, low) => {
      const policy = { ...POLICY, max, min: Math.min(low, max) }
      let memory: ScaleMemory = NO_MEMORY
      let atMs = 0
      for (const { afterMs, runs, claimed } of looks) {
        atMs += afterMs
        const depths = runs.map((one) => ({ ...one, remaining: one.pending + claimed }))
        const decision = decideScale(depths, policy, memory, atMs)
        memory = decision.memory
        const { shares, target } = decision
        const isMoving = depths.some(({ isPaused }) => !isPaused)
        assert.ok(target >= policy.min && target <= max)
        assert.equal(sum(shares.values()), isMoving ? target : 0)
        assert.deepEqual([...shares.keys()].sort(), depths.map(({ runId }) => runId).sort())
        const most = Math.max(0, ...shares.values())
        for (const { runId, isPaused } of depths)
          if (isPaused) assert.equal(shares.get(runId), 0)
          else assert.ok(shares.get(runId)! > 0 || most < 2)
        // Every open run wants a worker: one without waits because max is used up, and runs with work come first.
        const waiting = depths.filter(({ runId, isPaused }) => !isPaused && shares.get(runId) === 0)
        if (waiting.length > 0) assert.equal(target, max)
        if (waiting.some(({ remaining }) => remaining > 0))
          assert.ok(depths.every(({ runId, remaining }) => shares.get(runId) === 0 || remaining > 0))
      }
    }),
  )
})

test('changes nothing while nothing changes, whatever the order of the runs', () => {
  fc.assert(
    fc.property(someRuns, fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 90_000 }), (runs, min, afterMs) => {
      const before = first(runs, { min })
      const again = decideScale(runs.toReversed(), { ...POLICY, min }, before.memory, afterMs)
      assert.equal(again.isChanged, false)
      assert.deepEqual(new Map([...again.shares].sort()), new Map([...before.shares].sort()))
    }),
  )
})

const counts = fc
  .dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 0, max: 6 }))
  .map((of) => new Map(Object.entries(of)))

test('drains workers beyond the shares and starts missing ones, with the fewest first if there is little room', () => {
  const shares = new Map([
    ['a', 4],
    ['b', 4],
    ['c', 0],
  ])
  const workers = new Map([
    ['a', 1],
    ['c', 2],
    ['over', 1],
  ])
  const { drain, start } = staffChanges(workers, shares, 3)
  assert.deepEqual(Object.fromEntries(drain), { c: 2, over: 1 })
  assert.deepEqual(start, ['b', 'a', 'b'])
  fc.assert(
    fc.property(counts, counts, fc.integer({ min: -2, max: 40 }), (have, want, roomMax) => {
      const { drain, start } = staffChanges(have, want, roomMax)
      const lack = sum([...want].map(([runId, share]) => Math.max(0, share - (have.get(runId) ?? 0))))
      assert.equal(start.length, Math.max(0, Math.min(lack, roomMax)))
      if (roomMax < lack) return
      const after = new Map(have)
      for (const [runId, count] of drain) after.set(runId, after.get(runId)! - count)
      for (const runId of start) after.set(runId, (after.get(runId) ?? 0) + 1)
      for (const runId of new Set([...have.keys(), ...want.keys()]))
        assert.equal(after.get(runId) ?? 0, want.get(runId) ?? 0)
    }),
  )
})
