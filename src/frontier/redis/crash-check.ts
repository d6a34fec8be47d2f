/** The crash test of the engines on Redis: kill -9 again and again, then nothing may be lost, doubled or left behind. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import type { Frontier } from '../contract.ts'
import { fateOf, linksOf } from '../sqlite/crash-worker.ts'
import { type CrashPlan, openPlanned } from './crash-worker.ts'
import { prefixOf } from './link.ts'

const WORKERS = 3
const LOSSES_MAX = 1000

async function start(plan: CrashPlan): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'crash-worker.ts'), [JSON.stringify(plan)])
  await Promise.race([once(child, 'message'), once(child, 'exit')])
  return child
}

/** Kills a worker somewhere in its work and puts another one in its place, again and again. */
async function killAgainAndAgain(plan: CrashPlan, frontier: Frontier, kills: number): Promise<ChildProcess[]> {
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => start(plan)))
  for (let i = 0; i < kills; i++) {
    await sleep(Math.random() * 60)
    const victim = workers.shift()!
    const exited = victim.exitCode === null ? once(victim, 'exit') : undefined
    victim.kill('SIGKILL')
    await exited
    await frontier.sweep({ lossesMax: LOSSES_MAX, workerIds: [`worker-${victim.pid}`] })
    workers.push(await start(plan))
  }
  return workers
}

export async function crashCheck(t: TestContext, plan: CrashPlan, kills: number): Promise<void> {
  await using frontier = await openPlanned(plan)
  const workers = await killAgainAndAgain(plan, frontier, kills)
  const { remaining } = await frontier.stats()
  t.diagnostic(`${remaining} tasks were left after the last of ${kills} kills`)
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

/** What a crawl without any crash finds: a dead page links to nothing. */
function crawlInOneGo(pages: number): Set<number> {
  const reached = new Set([0])
  for (const n of reached) if (fateOf(n) !== 'dead') for (const link of linksOf(n, pages)) reached.add(link)
  return reached
}

/** What the ledger's own counters say must also be true of its keys. */
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
  } finally {
    redis.disconnect()
  }
}
