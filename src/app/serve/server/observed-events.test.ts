/** Events found by polling, on a real store and real run folders. */
import assert from 'node:assert/strict'
import { appendFileSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../../test/sluice.ts'
import type { RunRecord } from '../../../core/run.ts'
import { RunFolder } from '../../../runs/run-folder.ts'
import { startRecord } from '../../../runs/run-record.ts'
import { Schedules } from '../../../server/schedule/schedules.ts'
import { DeliveryLog } from '../../../server/webhooks/delivery-log.ts'
import { eventRecorder } from '../../../server/webhooks/record.ts'
import { openSqliteDatabase } from '../../../store/sqlite.ts'
import { ObservedEvents } from './observed-events.ts'

function writeRun(out: string, atMs: number, more: Partial<RunRecord> = {}): RunFolder {
  const folder = RunFolder.create(out, 'books', atMs)
  const { runId, scraper } = folder
  const begun = { previous: undefined, runId, scraper, args: {}, source: scraper, frontier: 'sqlite:', nowMs: atMs }
  folder.writeRecord({ ...startRecord(begun), ...more })
  return folder
}

const ended = (atMs: number): Partial<RunRecord> => ({
  state: 'finished',
  exitCode: 0,
  finishedAt: new Date(atMs).toISOString(),
  pages: { ok: 5, failed: 0, retried: 0, postponed: 0, remaining: 0, dead: 0 },
  items: { new: 5, same: 0, changed: 0, invalid: 0 },
  fieldFill: { price: 1 },
})

test('reports runs in folders and fires that started no run, once, even after a restart', async () => {
  using folder = temporaryFolder()
  const db = openSqliteDatabase(join(folder.path, 'store.db'))
  const out = join(folder.path, 'runs')
  const log = new DeliveryLog(db)
  const open = () =>
    new ObservedEvents({ db, record: eventRecorder({ dialect: db.dialect }), out, failAt: 0.05, say: assert.fail })
  const told = async () => (await log.events({ max: 100 })).map(({ type }) => type).sort()
  const nowMs = Date.now() + 1000
  for (const days of [3, 2]) writeRun(out, nowMs - days * 86_400_000, ended(nowMs - days * 86_400_000))
  {
    await using observed = open()
    await observed.look()
    assert.deepEqual(await told(), [], 'what was there before is no news')
    const run = writeRun(out, nowMs)
    const circuit = { event: 'circuit', state: 'open', host: 'a.example', reason: 'x' }
    appendFileSync(run.file('log.jsonl'), `{"event":"page"}\n${JSON.stringify(circuit)}\n`)
    await observed.look()
    await observed.look()
    assert.deepEqual(await told(), ['circuit.opened', 'run.started'])
    const record = run.readRecord()!
    run.writeRecord({ ...record, ...ended(nowMs + 1000), fieldFill: { price: 0.5 } })
    utimesSync(run.file('run.json'), nowMs / 1000 + 5, nowMs / 1000 + 5)
  }
  const schedules = new Schedules(db)
  const limits = {}
  const given = {
    name: 'books',
    scraper: 'books',
    args: {},
    limits,
    cron: 'hourly',
    tz: 'UTC',
    jitterMs: 0,
    isCatchUp: false,
  }
  const schedule = await schedules.create({ ...given, overlap: 'skip' })
  await schedules.claim(schedule, 'missed', nowMs, 'nobody was there')
  for (let i = 0; i < 2; i++) {
    await using observed = open()
    await observed.look()
  }
  const all = ['circuit.opened', 'run.finished', 'run.layout_changed', 'run.started', 'schedule.missed']
  assert.deepEqual(await told(), all)
  await db.close()
})
