/** Which events the record of a run produces, and that a store records them together with the change. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Bench, ENGINES } from '../../../test/webhooks.ts'
import type { RunRecord } from '../../core/run.ts'
import { startRecord } from '../../runs/run-record.ts'
import { runWatch } from '../../runs/run-watch.ts'
import { sqlStore } from '../../store/sql-store.ts'
import { circuitsOpened, runEnded } from './run-events.ts'

const FINISHED = '2026-11-15T12:00:00.000Z'

function runOf(id: string, more: Partial<RunRecord> = {}): RunRecord {
  const begun = {
    previous: undefined,
    runId: id,
    scraper: 'books',
    args: {},
    source: 'books',
    frontier: 'sqlite:',
    nowMs: 0,
  }
  return { ...startRecord(begun), ...more }
}

const pages = (ok: number, failed: number) => ({ ok, failed, retried: 0, postponed: 0, remaining: 0, dead: failed })
const ended = (id: string, more: Partial<RunRecord> = {}) =>
  runOf(id, {
    state: 'finished',
    exitCode: 0,
    finishedAt: FINISHED,
    pages: pages(10, 0),
    items: { new: 10, same: 0, changed: 0, invalid: 0 },
    fieldFill: { title: 1, price: 0.9 },
    ...more,
  })

const typesOf = (record: RunRecord, before: RunRecord[] = []) =>
  runEnded({ record, before, failAt: 0.05 }).map(({ type }) => type)

describe('events of a run', () => {
  it('a running run has no events', () => assert.deepEqual(typesOf(runOf('a')), []))

  it('reports how it ended', () => {
    assert.deepEqual(typesOf(ended('a')), ['run.finished'])
    assert.deepEqual(typesOf(ended('a', { exitCode: 1 })), ['run.failed'])
    assert.deepEqual(typesOf(ended('a', { state: 'failed', exitCode: 3 })), ['run.failed'])
    assert.deepEqual(typesOf(ended('a', { state: 'stopped', exitCode: 4 })), ['run.stopped'])
  })

  it('reports an error rate above the threshold', () => {
    assert.deepEqual(typesOf(ended('a', { exitCode: 1, pages: pages(94, 6) })), ['run.failed', 'run.error_rate'])
    assert.deepEqual(typesOf(ended('a', { pages: pages(95, 5) })), ['run.finished'])
  })

  it('reports a field that is filled less often than usual', () => {
    const before = [ended('1'), ended('2'), ended('3', { fieldFill: { title: 1, price: 0.1 } })]
    const [, changed] = runEnded({ record: ended('4', { fieldFill: { title: 1, price: 0.5 } }), before, failAt: 0.05 })
    assert.equal(changed!.type, 'run.layout_changed')
    assert.deepEqual(changed!.data['fields'], [{ field: 'price', fill: 0.5, usual: 0.9 }])
    assert.deepEqual(typesOf(ended('4', { fieldFill: { title: 1, price: 0.75 } }), before), ['run.finished'])
    const nothing = { items: { new: 0, same: 0, changed: 0, invalid: 0 }, fieldFill: {} }
    assert.deepEqual(typesOf(ended('4', nothing), before), ['run.finished', 'run.layout_changed'])
    assert.deepEqual(typesOf(ended('4', nothing), before.slice(0, 1)), ['run.finished'], 'one run is no measure')
  })

  it('compares a run only with runs that have the same arguments', () => {
    const before = ['1', '2', '3'].map((id) => ended(id, { args: { site: 'x', details: true } }))
    const listing = { fieldFill: { title: 1 }, args: { details: false, site: 'x' } }
    assert.deepEqual(typesOf(ended('4', listing), before), ['run.finished'])
    const same = { ...listing, args: { details: true, site: 'x' } }
    assert.deepEqual(typesOf(ended('4', same), before), ['run.finished', 'run.layout_changed'])
  })

  it('reports each host whose circuit opened, as in the log', () => {
    const said = (host: string, state: string) =>
      JSON.stringify({ level: 40, event: 'circuit', host, state, reason: 'x' })
    const lines = [said('a', 'open'), said('a', 'closed'), said('b', 'half-open'), said('c', 'open').slice(0, -5), '3']
    const told = circuitsOpened({ id: '1', scraper: 'books' }, [...lines, '{"event":"page"}'])
    assert.deepEqual(
      told.map(({ dedupeKey, data }) => [dedupeKey, data['reason']]),
      [['circuit.opened:1:a', 'x']],
    )
  })

  it('the same record produces the same events, a resumed run new ones', () => {
    const keys = (record: RunRecord) => runEnded({ record, before: [], failAt: 1 }).map(({ dedupeKey }) => dedupeKey)
    assert.deepEqual(keys(ended('a')), keys(ended('a')))
    assert.notDeepEqual(keys(ended('a')), keys(ended('a', { finishedAt: '2026-11-15T13:00:00.000Z' })))
  })
})

for (const [engine, start] of Object.entries(ENGINES))
  describe(`events of a store's runs on ${engine}`, () => {
    it('are recorded when the run starts and ends, once, whichever process ends it', async () => {
      await using place = await start()
      const db = await place.open()
      await using bench = new Bench(db)
      const store = sqlStore(db, undefined, runWatch(db.dialect))
      const options = { limits: { failAt: '20%' }, allowPrivate: false, allowAddress: [], userAgent: 'x' }
      const add = (record: RunRecord) => store.createRun({ record, definitionHash: 'x', options })
      for (const id of ['1', '2']) await add(ended(id))
      await add(runOf('3'))
      const end = ended('3', { pages: pages(9, 1), fieldFill: { title: 1 } })
      await store.saveRun(end, ['failed'])
      assert.deepEqual((await bench.log.events({ max: 9, type: 'run.finished' })).length, 0, 'nothing was changed')
      await store.saveRun(end, ['running'])
      await store.saveRun({ ...end, durationMs: 5 }, ['finished'])
      await store.addLogs('3', [
        '{"event":"page"}',
        '{"event":"circuit","state":"open","host":"a.example","reason":"x"}',
      ])
      const told = await bench.log.events({ max: 9 })
      const of3 = told.filter(({ data }) => data.runId === '3').map(({ type }) => type)
      assert.deepEqual(of3.reverse(), ['run.started', 'run.finished', 'run.layout_changed', 'circuit.opened'])
      await db.close()
    })
  })
