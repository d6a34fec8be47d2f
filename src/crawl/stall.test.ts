import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HostPause } from '../fetch/contract.ts'
import type { FrontierStats } from '../frontier/contract.ts'
import { restorePauses, StallWatch } from './stall.ts'

const START_MS = Date.UTC(2026, 10, 16, 5)

/** Three pages of host `a` are left. */
function given(more: { waitMs?: number; isOpenEnded?: () => Promise<boolean> } = {}) {
  const time = { nowMs: START_MS }
  const meta = new Map<string, string>()
  const state: { stats: Partial<FrontierStats>; pauses: HostPause[]; dueMs: number | undefined } = {
    stats: {
      pending: 3,
      remaining: 3,
      claimed: 0,
      completed: 7,
      failed: 0,
      hosts: [{ host: 'a', pending: 3, claimed: 0 }],
    },
    pauses: [],
    dueMs: START_MS,
  }
  const pause = (host: string, forMs: number, reason = '429, Retry-After 600 s') => {
    state.pauses = state.pauses.filter((one) => one.host !== host)
    state.pauses.push({ host, untilMs: time.nowMs + forMs, reason })
  }
  const watch = new StallWatch({
    frontier: {
      stats: async () => state.stats as FrontierStats,
      nextDueMs: async () => state.dueMs,
      setMeta: async (name, value) => void meta.set(name, value),
    },
    rateLimit: { pauses: () => state.pauses },
    waitMs: 180_000,
    backoffMsMax: 60_000,
    now: () => time.nowMs,
    monotonicNow: () => time.nowMs,
    ...more,
  })
  return { watch, time, state, pause, meta }
}

test('stops when everything left has to wait too long, and says why and until when', async () => {
  const { watch, pause } = given()
  pause('a', 600_000)
  const error = await watch.check([])
  assert.equal(error?.code, 'E_STALLED')
  assert.equal(error.message, 'all 3 pages left must wait until 2026-11-16T05:10:00Z: a: 429, Retry-After 600 s')
})

test('keeps waiting for short pauses, hosts that are not paused, and tasks claimed by another worker', async () => {
  const { watch, pause, state } = given()
  pause('a', 170_000)
  assert.equal(await watch.check([]), undefined)
  pause('a', 600_000)
  assert.equal(await watch.check(['b']), undefined, 'this worker holds a page of another host')
  state.stats.hosts = [...state.stats.hosts!, { host: 'b', pending: 0, claimed: 1 }]
  state.stats.claimed = 1
  assert.equal(await watch.check([]), undefined, 'another worker does')
  Object.assign(state.stats, { pending: 2, hosts: [{ host: 'a', pending: 2, claimed: 1 }] })
  assert.equal((await watch.check(['a']))?.code, 'E_STALLED', 'a claimed page of a paused host does not move')
})

test('waits for pages of hosts that the queue does not name, as long as some page succeeds', async () => {
  const { watch, pause, state, time } = given()
  Object.assign(state.stats, { pending: 4, remaining: 4 })
  pause('a', 600_000)
  assert.equal(await watch.check([]), undefined, 'the fourth page is of another host')
  time.nowMs += 200_000
  assert.match((await watch.check([]))?.message ?? '', /none has succeeded for 200 s/)
})

test('stops when every host stays paused and no page is settled', async () => {
  const { watch, pause, time, state } = given()
  for (let i = 0; i < 36; i++, time.nowMs += 5000) {
    pause('a', 5000, 'circuit open: 8 probes failed')
    assert.equal(await watch.check([]), undefined)
    if (i === 10) state.stats.completed!++
  }
  time.nowMs += 60_000
  pause('a', 5000, 'circuit open: 8 probes failed')
  const error = await watch.check([])
  assert.match(error?.message ?? '', /^all 3 pages left must wait, and none has succeeded for \d+ s: a: circuit open/)
})

test('stops when the first page left is due much later, but not for a configured backoff', async () => {
  const { watch, state } = given()
  state.dueMs = START_MS + 3_600_000
  assert.match((await watch.check([]))?.message ?? '', /wait until 2026-11-16T06:00:00Z$/)
  state.dueMs = START_MS + 170_000
  assert.equal(await watch.check([]), undefined)
})

test('waits forever if configured, while more tasks may come, and while the run is paused manually', async () => {
  for (const more of [{ waitMs: Number.POSITIVE_INFINITY }, { isOpenEnded: async () => true }]) {
    const { watch, pause } = given(more)
    pause('a', 600_000)
    assert.equal(await watch.check([]), undefined)
  }
  const { watch, pause, state } = given()
  pause('a', 600_000)
  state.stats.isPaused = true
  assert.equal(await watch.check([]), undefined)
})

test('keeps the pauses of its hosts for the resumed run, which reports them', async () => {
  const { watch, pause, meta } = given()
  pause('a', 600_000)
  await watch.check([])
  const restored: unknown[] = []
  const frontier = { getMeta: async (name: string) => meta.get(name) }
  const logged: unknown[] = []
  const restore = (now: () => number) =>
    restorePauses({
      frontier,
      rateLimit: { pause: (...paused) => void restored.push(paused) },
      bus: { emit: (event) => void (event.type === 'log' && logged.push(event.message)) },
      now,
    })
  await restore(() => START_MS)
  assert.deepEqual(restored, [['a', START_MS + 600_000, '429, Retry-After 600 s']])
  await restore(() => START_MS + 600_001)
  assert.deepEqual(logged, ['a is still paused until 2026-11-16T05:10:00Z: 429, Retry-After 600 s'])
})
