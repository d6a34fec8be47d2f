/** kill -9 at any moment, dozens of times: no page or item is lost or duplicated, and the file stays intact. */
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { crawlInOneGo, fateOf, killAgainAndAgain } from '../crash-site.test-kit.ts'
import { openSqliteFrontier } from './engine.ts'

const PAGES = 12_000
const KILLS = 20
const WORKER = join(import.meta.dirname, 'crash-worker.test-kit.ts')

test('loses and duplicates nothing when workers are killed at any moment', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-crash-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'frontier.db')
  await using frontier = await openSqliteFrontier(path)
  const workers = await killAgainAndAgain(frontier, () => fork(WORKER, [path, String(PAGES)]), {
    kills: KILLS,
    withinMs: 40,
  })
  const { remaining } = await frontier.stats()
  t.diagnostic(`${remaining} tasks were left after the last of ${KILLS} kills`)
  await Promise.all(workers.map((worker) => worker.exitCode ?? once(worker, 'exit')))

  const { pending, claimed, completed, failed, dead, seen, items } = await frontier.stats()
  const reached = crawlInOneGo(PAGES)
  const finished = [...reached].filter((n) => fateOf(n) !== 'dead')
  const died = reached.size - finished.length
  assert.deepEqual({ pending, claimed, failed, dead }, { pending: 0, claimed: 0, failed: died, dead: died })
  assert.deepEqual({ seen, completed }, { seen: reached.size, completed: finished.length })

  const keys = (await frontier.items.read({ afterSeq: 0, max: 2 * PAGES })).map(({ key }) => key)
  const expected = new Set(finished.flatMap((n) => (n === 0 ? [0] : [n, n - 1])).map((k) => `item ${k}`))
  assert.deepEqual(new Set(keys), expected)
  assert.equal(keys.length, expected.size)
  assert.equal(items, expected.size)
  checkFile(path)
})

/** The tables must agree with the engine's own counters. */
function checkFile(path: string): void {
  const db = new DatabaseSync(path, { readOnly: true })
  const count = (table: string) => Number(db.prepare(`select count(*) as n from ${table}`).get()!['n'])
  assert.equal(db.prepare('pragma integrity_check').get()!['integrity_check'], 'ok')
  const totals = db.prepare('select * from totals').get()!
  assert.equal(count('seen'), totals['seen'])
  assert.equal(count('dead'), totals['dead'])
  assert.equal(count('item_log'), totals['backlog'])
  for (const table of ['task', 'ready', 'delayed', 'suspect', 'inflight']) assert.equal(count(table), 0, table)
  assert.equal(count('queue where ready <> 0 or pending <> 0 or turn is not null'), 0)
  db.close()
}
