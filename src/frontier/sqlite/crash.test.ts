/** kill -9 at any moment, dozens of times: no page and no item is lost, none is doubled, and the file stays whole. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Frontier } from '../contract.ts'
import { fateOf, linksOf } from './crash-worker.ts'
import { openSqliteFrontier } from './engine.ts'

const PAGES = 12_000
const KILLS = 20
const WORKERS = 3
const LOSSES_MAX = 1000

async function start(path: string): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'crash-worker.ts'), [path, String(PAGES)])
  await Promise.race([once(child, 'message'), once(child, 'exit')])
  return child
}

/** Kills a worker somewhere in its work and puts another one in its place, again and again. */
async function killAgainAndAgain(path: string, frontier: Frontier): Promise<ChildProcess[]> {
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => start(path)))
  for (let i = 0; i < KILLS; i++) {
    await sleep(Math.random() * 40)
    const victim = workers.shift()!
    const exited = victim.exitCode === null ? once(victim, 'exit') : undefined
    victim.kill('SIGKILL')
    await exited
    await frontier.sweep({ lossesMax: LOSSES_MAX, workerIds: [`worker-${victim.pid}`] })
    workers.push(await start(path))
  }
  return workers
}

test('loses and doubles nothing when workers are killed at any moment', { timeout: 60_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-crash-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'frontier.db')
  await using frontier = await openSqliteFrontier(path)
  const workers = await killAgainAndAgain(path, frontier)
  const { remaining } = await frontier.stats()
  t.diagnostic(`${remaining} tasks were left after the last of ${KILLS} kills`)
  await Promise.all(workers.map((worker) => worker.exitCode ?? once(worker, 'exit')))

  const { pending, claimed, completed, failed, dead, seen, items } = await frontier.stats()
  const reached = crawlInOneGo()
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

/** What a crawl without any crash finds: a dead page links to nothing. */
function crawlInOneGo(): Set<number> {
  const reached = new Set([0])
  for (const n of reached) if (fateOf(n) !== 'dead') for (const link of linksOf(n, PAGES)) reached.add(link)
  return reached
}

/** What the engine's own counters say must also be true of the tables. */
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
