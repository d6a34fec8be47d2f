/**
 * The frontier: the queue of a run's tasks, and every URL the run has seen.
 *
 *              add                claim                 commit done
 *   (unseen) ───────▶ pending ───────────▶ claimed ──────────────────▶ completed
 *                      ▲  ▲                 │ │ │
 *                      │  └─ retry/postpone ┘ │ └─ commit dead ──────▶ dead ──▶ (retry: pending · drop: failed)
 *                      └── sweep: lease lost ─┘
 *
 * A task is in exactly one of these states. A lost lease costs a *loss*, not an attempt: its task becomes a suspect, which is
 * claimed alone (its worker holds nothing else), and only a suspect that is lost alone `lossesMax` times is declared dead.
 */

import type { Counts } from '../core/counts.ts'
import type { ErrorRecord } from '../core/errors.ts'
import type { ItemRow, LoggedItem } from '../core/item.ts'
import type { NewTask, Task } from '../core/task.ts'
import type { Outage } from '../drivers/outage.ts'

/** The contract of a task queue. Implement it to write your own engine. */
export interface Frontier extends AsyncDisposable {
  /** `memory:`, `sqlite:` … */
  readonly engine: string
  readonly can: Capabilities

  /**
   * Adds tasks this run has not seen. Idempotent by task id. Accepts any number: it reads the iterable in chunks and holds no
   * more than one. When it resolves, the added tasks are durable.
   */
  add(tasks: Iterable<NewTask> | AsyncIterable<NewTask>): Promise<Added>

  /**
   * Gives out up to `max` tasks under a lease: none of them has another live lease, none before its `notBeforeMs`, higher
   * priority first, then oldest first, spread over hosts. A suspect is given only to a worker that holds no lease, and nothing
   * else is given with it until it is settled. Empty if nothing is claimable now, or while the run is paused.
   */
  claim(request: ClaimRequest): Promise<Lease[]>

  /** Heartbeat: extends each lease still held to `leaseMs` from now. Returns the leases that are lost. */
  extend(leases: readonly Lease[], leaseMs: number): Promise<{ lost: Lease[] }>

  /**
   * One transaction: outcomes of leases, tasks they discovered, items they emitted. An outcome whose lease is stale changes
   * nothing (its tasks and items are dropped too), and its lease is returned. When it resolves, everything in it is durable.
   */
  commit(outcomes: readonly Outcome[]): Promise<Committed>

  /**
   * Returns expired leases to pending as suspects, or to the dead letters after `lossesMax` losses. Leases of `workerIds`,
   * workers known to be dead, are treated as expired too; `'all'` if no worker can be alive.
   */
  sweep(options: SweepOptions): Promise<{ returned: number; dead: number }>

  /** Cheap at any size: counters are maintained, not computed. */
  stats(): Promise<FrontierStats>

  /** The first time (epoch ms) at which a waiting task becomes claimable or a lease expires; undefined if there is none. */
  nextDueMs(): Promise<number | undefined>

  readonly dead: DeadLetters
  readonly items: ItemLog

  /** Claims return nothing while paused; existing leases can still be committed. Survives a restart. */
  pause(reason: string): Promise<void>
  resume(): Promise<void>

  /** Small values that belong to the run (`started`, definition hash), durable with the frontier. */
  getMeta(name: string): Promise<string | undefined>
  setMeta(name: string, value: string): Promise<void>
}

interface Capabilities {
  /** Survives the end of its process. */
  readonly durable: boolean
  /** Several processes may open it at once. */
  readonly shared: boolean
  /** Items stay readable after they are confirmed: the engine can be the store of a fleet's items. */
  readonly keepsItems?: boolean
  /** Stores when each task was added: `stats()` includes `oldestAgeMs`. */
  readonly tellsAge?: boolean
}

export interface Added {
  added: number
  /** Already seen in this run. */
  seen: number
}

export interface ClaimRequest {
  max: number
  workerId: string
  leaseMs: number
  /** Lanes in the order they are served; default: all except those of files, `manual` and `priority` before the others. */
  lanes?: readonly string[]
  /** Hosts this worker cannot serve now (limit reached, paused); their tasks are left for other workers. */
  avoidHosts?: readonly string[]
}

export interface Lease {
  readonly task: Task
  /** Fencing token: changes with every claim, so a worker that slept past its lease cannot settle the task. */
  readonly token: string
  /** Which try this is, from 1. Postponements and lost leases do not count. */
  readonly attempt: number
  /** How often a worker was lost while it held this task. More than 0: a suspect, which runs alone. */
  readonly losses: number
}

export type Outcome = OutcomeBase &
  (
    | { kind: 'done'; tasks?: readonly NewTask[]; items?: readonly ItemRow[] }
    /** Retried at `atMs` or later; counts as a try. */
    | { kind: 'retry'; atMs: number; error: ErrorRecord }
    /** Retried at `atMs` or later; does not count as a try. A draining worker hands its tasks back this way (`atMs: 0`). */
    | { kind: 'postpone'; atMs: number; reason: string }
    /** Moved to the dead letters. `snapshot` names what is kept of the last response. */
    | { kind: 'dead'; error: ErrorRecord; snapshot?: string }
  )

