/** When a worker reports itself healthy. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEventBus } from '../../core/events.ts'
import type { Frontier } from '../../frontier/contract.ts'
import { AWAY_MS, type JoinedRun, openVitals } from './worker-vitals.ts'

const JOINED: JoinedRun = {
  workerId: 'host_1_abc',
  runId: '20261115_113501_x7k2',
  scraper: 'books',
  frontier: {
    stats: async () => ({ pending: 5, claimed: 1, completed: 2, failed: 0, dead: 0, lanes: {} }),
  } as unknown as Frontier,
  bus: createEventBus(),
  workerStates: async () => ['working'],
}

async function rig(address?: string, type?: string) {
  const clock = { ms: 1_000_000 }
  const vitals = await openVitals({ address, region: 'eu', type, disk: '.', say: () => {}, now: () => clock.ms })
  return { clock, vitals }
}

test('is unhealthy once the store has been silent for more than a minute, and healthy when it answers again', async () => {
  const { clock, vitals } = await rig()
  await using _ = vitals
  clock.ms += AWAY_MS
  assert.equal(vitals.health().problem, undefined)
  clock.ms += 1000
  assert.equal(vitals.health().problem, 'the store did not answer for 61 s')
  vitals.heardOf('store')
  assert.equal(vitals.health().problem, undefined)
})

test('checks the queue only during a run', async () => {
  const { clock, vitals } = await rig()
  await using _ = vitals
  const joined = vitals.join(JOINED)
  clock.ms += AWAY_MS + 5000
  vitals.heardOf('store')
  assert.equal(vitals.health().problem, 'the queue did not answer for 65 s')
  assert.equal(vitals.health()['runId'], JOINED.runId)
  joined[Symbol.dispose]()
  const { problem, runId, worker, region } = vitals.health()
  assert.deepEqual([problem, runId, worker, region], [undefined, null, 'host_1_abc', 'eu'])
})

test('needs only its queue in the task protocol', async () => {
  const { clock, vitals } = await rig(undefined, 'indeed')
  await using _ = vitals
  clock.ms += AWAY_MS + 1000
  assert.equal(vitals.health().problem, 'the queue did not answer for 61 s')
  vitals.heardOf('queue')
  const { problem, type, runId } = vitals.health()
  assert.deepEqual([problem, type, runId], [undefined, 'indeed', null])
})

test('answers 503 with the reason while draining, and drops the figures of a run it left', async () => {
  const { vitals } = await rig('127.0.0.1:0')
  await using _ = vitals
  const get = async (path: string) => await fetch(`${vitals.url}${path}`)
  assert.equal((await get('/healthz')).status, 200)
  const joined = vitals.join(JOINED)
  const pending = async () =>
    /sluice_queue_tasks\{[^}]*state="pending"[^}]*\} (\d+)/.exec(await (await get('/metrics')).text())?.[1]
  assert.equal(await pending(), '5')
  joined[Symbol.dispose]()
  assert.equal(await pending(), undefined)
  vitals.drain('SIGTERM received')
  const answer = await get('/healthz')
  assert.equal(answer.status, 503)
  assert.equal(((await answer.json()) as { problem: string }).problem, 'draining: SIGTERM received')
})
