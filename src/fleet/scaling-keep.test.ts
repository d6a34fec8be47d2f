import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunEvent } from '../core/events.ts'
import type { ResourceSnapshot } from './resources.ts'
import { SIZE_POLICY } from './scaling.ts'
import { keepBatch, keepSized } from './scaling-keep.ts'

const MIB = 2 ** 20
const GIB = 2 ** 30

/** A monitor whose samples the test takes. */
function monitor() {
  const listeners = new Set<(snapshot: ResourceSnapshot) => void>()
  let atMs = 0
  return {
    listeners,
    onSample(listener: (snapshot: ResourceSnapshot) => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    sample({ cpu = 0.1, freeBytes = 6 * GIB, afterMs = 1000 } = {}) {
      atMs += afterMs
      const limitBytes = 8 * GIB
      const usedBytes = limitBytes - freeBytes
      const snapshot: ResourceSnapshot = {
        atMs,
        spanMs: afterMs,
        cpu: { usage: cpu, smoothed: cpu, limitCores: 2 },
        memory: { usedBytes, freeBytes, limitBytes, usage: usedBytes / limitBytes, of: 'machine' },
        eventLoop: { p50Ms: 0, p95Ms: 0, maxMs: 0, busy: 0 },
        disk: undefined,
      }
      for (const listener of listeners) listener(snapshot)
    },
  }
}

function keptPool(load: { size: number; busy: number; queued: number }) {
  const events: RunEvent[] = []
  const samples = monitor()
  const kept = keepSized({
    what: 'file-workers',
    policy: SIZE_POLICY,
    need: { bytesPerWorker: 100 * MIB },
    look: () => load,
    resize: (size) => (load.size = size),
    monitor: samples,
    events: { emit: (event) => events.push(event) },
  })
  return { events, samples, kept }
}

test('resizes the pool, and emits every change as an event with its reason', () => {
  const load = { size: 2, busy: 2, queued: 30 }
  const { events, samples, kept } = keptPool(load)
  using _kept = kept
  samples.sample()
  assert.equal(load.size, 3)
  const reason = '30 queued, all 2 busy'
  assert.deepEqual(events, [{ type: 'scaled', what: 'file-workers', from: 2, to: 3, reason }])
  samples.sample()
  assert.equal(events.length, 1)
  Object.assign(load, { busy: 0, queued: 0 })
  samples.sample()
  samples.sample({ afterMs: 30_000 })
  assert.equal(load.size, 1)
  assert.deepEqual(events.at(-1), {
    type: 'scaled',
    what: 'file-workers',
    from: 3,
    to: 1,
    reason: 'no more than 0 busy for 30 s, 0 queued',
  })
})

test('reports a machine without room once per cooldown, and starts nothing on it', () => {
  const load = { size: 2, busy: 2, queued: 30 }
  const { events, samples, kept } = keptPool(load)
  using _kept = kept
  for (let i = 0; i < 25; i++) samples.sample({ cpu: 0.95 })
  assert.equal(load.size, 2)
  const message = 'file-workers stay at 2: 30 queued, all 2 busy, but CPU at 95 % of 2 cores, above 80 %'
  assert.deepEqual(events, [{ type: 'log', level: 'info', message }])
  for (let i = 0; i < 25; i++) samples.sample({ cpu: 0.95 })
  assert.equal(events.length, 2)
})

test('releases idle ones when memory runs short', () => {
  const load = { size: 8, busy: 2, queued: 0 }
  const { events, samples, kept } = keptPool(load)
  using _kept = kept
  samples.sample({ freeBytes: 300 * MIB })
  assert.equal(load.size, 5)
  assert.match((events[0] as { reason: string }).reason, /300 MiB of memory free, 512 MiB are reserved; 6 of 8 idle/)
})

test('has stopped once it is closed, which may happen twice', () => {
  const load = { size: 2, busy: 2, queued: 30 }
  const { samples, kept } = keptPool(load)
  kept[Symbol.dispose]()
  kept[Symbol.dispose]()
  samples.sample()
  assert.equal(load.size, 2)
  assert.equal(samples.listeners.size, 0)
})

test('shrinks a batch at once and grows it only after a while', () => {
  const events: RunEvent[] = []
  const samples = monitor()
  using batch = keepBatch({ base: 20, monitor: samples, events: { emit: (event) => events.push(event) } })
  assert.equal(batch.size(), 20)
  samples.sample({ cpu: 0.7 })
  assert.equal(batch.size(), 12)
  assert.deepEqual(events, [{ type: 'scaled', what: 'batch', from: 20, to: 12, reason: 'CPU at 70 %, memory at 25 %' }])
  for (let i = 0; i < 60; i++) samples.sample({ cpu: i % 5 === 4 ? 0.66 : 0.3 })
  assert.equal(batch.size(), 12)
  samples.sample({ cpu: 0.6 })
  for (let i = 0; i < 9; i++) samples.sample({ cpu: 0.3 })
  assert.equal(batch.size(), 12)
  samples.sample({ cpu: 0.3 })
  assert.equal(batch.size(), 16) // the largest that fit all the time
  for (let i = 0; i < 11; i++) samples.sample({ cpu: 0.3 })
  assert.equal(batch.size(), 20)
  assert.equal(events.length, 3)
})
