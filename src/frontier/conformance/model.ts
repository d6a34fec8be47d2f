/** The promises of the contract as a small model, and the checks it makes on an engine after every step. */
import assert from 'node:assert/strict'
import type { NewTask } from '../../core/task.ts'
import { hostOf } from '../../core/url.ts'
import type { ClaimRequest, FrontierStats, Lease } from '../contract.ts'
import { isServed } from '../shared/fair-share.ts'

interface ModelTask {
  readonly task: NewTask
  readonly lane: string
  readonly priority: number
  readonly seq: number
  state: 'pending' | 'claimed' | 'completed' | 'dead' | 'dropped'
  atMs: number
  attempts: number
  losses: number
  lease: { lease: Lease; workerId: string; expiresMs: number } | undefined
}

export class Model {
  readonly tasks = new Map<string, ModelTask>()
  readonly itemKeys = new Set<string>()
  isPaused = false

  add(task: NewTask): void {
    if (this.tasks.has(task.url)) return
    const { lane = 'bulk', priority = 0, notBeforeMs: atMs = 0 } = task
    const seq = this.tasks.size
    this.tasks.set(task.url, {
      task,
      lane,
      priority,
      seq,
      state: 'pending',
      atMs,
      attempts: 0,
      losses: 0,
      lease: undefined,
    })
  }

  held(workerId: string): ModelTask[] {
    return [...this.tasks.values()].filter(({ lease }) => lease?.workerId === workerId)
  }

  /** The task that is currently under this lease. */
  holderOf(lease: Lease): ModelTask | undefined {
    const found = this.tasks.get(lease.task.url)
    return found?.lease?.lease.token === lease.token ? found : undefined
  }

  in(...states: ModelTask['state'][]): ModelTask[] {
    return [...this.tasks.values()].filter(({ state }) => states.includes(state))
  }

  /** Checks what a claim returned against what it had to return, then adopts it. */
  claimed(request: ClaimRequest, leases: readonly Lease[], nowMs: number): void {
    const held = this.held(request.workerId)
    const claimable = this.in('pending').filter(({ atMs, lane, task }) => {
      return atMs <= nowMs && isServed(lane, request.lanes) && !request.avoidHosts?.includes(hostOf(task.url))
    })
    const suspects = claimable.filter(({ losses }) => losses > 0)
    const others = claimable.filter(({ losses }) => losses === 0)
    const given = leases.map((lease) => this.#given(lease, claimable))
    const mayHaveSuspect = held.length === 0 && suspects.length > 0
    if (this.isPaused || held.some(({ losses }) => losses > 0))
      assert.equal(given.length, 0, 'paused, or busy with a suspect')
    else if (mayHaveSuspect) assert.ok(given.length === 1 && suspects.includes(given[0]!), 'a suspect alone')
    else assert.equal(given.length, Math.min(request.max, others.length), 'as many as asked for')
    if (!mayHaveSuspect) this.#checkOrder(given, others, request)
    for (const [i, task] of given.entries()) {
      task.state = 'claimed'
      task.lease = { lease: leases[i]!, workerId: request.workerId, expiresMs: nowMs + request.leaseMs }
    }
  }

  #given(lease: Lease, claimable: readonly ModelTask[]): ModelTask {
    const found = this.tasks.get(lease.task.url)
    assert.ok(found && claimable.includes(found), `${lease.task.url} was claimable`)
    assert.equal(lease.attempt, found.attempts + 1, 'attempt')
    assert.equal(lease.losses, found.losses, 'losses')
    return found
  }

  #checkOrder(given: readonly ModelTask[], claimable: readonly ModelTask[], { lanes }: ClaimRequest): void {
    const rank = ({ lane }: ModelTask) => (lanes ?? ['manual', 'priority']).indexOf(lane) >>> 0
    const left = claimable.filter((task) => !given.includes(task))
    for (const [i, task] of given.entries()) {
      for (const later of [...given.slice(i + 1), ...left]) {
        assert.ok(rank(task) <= rank(later), 'lanes in order')
        if (rank(task) < rank(later)) continue
        assert.ok(task.priority >= later.priority, 'the higher priority first')
        const isSameQueue =
          task.lane === later.lane &&
          task.priority === later.priority &&
          hostOf(task.task.url) === hostOf(later.task.url)
        if (isSameQueue) assert.ok(task.seq < later.seq, 'the oldest of a host first')
      }
    }
  }

  /** Conservation: the engine's stats match the model. */
  check(stats: FrontierStats): void {
    const pending = this.in('pending').length
    const claimed = this.in('claimed').length
    const { tasks } = this
    const expected = {
      pending,
      claimed,
      completed: this.in('completed').length,
      failed: this.in('dead', 'dropped').length,
      dead: this.in('dead').length,
      remaining: pending + claimed,
      seen: tasks.size,
      items: this.itemKeys.size,
      isPaused: this.isPaused,
    }
    const { pauseReason: _, lanes, hosts, ...actual } = stats
    assert.deepEqual(actual, { ...actual, ...expected })
    for (const sums of [Object.values(lanes), hosts]) {
      assert.equal(
        sums.reduce((sum, part) => sum + part.pending, 0),
        pending,
        'pending by lane and by host',
      )
      assert.equal(
        sums.reduce((sum, part) => sum + part.claimed, 0),
        claimed,
        'claimed by lane and by host',
      )
    }
  }
}
