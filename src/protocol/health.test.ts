import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeHealth, TaskHistory } from './health.ts'

const well = { tasks: { ok: 10, failed: 0 }, sinceSuccessMs: 0, memoryMb: 100, cpuPercent: 10 }

test('a worker is unhealthy above 80 % errors, or if its last success was 30 minutes ago', () => {
  assert.equal(judgeHealth(well).status, 'healthy')
  assert.equal(judgeHealth({ ...well, tasks: { ok: 1, failed: 5 } }).status, 'unhealthy')
  assert.equal(judgeHealth({ ...well, tasks: { ok: 5, failed: 5 }, sinceSuccessMs: 1_800_001 }).status, 'unhealthy')
  assert.equal(judgeHealth({ ...well, tasks: { ok: 0, failed: 0 }, sinceSuccessMs: 9e9 }).status, 'healthy') // nothing to do
})

test('it is degraded above half errors, 1 GB, or 90 % of a core', () => {
  const reasons = [
    judgeHealth({ ...well, tasks: { ok: 4, failed: 6 } }),
    judgeHealth({ ...well, memoryMb: 1025 }),
    judgeHealth({ ...well, cpuPercent: 91 }),
  ]
  assert.deepEqual(
    reasons.map(({ status }) => status),
    ['degraded', 'degraded', 'degraded'],
  )
  assert.equal(judgeHealth({ ...well, tasks: { ok: 0, failed: 1 } }).status, 'healthy') // one failure of one means nothing
})

test('counts the tasks of the last hour, and forgets older ones', () => {
  let nowMs = 1_000_000_000
  const history = new TaskHistory(() => nowMs)
  history.add(false)
  nowMs += 1_800_000
  history.add(true)
  assert.deepEqual(history.lastHour(), { ok: 1, failed: 1 })
  nowMs += 1_900_000
  assert.deepEqual([history.lastHour(), history.lastSuccessMs], [{ ok: 1, failed: 0 }, 1_001_800_000])
})
