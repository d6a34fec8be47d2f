/** The base of every check in the suite: a frontier with a simulated clock, and helpers for common steps. */
import assert from 'node:assert/strict'
import type { ErrorRecord } from '../../core/errors.ts'
import type { ItemRow } from '../../core/item.ts'
import type { NewTask } from '../../core/task.ts'
import type { ClaimRequest, Committed, Frontier, FrontierStats, Lease, Outcome } from '../contract.ts'

/** Opens the engine under test. If it is durable or shared, equal places are the same frontier; different ones are separate. */
export type OpenForCheck = (options: { place: string; now: () => number; fresh?: boolean }) => Promise<Frontier>

/** One promise of the queue contract, as a check. */
export interface FrontierCheck {
  /** A sentence about behaviour. */
  readonly title: string
  /** Run only for engines with this capability. */
  readonly needs?: 'durable' | 'shared'
  run(open: OpenForCheck): Promise<void>
}

export const LEASE_MS = 10_000

export class Rig implements AsyncDisposable {
  nowMs = 1_700_000_000_000
  readonly place: string
  readonly #open: OpenForCheck
  readonly #opened: Frontier[] = []
  #frontier: Frontier | undefined

  constructor(open: OpenForCheck, place: string) {
    this.#open = open
    this.place = place
  }

  get frontier(): Frontier {
    assert.ok(this.#frontier, 'the rig has opened a frontier')
    return this.#frontier
  }

  /** Opens another handle on the same place; the first one becomes `frontier`. */
  async open(options: { fresh?: boolean } = {}): Promise<Frontier> {
    const frontier = await this.#open({ place: this.place, now: () => this.nowMs, ...options })
    this.#opened.push(frontier)
    this.#frontier ??= frontier
    return frontier
  }

  /** Simulates a restart of the process. */
  async reopen(options: { fresh?: boolean } = {}): Promise<void> {
    await this[Symbol.asyncDispose]()
    await this.open(options)
  }

  claim(max: number, more: Partial<ClaimRequest> = {}): Promise<Lease[]> {
    return this.frontier.claim({ max, workerId: 'worker-1', leaseMs: LEASE_MS, ...more })
  }

  async claimOne(more: Partial<ClaimRequest> = {}): Promise<Lease> {
    const [lease, ...rest] = await this.claim(1, more)
    assert.ok(lease, 'a task was claimable')
    assert.equal(rest.length, 0)
    return lease
  }

  commit(...outcomes: Outcome[]): Promise<Committed> {
    return this.frontier.commit(outcomes)
  }

  /** Claims and completes everything there is; returns the URLs in the order they were given. */
  async drain(more: Partial<ClaimRequest> = {}): Promise<string[]> {
    const urls: string[] = []
    for (;;) {
      const leases = await this.claim(7, more)
      if (leases.length === 0) return urls
      urls.push(...leases.map(({ task }) => task.url))
      await this.commit(...leases.map(done))
    }
  }

  /** Loses the leases of `workerId`, as if it had been killed. */
  lose(workerId: string, lossesMax = 3): Promise<{ returned: number; dead: number }> {
    return this.frontier.sweep({ lossesMax, workerIds: [workerId] })
  }

  /** Compares only the given figures. */
  async expect(figures: Partial<FrontierStats>): Promise<void> {
    const stats = await this.frontier.stats()
    const actual = Object.fromEntries(Object.keys(figures).map((name) => [name, stats[name as keyof FrontierStats]]))
    assert.deepEqual(actual, figures)
    assert.equal(
      stats.pending + stats.claimed + stats.completed + stats.failed,
      stats.seen,
      'no task is lost or doubled',
    )
    assert.equal(stats.remaining, stats.pending + stats.claimed)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const frontier of this.#opened.splice(0)) await frontier[Symbol.asyncDispose]()
    this.#frontier = undefined
  }
}

let places = 0

/** A check with its own frontier. */
export function check(title: string, run: (rig: Rig) => Promise<void>, needs?: FrontierCheck['needs']): FrontierCheck {
  return {
    title,
    ...(needs === undefined ? {} : { needs }),
    async run(open) {
      await using rig = new Rig(open, `check-${process.pid}-${++places}`)
      await rig.open({ fresh: true })
      await run(rig)
    },
  }
}

export function task(path: string | number, more: Partial<NewTask> = {}): NewTask {
  return { url: `https://a.example/${path}`, route: 'page', depth: 0, ...more }
}

export function tasks(count: number, more: Partial<NewTask> & { host?: string } = {}): NewTask[] {
  const { host = 'a.example', ...rest } = more
  return Array.from({ length: count }, (_, i) => ({ url: `https://${host}/${i}`, route: 'page', depth: 0, ...rest }))
}

export function item(key: string, json = `{"id":"${key}"}`): ItemRow {
  return { key, json }
}

export function error(more: Partial<ErrorRecord> = {}): ErrorRecord {
  return { code: 'E_SERVER', class: 'server-error', message: 'answered 503', ...more }
}

export function done(lease: Lease): Outcome {
  return { kind: 'done', lease }
}

export function urlsOf(leases: readonly Lease[]): string[] {
  return leases.map(({ task: { url } }) => url)
}

export function pathsOf(leases: readonly Lease[]): string[] {
  return leases.map(({ task: { url } }) => new URL(url).pathname.slice(1))
}

export function hostsOf(leases: readonly Lease[]): string[] {
  return leases.map(({ task: { url } }) => new URL(url).host)
}