interface OutcomeBase {
  lease: Lease
  /** Added to the run's counters together with the outcome: not if its lease is stale, and never twice. */
  counts?: Counts
}

export interface Committed {
  settled: number
  stale: Lease[]
  /** Discovered tasks of all outcomes. */
  added: number
  seen: number
  items: {
    new: number
    /** Same key and same content as another item of this run. */
    same: number
    /** Same key as another item of this run, different content. The first one stays. */
    changed: number
    /** Items in the log that no sink has confirmed yet; workers wait while this is above its limit. */
    backlog: number
  }
}

export interface SweepOptions {
  lossesMax: number
  workerIds?: readonly string[] | 'all'
}

export interface FrontierStats {
  /** Waiting, due or not. */
  pending: number
  claimed: number
  completed: number
  /** Dead letters, including those dropped since. */
  failed: number
  dead: number
  /** pending + claimed. */
  remaining: number
  /** Every task ever added: pending + claimed + completed + failed. */
  seen: number
  /** Items accepted into the item log since the run started. */
  items: number
  /**
   * Sums of the outcomes' counters since the run started; names that were never counted are missing. The engine itself counts
   * `items.changed`: items rejected because another item with different content has the same key.
   */
  counts: Counts
  isPaused: boolean
  pauseReason: string | undefined
  /**
   * How long ago the oldest task that is due now was added. Undefined if none is due, or if the engine does not store that time:
   * `sqlite:` and the engines on Redis (`amqp:` too) store only the order.
   */
  oldestAgeMs?: number | undefined
  lanes: Record<string, { pending: number; claimed: number }>
  /** The hosts with the most pending tasks, at most 50. */
  hosts: { host: string; pending: number; claimed: number }[]
}

export interface DeadLetter {
  task: Task
  error: ErrorRecord
  attempts: number
  losses: number
  diedAtMs: number
  snapshot: string | undefined
}

export interface DeadFilter {
  class?: string
  code?: string
  host?: string
  ids?: readonly string[]
}

export interface DeadGroup {
  code: string
  class: string
  /** The message with numbers, ids and URLs replaced, so that one cause forms one group. */
  cause: string
  count: number
  exampleUrl: string
  firstAtMs: number
  lastAtMs: number
}

export interface DeadLetters {
  /** Oldest first, in pages: pass the last id as `after`. */
  list(options?: DeadFilter & { limit?: number; after?: string }): Promise<DeadLetter[]>
  groups(): Promise<DeadGroup[]>
  /** Returns them to pending with fresh tries. Returns how many. */
  retry(filter?: DeadFilter): Promise<number>
  /** Forgets them; they stay counted as failed and seen. Returns how many. */
  drop(filter?: DeadFilter): Promise<number>
}

/**
 * The run's accepted items, from the commit that stored them until all sinks have written them. One reader at a time drains it:
 * read, write to the sinks, flush them, then confirm with their positions. After a crash in between, the reader starts again from
 * the last confirmed positions, so that no item is lost and none is written twice.
 */
export interface ItemLog {
  /** Unconfirmed items in order, at most `max`, starting after `afterSeq`. */
  read(options: { afterSeq: number; max: number }): Promise<LoggedItem[]>
  /** All sinks have stored the items up to `seq`: forgets them and stores the sinks' positions, in one transaction. */
  confirm(seq: number, positions: SinkPositions): Promise<void>
  /** The last confirmed state; `seq` 0 and no positions for a new run. */
  confirmed(): Promise<{ seq: number; positions: SinkPositions }>
}

/** Sink name → its opaque position (a file's length, a row count …). */
export type SinkPositions = Record<string, string>

/** Options for opening an engine. */
export interface FrontierOptions {
  /** Discards what an earlier run left at the same place. Default: opens what is there. */
  fresh?: boolean
  /** Selects a run in a database that holds many. Engines with one run per place ignore it. Default `default`. */
  runId?: string
  /** Throws `E_RUN_NOT_FOUND` instead of creating a run. For engines that hold many runs. Default false. */
  mustExist?: boolean
  /**
   * The engine is the store of the run's items: they stay there, no sink drains them, and `items.backlog` is always 0. For
   * engines that keep confirmed items (`postgres:`); the others ignore it. Default false.
   */
  keepsItems?: boolean
  /** How long an operation waits for an unreachable server. Engines without a server ignore it. Default 60,000. */
  outageMs?: number
  /** Called once about entries that another program wrote among those of the run. For engines on Redis. */
  onWarning?: (message: string) => void
  /** Called before each wait for an unreachable server. Engines without a server ignore it. */
  onOutage?: (outage: Outage) => void
  now?: () => number
}
