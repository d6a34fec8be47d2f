/** Random histories: after each step the engine must agree with the model. */
import assert from 'node:assert/strict'
import type { Arbitrary } from 'fast-check'
import { optionalPackage } from '../../core/optional-package.ts'
import type { NewTask } from '../../core/task.ts'
import type { Lease, Outcome } from '../contract.ts'
import { Model } from './model.ts'
import { error, item, LEASE_MS, type Rig } from './rig.ts'

const { default: fc } = await optionalPackage(
  'the conformance suite of engines needs',
  'fast-check',
  () => import('fast-check'),
)

const LOSSES_MAX = 2
const HISTORIES_MS_MAX = 15_000

const newTask: Arbitrary<NewTask & { delayMs: number }> = fc.record({
  url: fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(12)).map(([host, n]) => `https://${host}.example/${n}`),
  route: fc.constant('page'),
  depth: fc.constant(0),
  priority: fc.constantFrom(0, 0, 0, 5, -1),
  lane: fc.constantFrom('bulk', 'bulk', 'reports', 'files', 'manual'),
  delayMs: fc.constantFrom(0, 0, 0, 500, LEASE_MS),
})
const workerId = fc.constantFrom('w1', 'w2', 'w3')
const kind = fc.constantFrom('done', 'done', 'done', 'retry', 'postpone', 'dead')

const step = fc.oneof(
  fc.record({ do: fc.constant('add' as const), tasks: fc.array(newTask, { maxLength: 8 }) }),
  fc.record({
    do: fc.constant('claim' as const),
    workerId,
    max: fc.integer({ min: 1, max: 6 }),
    lanes: fc.constantFrom(undefined, undefined, undefined, ['bulk'], ['files', 'bulk']),
    avoidHosts: fc.constantFrom(undefined, undefined, ['a.example'], ['b.example', 'c.example']),
  }),
  fc.record({
    do: fc.constant('settle' as const),
    picks: fc.array(fc.tuple(fc.nat(), kind), { maxLength: 5 }),
    tasks: fc.array(newTask, { maxLength: 3 }),
    delayMs: fc.constantFrom(0, 0, 700),
  }),
  fc.record({ do: fc.constant('extend' as const), picks: fc.array(fc.nat(), { maxLength: 4 }) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 600, LEASE_MS) }),
  fc.record({
    do: fc.constant('sweep' as const),
    workerIds: fc.constantFrom(undefined, ['w1'], ['w2', 'w3'], 'all' as const),
  }),
  fc.record({
    do: fc.constantFrom('revive' as const, 'drop' as const, 'pause' as const, 'resume' as const, 'resume' as const),
  }),
)
type Step = typeof step extends Arbitrary<infer T> ? T : never

class Run {
  readonly #rig: Rig
  readonly #model = new Model()
  /** Every lease ever given: old ones are used again as stale leases. */
  readonly #leases: Lease[] = []
  #items = 0

  constructor(rig: Rig) {
    this.#rig = rig
  }

  async take(next: Step): Promise<void> {
    const { frontier, nowMs } = this.#rig
    switch (next.do) {
      case 'add':
        return this.#add(next.tasks)
      case 'claim': {
        const request = { ...next, leaseMs: LEASE_MS }
        const leases = await frontier.claim(request)
        this.#model.claimed(request, leases, nowMs)
        this.#leases.push(...leases)
        return
      }
      case 'settle':
        return this.#settle(next)
      case 'extend':
        return this.#extend(next.picks)
      case 'wait':
        this.#rig.nowMs += next.ms
        return
      case 'sweep':
        return this.#sweep(next.workerIds)
      case 'revive':
      case 'drop': {
        const dead = this.#model.in('dead')
        for (const task of dead)
          Object.assign(
            task,
            next.do === 'drop' ? { state: 'dropped' } : { state: 'pending', atMs: 0, attempts: 0, losses: 0 },
          )
        assert.equal(await (next.do === 'drop' ? frontier.dead.drop() : frontier.dead.retry()), dead.length)
        return
      }
      case 'pause':
      case 'resume':
        this.#model.isPaused = next.do === 'pause'
        return next.do === 'pause' ? frontier.pause('test') : frontier.resume()
      default:
        next satisfies never
    }
  }

