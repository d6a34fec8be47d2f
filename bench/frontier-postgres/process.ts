/**
 * One process of the `postgres:` benchmark: adds or processes tasks, begins when told, and reports how long it took.
 *
 *   node process.ts add|work URL RUN '{"from":0,"to":1000,"hosts":1}' | '{"count":1000,"batch":50,"loops":1}'
 */
import { once } from 'node:events'
import type { NewTask } from '../../src/core/task.ts'
import type { Frontier } from '../../src/frontier/contract.ts'
import { openPostgresFrontier } from '../../src/frontier/postgres/engine.ts'

export interface Work {
  count: number
  batch: number
  /** Concurrent claims. */
  loops: number
}

export interface Add {
  from: number
  to: number
  hosts: number
}

export interface Timing {
  count: number
  ms: number
  claimP50Ms: number
  claimP99Ms: number
}

export function* pages({ from, to, hosts }: Add): Generator<NewTask> {
  for (let n = from; n < to; n++) {
    yield {
      url: `https://www.host-${n % hosts}.example/products/category/${n}?page=${n % 10}`,
      route: 'page',
      depth: 1,
    }
  }
}

export async function work(frontier: Frontier, { count, batch, loops }: Work): Promise<Timing> {
  const claimMs: number[] = []
  let left = count
  let finished = 0
  const loop = async (n: number) => {
    while (left > 0) {
      const max = Math.min(batch, left)
      left -= max
      const startMs = performance.now()
      const leases = await frontier.claim({ max, workerId: `worker-${process.pid}-${n}`, leaseMs: 300_000 })
      claimMs.push(performance.now() - startMs)
      if (leases.length === 0) return
      finished += (await frontier.commit(leases.map((lease) => ({ kind: 'done', lease })))).settled
    }
  }
  const startMs = performance.now()
  await Promise.all(Array.from({ length: loops }, (_, n) => loop(n)))
  const ms = performance.now() - startMs
  claimMs.sort((a, b) => a - b)
  const quantile = (q: number) => claimMs[Math.floor(q * (claimMs.length - 1))] ?? 0
  return { count: finished, ms, claimP50Ms: quantile(0.5), claimP99Ms: quantile(0.99) }
}

if (process.argv[1] === import.meta.filename) {
  const [what, url, runId, json] = process.argv.slice(2) as [string, string, string, string]
  await using frontier = await openPostgresFrontier(url, { runId })
  process.send!('ready')
  await once(process, 'message')
  const startMs = performance.now()
  if (what === 'add') {
    const { added } = await frontier.add(pages(JSON.parse(json) as Add))
    process.send!({ count: added, ms: performance.now() - startMs, claimP50Ms: 0, claimP99Ms: 0 } satisfies Timing)
  } else process.send!(await work(frontier, JSON.parse(json) as Work))
  process.disconnect()
}
