import assert from 'node:assert/strict'
import { readFileSync, utimesSync } from 'node:fs'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/sluice.ts'
import { openFrontier } from '../frontier/open.ts'
import { openRun } from './open-run.ts'
import { RunFolder } from './run-folder.ts'
import { averageRate, runFiles, runStats } from './run-numbers.ts'
import { startRecord } from './run-record.ts'

/** A run folder left by a process that was killed or got stuck a minute ago. */
function abandonedRun(out: string): RunFolder {
  const folder = RunFolder.create(out, 'books', Date.now())
  const nowMs = Date.now()
  folder.writeRecord(
    startRecord({
      previous: undefined,
      runId: folder.runId,
      scraper: 'books',
      args: {},
      source: 'books',
      frontier: 'sqlite:',
      nowMs,
    }),
  )
  const old = new Date(nowMs - 60_000)
  utimesSync(folder.file('run.json'), old, old)
  return folder
}

test('counts a run whose process is gone as stopped, and leaves its record unchanged', async () => {
  using place = temporaryFolder()
  const folder = abandonedRun(place.path)
  const before = readFileSync(folder.file('run.json'), 'utf8')
  await using run = await openRun('books', { out: place.path, frontier: 'sqlite:' })
  assert.deepEqual([run.isAlive, run.record.state], [false, 'stopped'])
  assert.match(run.record.reason ?? '', /without a word/)
  assert.equal(readFileSync(folder.file('run.json'), 'utf8'), before)
})

test('counts a silent run that holds its lock as alive, and leaves it the lock', async () => {
  using place = temporaryFolder()
  using folder = abandonedRun(place.path)
  folder.lock()
  await using run = await openRun(undefined, { out: place.path, frontier: 'sqlite:' })
  assert.equal(run.isAlive, true)
  assert.throws(() => new RunFolder(folder.path).lock(), { code: 'E_RUN_LOCKED' })
})

test('does not create a queue by looking at a run without one', async () => {
  using place = temporaryFolder()
  const folder = abandonedRun(place.path)
  for (const frontier of ['sqlite:', `sqlite:${place.path}/elsewhere.db`, 'memory:']) {
    await using run = await openRun(folder.runId, { out: place.path, frontier })
    assert.equal(run.frontier, undefined)
    assert.equal((await runStats(run)).pending, 0)
  }
  assert.throws(() => readFileSync(`${place.path}/elsewhere.db`), { code: 'ENOENT' })
})

test('rejects a queue that belongs to another run', async () => {
  using place = temporaryFolder()
  abandonedRun(place.path)
  const url = `sqlite:${place.path}/shared.db`
  {
    await using frontier = await openFrontier(url)
    await frontier.setMeta('run', 'another')
  }
  await assert.rejects(openRun('books', { out: place.path, frontier: url }), { code: 'E_OPTION' })
})

test('counts tasks like a queue if there is none, and does not mistake a file for a page', async () => {
  using place = temporaryFolder()
  const folder = abandonedRun(place.path)
  const record = folder.readRecord()!
  record.pages = { ok: 10, failed: 1, retried: 0, postponed: 0, remaining: 4, dead: 3 }
  record.files = { stored: 5, same: 1, recorded: 6, failed: 2, retried: 0, bytes: 1000 }
  const ended = { ...record, state: 'finished' as const, durationMs: 1000 }
  const stats = await runStats({ frontier: undefined, record: ended })
  assert.deepEqual([stats.completed, stats.failed, stats.remaining, stats.seen], [22, 3, 4, 29])
  assert.equal(averageRate({ record: ended }, stats), 11)
  const lanes = { bulk: { pending: 1, claimed: 0 }, files: { pending: 2, claimed: 1 } }
  assert.deepEqual(runFiles(ended, { ...stats, lanes }), { pending: 2, claimed: 1, stored: 5, same: 1, failed: 2 })
})