  async check(): Promise<void> {
    const { frontier } = this.#rig
    this.#model.check(await frontier.stats())
    const times = [...this.#model.in('claimed').map(({ lease }) => lease!.expiresMs)]
    const waiting = this.#model.in('pending').filter(({ atMs }) => atMs > this.#rig.nowMs)
    const firstMs = Math.min(...times, ...waiting.map(({ atMs }) => atMs))
    const dueMs = (await frontier.nextDueMs()) ?? Number.POSITIVE_INFINITY
    assert.ok(dueMs <= firstMs, 'nextDueMs is not too late')
    assert.ok(dueMs === firstMs || dueMs <= this.#rig.nowMs, 'nextDueMs is not too early')
  }

  #fill(tasks: readonly (NewTask & { delayMs: number })[]): NewTask[] {
    return tasks.map(({ delayMs, ...rest }) => ({
      ...rest,
      ...(delayMs === 0 ? {} : { notBeforeMs: this.#rig.nowMs + delayMs }),
    }))
  }

  async #add(tasks: readonly (NewTask & { delayMs: number })[]): Promise<void> {
    const before = this.#model.tasks.size
    const filled = this.#fill(tasks)
    for (const task of filled) this.#model.add(task)
    const added = this.#model.tasks.size - before
    assert.deepEqual(await this.#rig.frontier.add(filled), { added, seen: tasks.length - added })
  }

  async #settle(next: Extract<Step, { do: 'settle' }>): Promise<void> {
    if (this.#leases.length === 0) return
    const atMs = next.delayMs === 0 ? 0 : this.#rig.nowMs + next.delayMs
    const tasks = this.#fill(next.tasks)
    const outcomes = next.picks.map(([pick, what]): Outcome => {
      const lease = this.#leases[pick % this.#leases.length]!
      if (what === 'done') return { kind: what, lease, tasks, items: [item(`i${++this.#items % 20}`)] }
      if (what === 'postpone') return { kind: what, lease, atMs, reason: 'test' }
      return what === 'retry' ? { kind: what, lease, atMs, error: error() } : { kind: 'dead', lease, error: error() }
    })
    const stale = outcomes.filter((outcome) => !this.#believe(outcome)).map(({ lease }) => lease)
    const committed = await this.#rig.frontier.commit(outcomes)
    assert.deepEqual(committed.stale, stale)
    assert.equal(committed.settled, outcomes.length - stale.length)
    const log = await this.#rig.frontier.items.read({ afterSeq: 0, max: 100 })
    assert.deepEqual(new Set(log.map(({ key }) => key)), this.#model.itemKeys)
    assert.equal(committed.items.backlog, log.length)
  }

  #believe(outcome: Outcome): boolean {
    const task = this.#model.holderOf(outcome.lease)
    if (task === undefined) return false
    task.lease = undefined
    if (outcome.kind !== 'postpone') task.attempts++
    if (outcome.kind === 'done') {
      task.state = 'completed'
      for (const found of outcome.tasks ?? []) this.#model.add(found)
      for (const { key } of outcome.items ?? []) this.#model.itemKeys.add(key)
    } else if (outcome.kind === 'dead') {
      task.state = 'dead'
    } else {
      Object.assign(task, { state: 'pending', atMs: outcome.atMs })
    }
    return true
  }

  async #extend(picks: readonly number[]): Promise<void> {
    if (this.#leases.length === 0) return
    const leases = picks.map((pick) => this.#leases[pick % this.#leases.length]!)
    const lost = leases.filter((lease) => this.#model.holderOf(lease) === undefined)
    assert.deepEqual(await this.#rig.frontier.extend(leases, LEASE_MS), { lost })
    for (const lease of leases) {
      const held = this.#model.holderOf(lease)?.lease
      if (held !== undefined) held.expiresMs = this.#rig.nowMs + LEASE_MS
    }
  }

  async #sweep(workerIds: readonly string[] | 'all' | undefined): Promise<void> {
    const expected = { returned: 0, dead: 0 }
    for (const task of this.#model.in('claimed')) {
      const { expiresMs, workerId: holder } = task.lease!
      if (expiresMs > this.#rig.nowMs && workerIds !== 'all' && !workerIds?.includes(holder)) continue
      const isDead = ++task.losses > LOSSES_MAX
      expected[isDead ? 'dead' : 'returned']++
      Object.assign(task, { state: isDead ? 'dead' : 'pending', atMs: 0, lease: undefined })
    }
    const options = { lossesMax: LOSSES_MAX, ...(workerIds === undefined ? {} : { workerIds }) }
    assert.deepEqual(await this.#rig.frontier.sweep(options), expected)
  }
}

export async function agreeOnHistories(rig: Rig): Promise<void> {
  const histories = fc.array(step, { minLength: 10, maxLength: 60, size: 'max' })
  const startMs = performance.now()
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      // A slow machine checks fewer. fast-check's own time limit would abandon a history that still uses the engine.
      if (performance.now() - startMs > HISTORIES_MS_MAX) return
      await rig.reopen({ fresh: true })
      const run = new Run(rig)
      for (const next of history) {
        await run.take(next)
        await run.check()
      }
    }),
    // Shrinking on disk would take minutes; the printed seed is enough to reproduce a failure.
    { numRuns: 30, endOnFailure: true },
  )
}
