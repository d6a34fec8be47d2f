/** A process for the crash tests: claims, commits, discovers and emits until nothing is left, and may be killed at any moment. */
import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Frontier, Lease, Outcome } from '../contract.ts'
import { fateOf, linksOf, pageTask } from '../sqlite/crash-worker.ts'

export interface CrashPlan {
  engine: 'redis' | 'amqp'
  url: string
  redisUrl: string
  runId: string
  pages: number
}

function outcomeOf(lease: Lease, pages: number): Outcome {
  const n = lease.task.data as number
  const fate = fateOf(n)
  const error = { code: 'E_SERVER', class: 'server-error', message: 'test' } as const
  if (fate === 'dead') return { kind: 'dead', lease, error }
  if (fate === 'retry' && lease.attempt === 1) return { kind: 'retry', lease, atMs: 0, error }
  const isPutOff = hash('sha256', lease.token).startsWith('0')
  if (fate === 'postpone' && isPutOff) return { kind: 'postpone', lease, atMs: 0, reason: 'test' }
  const items = [n, n - 1].filter((k) => k >= 0).map((k) => ({ key: `item ${k}`, json: JSON.stringify({ k }) }))
  return { kind: 'done', lease, items, tasks: linksOf(n, pages).map(pageTask) }
}

export async function openPlanned({ engine, url, redisUrl, runId }: CrashPlan): Promise<Frontier> {
  if (engine === 'redis') return (await import('./engine.ts')).openRedisFrontier(redisUrl, { runId })
  return (await import('../rabbit/engine.ts')).openRabbitFrontier(url, { redisUrl, runId })
}

async function work(plan: CrashPlan): Promise<void> {
  await using frontier = await openPlanned(plan)
  const workerId = `worker-${process.pid}`
  await frontier.add([pageTask(0)])
  process.send?.('working')
  for (;;) {
    const leases = await frontier.claim({ max: 10, workerId, leaseMs: 60_000 })
    if (leases.length > 0) {
      await sleep(Math.random() * 4) // the time of the fetch: most kills hit a worker that holds leases
      await frontier.commit(leases.map((lease) => outcomeOf(lease, plan.pages)))
      continue
    }
    if ((await frontier.stats()).remaining === 0) return
    await sleep(5)
  }
}

if (process.argv[1] === import.meta.filename) await work(JSON.parse(process.argv[2]!) as CrashPlan)
