/** A process for the crash test: claims, commits, discovers and emits until nothing is left, and may be killed at any moment. */

import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease, Outcome } from '../contract.ts'
import { openSqliteFrontier } from './engine.ts'

/** The site is a tree: page n links to 3n+1 … 3n+3, and to pages that are known already. */
export function linksOf(n: number, pages: number): number[] {
  return [3 * n + 1, 3 * n + 2, 3 * n + 3, n, Math.floor(n / 3), 0].filter((link) => link < pages)
}

export function pageTask(n: number) {
  return { url: `https://h${n % 7}.example/${n}`, route: 'page', depth: 0, data: n }
}

/** Some pages fail once, some are put off, some die: the same ones every time. */
export function fateOf(n: number): 'done' | 'retry' | 'postpone' | 'dead' {
  if (n % 97 === 96) return 'dead'
  if (n % 31 === 30) return 'retry'
  return n % 41 === 40 ? 'postpone' : 'done'
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

async function work(path: string, pages: number): Promise<void> {
  await using frontier = await openSqliteFrontier(path)
  const workerId = `worker-${process.pid}`
  await frontier.add([pageTask(0)])
  process.send?.('working')
  for (;;) {
    const leases = await frontier.claim({ max: 5, workerId, leaseMs: 60_000 })
    if (leases.length > 0) {
      await sleep(Math.random() * 4) // the time of the fetch: most kills hit a worker that holds leases
      await frontier.commit(leases.map((lease) => outcomeOf(lease, pages)))
      continue
    }
    if ((await frontier.stats()).remaining === 0) return
    await sleep(2)
  }
}

if (process.argv[1] === import.meta.filename) await work(process.argv[2]!, Number(process.argv[3]))
