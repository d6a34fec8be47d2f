/** The crash test of the engines on Redis: kill -9 again and again, then nothing may be lost, duplicated or left behind. */
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { crawlInOneGo, fateOf, killAgainAndAgain } from '../crash-site.test-kit.ts'
import { type CrashPlan, openPlanned } from './crash-plan.test-kit.ts'
import { prefixOf } from './link.ts'

const WORKER = join(import.meta.dirname, 'crash-worker.test-kit.ts')

export async function crashCheck(t: TestContext, plan: CrashPlan, kills: number): Promise<void> {
  await using frontier = await openPlanned(plan)
  const workers = await killAgainAndAgain(frontier, () => fork(WORKER, [JSON.stringify(plan)]), { kills, withinMs: 60 })
  const { remaining } = await frontier.stats()
  t.diagnostic(`${remaining} tasks were left after the last of ${kills} kills`)
  assert.ok(remaining > 0, 'the kills came after the work: give it more pages')
  await Promise.all(workers.map((worker) => worker.exitCode ?? once(worker, 'exit')))

  const { pending, claimed, completed, failed, dead, seen, items } = await frontier.stats()
  const reached = crawlInOneGo(plan.pages)
  const finished = [...reached].filter((n) => fateOf(n) !== 'dead')
  const died = reached.size - finished.length
  assert.deepEqual({ pending, claimed, failed, dead }, { pending: 0, claimed: 0, failed: died, dead: died })
  assert.deepEqual({ seen, completed }, { seen: reached.size, completed: finished.length })

  const keys = (await frontier.items.read({ afterSeq: 0, max: 2 * plan.pages })).map(({ key }) => key)
  const expected = new Set(finished.flatMap((n) => (n === 0 ? [0] : [n, n - 1])).map((k) => `item ${k}`))
  assert.deepEqual(new Set(keys), expected)
  assert.equal(keys.length, expected.size)
  assert.equal(items, expected.size)
  await checkKeys(plan)
}

/** The keys must agree with the ledger's own counters. */
async function checkKeys({ redisUrl, runId }: CrashPlan): Promise<void> {
  const redis = new Redis(redisUrl)
  try {
    const places = [
      'task',
      'delayed',
      'suspect',
      'lease',
      'expiry',
      'held',
      'alone',
      'sending',
      'hosts',
      'hosts:claimed',
    ]
    for (const name of places) assert.equal(await redis.exists(prefixOf(runId) + name), 0, name)
    const perQueue = await redis.keys(`${prefixOf(runId)}*`)
    assert.deepEqual(perQueue.filter((key) => /:(?:ready|back|turn|levels|belt):/.test(key)), []) // biome-ignore format: one line reads better
    for (const stream of perQueue.filter((key) => /:tasks:/.test(key)))
      assert.equal(await redis.xlen(stream), 0, stream)
  } finally {
    redis.disconnect()
  }
}
