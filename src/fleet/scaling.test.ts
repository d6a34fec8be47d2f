import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decideSize, type Load, NO_SIZE_MEMORY, type Room, SIZE_POLICY, type SizePolicy } from './scaling.ts'

const POLICY: SizePolicy = { ...SIZE_POLICY, min: 1, max: 8 }
const ROOM: Room = { refusal: undefined, capacity: 100, isMemoryShort: false }
const SHORT: Room = { refusal: '100 MiB of memory free', capacity: 0, isMemoryShort: true }

/** A pool that is evaluated repeatedly. */
function pool(size: number, policy = POLICY) {
  let memory = NO_SIZE_MEMORY
  let nowMs = 0
  return {
    look(busy: number, queued: number, { afterMs = 1000, ...room }: Partial<Room> & { afterMs?: number } = {}) {
      nowMs += afterMs
      const decision = decideSize({ size, busy, queued, ...ROOM, ...room }, policy, memory, nowMs)
      size = decision.size
      memory = decision.memory
      return decision
    },
  }
}

test('grows when more than ten are queued and all are busy, and says so', () => {
  const { size, reason, isChanged } = pool(2).look(2, 11)
  assert.deepEqual({ size, reason, isChanged }, { size: 3, reason: '11 queued, all 2 busy', isChanged: true })
  assert.equal(pool(2).look(2, 10).size, 2)
  assert.equal(pool(2).look(1, 500).size, 2)
})

test('grows by a quarter, up to the maximum, and by no more than fit', () => {
  const wide = { ...POLICY, max: 40 }
  assert.equal(pool(16, wide).look(16, 99).size, 20)
  assert.equal(pool(16, wide).look(16, 99, { capacity: 2 }).size, 18)
  assert.equal(pool(38, wide).look(38, 99).size, 40)
  assert.deepEqual(pool(40, wide).look(40, 99).reason, '99 queued, all 40 busy, but 40 are the most')
})

test('grows again only after its cooldown', () => {
  const files = pool(2)
  assert.equal(files.look(2, 50).size, 3)
  assert.equal(files.look(3, 50, { afterMs: 4999 }).isChanged, false)
  assert.equal(files.look(3, 50, { afterMs: 1 }).size, 4)
})

test('does not grow while the machine refuses, and says why', () => {
  const refused = pool(2).look(2, 50, { refusal: 'CPU at 93 % of 2 cores, above 80 %', capacity: 0 })
  assert.equal(refused.reason, '50 queued, all 2 busy, but CPU at 93 % of 2 cores, above 80 %')
  assert.deepEqual([refused.isChanged, refused.isRefused], [false, true])
  assert.equal(pool(2).look(2, 50, { capacity: 0 }).isRefused, true)
})

test('starts the first one for the first task', () => {
  const none = { ...POLICY, min: 0 }
  assert.equal(pool(0, none).look(0, 1).size, 1)
  assert.equal(pool(0, none).look(0, 0).size, 0)
})

test('shrinks to the peak of busy ones if some were idle for a whole cooldown', () => {
  const files = pool(8)
  files.look(2, 0)
  files.look(5, 0, { afterMs: 15_000 })
  assert.equal(files.look(1, 0, { afterMs: 14_999 }).isChanged, false)
  const { size, reason } = files.look(1, 0, { afterMs: 1 })
  assert.deepEqual({ size, reason }, { size: 5, reason: 'no more than 5 busy for 30 s, 0 queued' })
  assert.equal(files.look(0, 0, { afterMs: 29_000 }).size, 5)
  assert.equal(files.look(0, 0, { afterMs: 30_000 }).size, 1)
})

test('restarts the cooldown after a moment with all busy, or with three queued', () => {
  for (const [busy, queued] of [
    [4, 0],
    [1, 3],
  ] as const) {
    const files = pool(4)
    files.look(1, 0)
    files.look(busy, queued, { afterMs: 20_000 })
    files.look(1, 0)
    assert.equal(files.look(1, 0, { afterMs: 29_000 }).size, 4)
    assert.equal(files.look(1, 0, { afterMs: 1000 }).size, 1)
  }
})

test('releases half of the idle ones at once when memory is short, and does not grow for a while', () => {
  const files = pool(8)
  const { size, reason } = files.look(3, 20, SHORT)
  assert.deepEqual({ size, reason }, { size: 5, reason: '100 MiB of memory free; 5 of 8 idle' })
  assert.equal(files.look(3, 20, SHORT).isChanged, false)
  assert.equal(files.look(3, 20, { ...SHORT, afterMs: 4000 }).size, 4)
  assert.match(files.look(4, 20, { afterMs: 29_000 }).reason!, /but memory was short just now/)
  assert.equal(files.look(4, 20).size, 5)
})

test('never removes busy ones, nor the last ones', () => {
  assert.equal(pool(4).look(4, 0, SHORT).size, 4)
  assert.equal(pool(3, { ...POLICY, min: 3 }).look(0, 0, SHORT).size, 3)
})

