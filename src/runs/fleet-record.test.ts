import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunRecord, WorkTally } from '../core/run.ts'
import type { QueueSeen, StoredWorker } from '../store/contract.ts'
import { lastReported } from './fleet-record.ts'

const record = { id: 'r1', pages: { remaining: 1 } } as RunRecord
const store = { countItems: async () => 30 }
const worker = (ok: number, silentMs: number, queue?: QueueSeen) =>
  ({ silentMs, report: { tally: { pages: { ok } } as WorkTally, queue } }) as StoredWorker
const queue = (completed: number, remaining: number): QueueSeen => ({
  ...{ completed, failed: 0, dead: 0, remaining, seen: completed + remaining, counts: {} },
})

test('counts the pages done even if the queue was lost before any worker had looked at it', async () => {
  const { completed, remaining, items } = await lastReported(record, [worker(20, 5), worker(4, 9)], store)
  assert.deepEqual([completed, remaining, items], [24, 1, 30])
})

test('uses the latest look at the queue, plus pages that workers have done since', async () => {
  const of = async (...workers: StoredWorker[]) => {
    const { completed, remaining } = await lastReported(record, workers, store)
    return [completed, remaining]
  }
  assert.deepEqual(await of(worker(20, 5, queue(100, 50)), worker(4, 900, queue(10, 140))), [100, 50])
  assert.deepEqual(await of(worker(120, 5, queue(100, 50))), [120, 50])
})
