import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ResourceSnapshot } from './resources.ts'
import { batchSize, mayStart, RESOURCE_POLICY, snapshotReport, workerCapacity } from './resources-policy.ts'

const MIB = 2 ** 20
const GIB = 2 ** 30

interface Figures {
  cpu?: number
  usedBytes?: number
  limitBytes?: number
  diskFreeBytes?: number
  lagMs?: number
  limitCores?: number
}

/** An idle machine, apart from the given figures. */
function snapshot(figures: Figures = {}): ResourceSnapshot {
  const {
    cpu = 0,
    usedBytes = GIB,
    limitBytes = 8 * GIB,
    diskFreeBytes = 100 * GIB,
    lagMs = 0,
    limitCores = 4,
  } = figures
  const freeBytes = limitBytes - usedBytes
  return {
    atMs: 0,
    spanMs: 1000,
    cpu: { usage: cpu, smoothed: cpu, limitCores },
    memory: { usedBytes, freeBytes, limitBytes, usage: usedBytes / limitBytes, of: 'machine' },
    eventLoop: { p50Ms: 0, p95Ms: lagMs, maxMs: lagMs, busy: 0 },
    disk: { freeBytes: diskFreeBytes, totalBytes: 200 * GIB },
  }
}

const anyMachine = fc
  .record({
    cpu: fc.double({ min: 0, max: 1, noNaN: true }),
    usedBytes: fc.integer({ min: 0, max: 8 * GIB }),
    diskFreeBytes: fc.integer({ min: 0, max: 4 * GIB }),
    lagMs: fc.integer({ min: 0, max: 500 }),
  })
  .map(snapshot)

test('allows new work on an idle machine', () => {
  assert.equal(mayStart(snapshot()), undefined)
  assert.equal(mayStart(snapshot({ cpu: 0.8 })), undefined)
  assert.equal(mayStart({ ...snapshot(), disk: undefined }), undefined)
})

test('says why nothing new is started', () => {
  const why = (figures: Figures) => mayStart(snapshot(figures))
  assert.equal(why({ cpu: 0.91, limitCores: 1.5 }), 'CPU at 91 % of 1.5 cores, above 80 %')
  assert.equal(why({ usedBytes: 7 * GIB }), 'memory at 88 % of 8192 MiB, above 85 %')
  assert.equal(why({ usedBytes: 600 * MIB, limitBytes: GIB }), '424 MiB of memory free, 512 MiB are reserved')
  assert.equal(why({ diskFreeBytes: 100 * MIB }), '100 MiB of disk free, less than 512 MiB')
  assert.equal(why({ lagMs: 400 }), 'the event loop is 400 ms late, more than 250 ms')
})

test('ignores a single spike', () => {
  const calm = snapshot({ cpu: 0.5 })
  assert.equal(mayStart({ ...calm, cpu: { ...calm.cpu, usage: 1 } }), undefined)
})

test('sizes batches at 20, 16, 12 or 8, by the busier of CPU and memory', () => {
  const of = (cpu: number, memory: number, base?: number) =>
    batchSize(snapshot({ cpu, usedBytes: memory * 8 * GIB }), base)
  assert.deepEqual([of(0.5, 0.6), of(0.51, 0.1), of(0.1, 0.61)], [20, 16, 16])
  assert.deepEqual([of(0.66, 0.1), of(0.1, 0.71), of(0.8, 0.85)], [12, 12, 12])
  assert.deepEqual([of(0.81, 0.1), of(0.1, 0.86), of(1, 1)], [8, 8, 8])
  assert.deepEqual([of(0, 0, 50), of(0.6, 0, 50), of(0.7, 0, 50), of(1, 0, 50)], [50, 40, 30, 20])
  assert.equal(of(1, 1, 1), 1)
})

test('counts how many fit into the memory above the reserve and below the limit, and into the CPU', () => {
  const need = { bytesPerWorker: 512 * MIB }
  assert.equal(workerCapacity(snapshot({ usedBytes: 4 * GIB }), need), 5) // 2.8 GiB up to 85 %
  assert.equal(workerCapacity(snapshot({ usedBytes: 400 * MIB, limitBytes: 2 * GIB }), need), 2) // 1.1 GiB above the reserve
  assert.equal(workerCapacity(snapshot({ usedBytes: 4 * GIB, cpu: 0.3 }), { ...need, coresPerWorker: 1 }), 2)
  assert.equal(workerCapacity(snapshot({ cpu: 0.9 }), need), 0)
})

test('counts only what can be started without reaching a limit', () => {
  fc.assert(
    fc.property(anyMachine, fc.integer({ min: MIB, max: GIB }), (machine, bytesPerWorker) => {
      const more = workerCapacity(machine, { bytesPerWorker })
      assert.ok(Number.isInteger(more) && more >= 0)
      if (more === 0) return
      const { memory } = machine
      const [usedBytes, freeBytes] = [
        memory.usedBytes + more * bytesPerWorker,
        memory.freeBytes - more * bytesPerWorker,
      ]
      const usage = Math.floor(usedBytes) / memory.limitBytes - Number.EPSILON
      assert.equal(mayStart({ ...machine, memory: { ...memory, usedBytes, freeBytes, usage } }), undefined)
    }),
  )
})

test('reports plain JSON with everything that the snapshot API promises', () => {
  fc.assert(
    fc.property(anyMachine, (machine) => {
      const report = snapshotReport(machine, { queues: { bulk: 7, files: 12 }, bytesPerWorker: 100 * MIB })
      assert.deepEqual(JSON.parse(JSON.stringify(report)), report)
      assert.equal(report.mayStart === true, mayStart(machine, RESOURCE_POLICY) === undefined)
      assert.equal(report.batchSize, batchSize(machine))
      assert.deepEqual(report.queues, { bulk: 7, files: 12 })
    }),
  )
  const names = ['cpu', 'memory', 'eventLoop', 'disk', 'queues', 'batchSize', 'workerCapacity', 'mayStart']
  assert.deepEqual(Object.keys(snapshotReport(snapshot(), { queues: {}, bytesPerWorker: MIB })), names)
  const unknown = snapshotReport({ ...snapshot(), disk: undefined }, { queues: {}, bytesPerWorker: MIB })
  assert.equal(unknown.disk, null)
})
