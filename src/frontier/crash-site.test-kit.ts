/** Shared by the crash tests of all engines: a site that is a tree of pages, workers that crawl it, and kill -9 for them. */
import type { ChildProcess } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Frontier, Lease, Outcome } from './contract.ts'

/** Tasks must not die of losses here: workers are killed on purpose. */
export const LOSSES_MAX = 1000
const WORKERS = 3

/** Page n links to 3n+1 … 3n+3, and to pages that are already known. */
function linksOf(n: number, pages: number): number[] {
  return [3 * n + 1, 3 * n + 2, 3 * n + 3, n, Math.floor(n / 3), 0].filter((link) => link < pages)
}

function pageTask(n: number) {
  return { url: `https://h${n % 7}.example/${n}`, route: 'page', depth: 0, data: n }
}

/** Some pages fail once, some are postponed, some die: the same ones every time. */
export function fateOf(n: number): 'done' | 'retry' | 'postpone' | 'dead' {
  if (n % 97 === 96) return 'dead'
  if (n % 31 === 30) return 'retry'
  return n % 41 === 40 ? 'postpone' : 'done'
}

/** What a crawl without crashes finds: a dead page links to nothing. */
export function crawlInOneGo(pages: number): Set<number> {
  const reached = new Set([0])
  for (const n of reached) if (fateOf(n) !== 'dead') for (const link of linksOf(n, pages)) reached.add(link)
  return reached
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

/** Runs in a separate process that may be killed at any moment: claims, commits, discovers and emits until nothing is left. */
export async function crawlUntilDone(frontier: Frontier, pages: number, { max, pollMs } = { max: 5, pollMs: 2 }) {
  const workerId = workerIdOf(process.pid)
  await frontier.add([pageTask(0)])
  process.send?.('working')
  for (;;) {
    const leases = await frontier.claim({ max, workerId, leaseMs: 60_000 })
    if (leases.length > 0) {
      await sleep(Math.random() * 4) // simulates the fetch: most kills hit a worker that holds leases
      await frontier.commit(leases.map((lease) => outcomeOf(lease, pages)))
      continue
    }
    if ((await frontier.stats()).remaining === 0) return
    await sleep(pollMs)
  }
}

export function workerIdOf(pid: number | undefined): string {
  return `worker-${pid}`
}

/** Kills a worker at a random point and starts another one, again and again. Returns the surviving workers. */
export async function killAgainAndAgain(
  frontier: Frontier,
  fork: () => ChildProcess,
  { kills, withinMs }: { kills: number; withinMs: number },
): Promise<ChildProcess[]> {
  const start = async () => {
    const child = fork()
    await Promise.race([once(child, 'message'), once(child, 'exit')])
    return child
  }
  const workers = await Promise.all(Array.from({ length: WORKERS }, start))
  for (let i = 0; i < kills; i++) {
    await sleep(Math.random() * withinMs)
    const victim = workers.shift()!
    const exited = victim.exitCode === null ? once(victim, 'exit') : undefined
    victim.kill('SIGKILL')
    await exited
    await frontier.sweep({ lossesMax: LOSSES_MAX, workerIds: [workerIdOf(victim.pid)] })
    workers.push(await start())
  }
  return workers
}
