/** What a server reports to Prometheus about its scrapers. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../../test/sluice.ts'
import type { RunRecord } from '../../../core/run.ts'
import type { Schedule } from '../../../server/schedule/contract.ts'
import { openSqliteStore } from '../../../store/sqlite.ts'
import { type HealthParts, ServerHealth } from './server-health.ts'

const OFFICE_HOURS = {
  scraper: 'weekly',
  cron: '0 9-17 * * 1-5',
  tz: 'UTC',
  nextAtMs: Date.UTC(2026, 5, 3, 9),
  createdAtMs: 5_000,
  isPaused: false,
} as Schedule

async function healthOf(more: Partial<HealthParts>, work: (health: ServerHealth) => Promise<void>): Promise<void> {
  using folder = temporaryFolder()
  await using store = openSqliteStore(join(folder.path, 'store.db'))
  const record = { id: 'r1', scraper: 'weekly', state: 'finished', finishedAt: '2026-01-01T00:00:00.000Z' } as RunRecord
  const options = { limits: {}, allowPrivate: false, allowAddress: [], userAgent: 'us' }
  await store.createRun({ record, definitionHash: 'x', options })
  await work(
    new ServerHealth({
      store,
      servers: [],
      listRuns: async () => [],
      listSchedules: async () => [OFFICE_HOURS],
      scheduler: async () => ({ isThere: true, atMs: 9_000 }),
      deliveries: () => ({}),
      disk: folder.path,
      ...more,
    }),
  )
}

test('knows the last success of a scraper missing from the newest runs, and that its schedule pauses at weekends', () =>
  healthOf({}, async (health) => {
    const lines = (await health.metricsText()).text.split('\n')
    for (const line of [
      `sluice_run_last_success_timestamp_seconds{scraper="weekly"} ${Date.UTC(2026, 0, 1) / 1000}`,
      `sluice_schedule_interval_seconds{scraper="weekly"} ${64 * 3600}`,
      'sluice_schedule_since_timestamp_seconds{scraper="weekly"} 5',
      'sluice_scheduler_seen_timestamp_seconds 9',
    ])
      assert.ok(lines.includes(line), line)
  }))

test('answers Prometheus even if the server gets no answers itself', () => {
  const never = () => new Promise<never>(() => {})
  return healthOf({ listRuns: never, listSchedules: never, scheduler: never }, async (health) => {
    assert.match((await health.metricsText()).text, /^sluice_build_info/m)
  })
})

test('is not ready while the queue is down, whatever its store says', () =>
  healthOf({ servers: [['queue', 'redis://127.0.0.1:1/0']] }, async (health) => {
    const [store, queue] = await health.checks()
    assert.deepEqual([store!.name, store!.ok, queue!.name, queue!.ok], ['store', true, 'queue', false])
    assert.match(queue!.problem!, /unreachable/)
  }))