test('corrects a size out of bounds, whatever the machine says', () => {
  assert.equal(pool(0).look(0, 0, SHORT).size, 1)
  assert.equal(pool(12).look(12, 50).size, 8)
})

const between = (min: number, max: number) => fc.integer({ min, max })
const someRoom = fc.oneof(
  fc.constant(ROOM),
  fc.constant(SHORT),
  between(0, 3).map((capacity) => ({ ...ROOM, capacity })),
  between(0, 3).map((capacity) => ({ ...ROOM, capacity, refusal: 'CPU at 90 %' })),
)
/** All, none or some: purely random values would rarely make all busy, and nothing would ever grow. */
const someShare = fc.oneof(fc.constant(1), fc.constant(0), fc.double({ min: 0, max: 1, noNaN: true }))
/** Evaluations with changing loads. */
const looks = (queued: fc.Arbitrary<number>, room: fc.Arbitrary<Room> = someRoom) =>
  fc.array(fc.record({ afterMs: between(1, 8000), busyShare: someShare, queued, room }), {
    minLength: 20,
    maxLength: 200,
  })
const somePolicy = fc.record({ min: between(0, 4), more: between(0, 30) }).map(({ min, more }) => ({
  ...POLICY,
  min,
  max: Math.max(1, min + more),
}))

interface Change {
  atMs: number
  from: number
  to: number
  state: Load & Room
}

type Look = { afterMs: number; busyShare: number; queued: number; room: Room }

function changesOf(all: readonly Look[], policy: SizePolicy, start: number): Change[] {
  let [size, nowMs, memory] = [start, 0, NO_SIZE_MEMORY]
  const changes: Change[] = []
  for (const { afterMs, busyShare, queued, room } of all) {
    nowMs += afterMs
    const state = { size, busy: Math.round(busyShare * size), queued, ...room }
    const decision = decideSize(state, policy, memory, nowMs)
    memory = decision.memory
    assert.equal(decision.isChanged, decision.size !== size)
    if (!decision.isChanged) continue
    assert.ok(decision.reason!.length > 0)
    changes.push({ atMs: nowMs, from: size, to: decision.size, state })
    size = decision.size
  }
  return changes
}

test('always stays within the bounds, never grows against the machine, and never removes busy ones', () => {
  fc.assert(
    fc.property(looks(between(0, 40)), somePolicy, fc.double({ min: 0, max: 1, noNaN: true }), (all, policy, at) => {
      const start = Math.round(policy.min + at * (policy.max - policy.min))
      for (const { from, to, state } of changesOf(all, policy, start)) {
        assert.ok(to >= policy.min && to <= policy.max)
        if (to > from) {
          assert.equal(state.refusal, undefined)
          assert.ok(to - from <= state.capacity && state.busy >= from)
        } else assert.ok(to >= state.busy)
      }
    }),
  )
})

test('never flaps: one change per cooldown, idle ones stay for the long one, and short memory is remembered as long', () => {
  fc.assert(
    fc.property(looks(between(0, 40)), somePolicy, (all, policy) => {
      const changes = changesOf(all, policy, policy.min)
      for (const [i, { atMs, from, to, state }] of changes.entries()) {
        const before = changes[i - 1]
        if (before === undefined) continue
        const sinceMs = atMs - before.atMs
        assert.ok(sinceMs >= policy.growCooldownMs)
        if (to < from && !state.isMemoryShort) assert.ok(sinceMs >= policy.shrinkCooldownMs)
        const wasGivenBack = before.to < before.from && before.state.isMemoryShort
        if (to > from && wasGivenBack) assert.ok(sinceMs >= policy.shrinkCooldownMs)
      }
    }),
  )
})

test('changes nothing while a queue swings between the two thresholds', () => {
  const calm = fc.constant(ROOM)
  fc.assert(
    fc.property(looks(between(POLICY.shrinkBelow, POLICY.growAbove), calm), between(1, 8), (all, start) => {
      assert.deepEqual(changesOf(all, POLICY, start), [])
    }),
  )
})

test('finds the size for a steady stream of work, and stays there', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.3, max: 7.5, noNaN: true }),
      fc.infiniteStream(between(0, 2)),
      (perSecond, noise) => {
        let [size, queued, carry, memory] = [1, 0, 0, NO_SIZE_MEMORY]
        let changesLate = 0
        for (let second = 0; second < 1200; second++) {
          // Each worker does one task per second; arrivals vary by one around their mean.
          carry += perSecond
          const arrived = Math.max(0, Math.floor(carry) + noise.next().value! - 1)
          carry -= Math.floor(carry)
          const work = queued + arrived
          const busy = Math.min(size, work)
          queued = work - busy
          const decision = decideSize({ size, busy, queued, ...ROOM }, POLICY, memory, second * 1000)
          memory = decision.memory
          if (decision.isChanged && second >= 600) changesLate++
          size = decision.size
        }
        assert.ok(queued < 60, `${queued} queued at the end`)
        assert.ok(changesLate <= 600 / 30, `${changesLate} changes in the last ten minutes`)
      },
    ),
    { numRuns: 50 },
  )
})
