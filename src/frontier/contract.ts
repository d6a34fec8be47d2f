/**
 * The frontier: the queue of a run's tasks and the memory of all it has seen.
 *
 *              add                claim                 commit done
 *   (unseen) ───────▶ pending ───────────▶ claimed ──────────────────▶ completed
 *                      ▲  ▲                 │ │ │
 *                      │  └─ retry/postpone ┘ │ └─ commit dead ──────▶ dead ──▶ (retry: pending · drop: failed)
 *                      └── sweep: lease lost ─┘
 *
 * A task is in exactly one of these places. A lost lease costs a *loss*, not an attempt: its task becomes a suspect, which is
 * claimed alone (nothing else in the hands of that worker), and only a suspect lost `lossesMax` times alone is declared dead.
 */

import type { Counts } from '../core/counts.ts'
import type { ErrorRecord } from '../core/errors.ts'
import type { ItemRow, LoggedItem } from '../core/item.ts'
import type { NewTask, Task } from '../core/task.ts'
import type { Outage } from '../drivers/outage.ts'

/** The contract of a task queue, for your own engines. */
export interface Frontier extends AsyncDisposable {
  /** `memory:`, `sqlite:` … */
  readonly engine: string
  readonly can: Capabilities

  /**
   * Adds tasks this run has not seen. Idempotent by task id. Takes any amount: it reads the iterable in chunks and holds no
   * more than one. When it resolves, what was added is durable.
   */
  add(tasks: Iterable<NewTask> | AsyncIterable<NewTask>): Promise<Added>

  /**
   * Gives out up to `max` tasks under a lease: none of them has another live lease, none before its `notBeforeMs`, higher
   * priority first, then oldest first, spread over hosts. A suspect is given only to a worker that holds no lease, and then
   * it is the only one given, until it is settled. Empty when nothing is claimable now, or while the run is paused.
   */
  claim(request: ClaimRequest): Promise<Lease[]>

  /** Heartbeat: `leaseMs` more from now for each lease still held. Returns the tokens+ids that are lost. */
  extend(leases: readonly Lease[], leaseMs: number): Promise<{ lost: Lease[] }>

  /**
   * One transaction: outcomes of leases, tasks they discovered, items they emitted. An outcome whose lease is stale changes
   * nothing (its tasks and items are dropped too) and is returned. When it resolves, everything in it is durable.
   */
  commit(outcomes: readonly Outcome[]): Promise<Committed>

  /**
   * Returns expired leases to pending as suspects, or to the dead letters after `lossesMax` losses. With `workerIds` the
   * leases of workers known to be dead are treated as expired too; `'all'` when no worker can be alive.
   */
  sweep(options: SweepOptions): Promise<{ returned: number; dead: number }>

  /** Cheap at any size: counters are kept, not counted. */
  stats(): Promise<FrontierStats>

  /** The first time (epoch ms) at which a waiting task becomes claimable or a lease runs out; undefined when there is none. */
  nextDueMs(): Promise<number | undefined>

  readonly dead: DeadLetters
  readonly items: ItemLog

  /** Claims give nothing while paused; leases already out may still be committed. Survives a restart. */
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
  /** Items stay readable when they are confirmed: the engine can be the store of a fleet's items. */
  readonly keepsItems?: boolean
  /** Keeps when each task came: `stats()` tells `oldestAgeMs`. */
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
  /** Lanes in the order they are served; default: all but those of files, `manual` and `priority` before the others. */
  lanes?: readonly string[]
  /** Hosts this worker cannot serve now (limit reached, paused); their tasks stay for others. */
  avoidHosts?: readonly string[]
}

export interface Lease {
  readonly task: Task
  /** Fencing token: changes with every claim, so whoever slept past the lease cannot settle it. */
  readonly token: string
  /** Which try this is, from 1. Postponements and lost leases do not count. */
  readonly attempt: number
  /** How often a worker was lost while holding this task. More than 0: a suspect, run alone. */
  readonly losses: number
}

export type Outcome = OutcomeBase &
  (
    | { kind: 'done'; tasks?: readonly NewTask[]; items?: readonly ItemRow[] }
    /** Again not before `atMs`; the try counts. */
    | { kind: 'retry'; atMs: number; error: ErrorRecord }
    /** Again not before `atMs`; the try does not count. Also how a draining worker hands tasks back (`atMs: 0`). */
    | { kind: 'postpone'; atMs: number; reason: string }
    /** To the dead letters. `snapshot` names what is kept of the last response. */
    | { kind: 'dead'; error: ErrorRecord; snapshot?: string }
  )

interface OutcomeBase {
  lease: Lease
  /** Added to the counters of the run together with the outcome: not if its lease is stale, and never twice. */
  counts?: Counts
}

export interface Committed {
  settled: number
  stale: Lease[]
  /** Discovered tasks, over all outcomes. */
  added: number
  seen: number
  items: {
    new: number
    /** Same key and same content as an item of this run. */
    same: number
    /** Same key as an item of this run, other content. The first one stays. */
    changed: number
    /** Items in the log that no sink has confirmed yet; a worker waits while this is over its bound. */
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
  /** Given up on: dead letters, and dead letters dropped since. */
  failed: number
  dead: number
  /** pending + claimed. */
  remaining: number
  /** Every task ever added: pending + claimed + completed + failed. */
  seen: number
  /** Accepted into the item log since the run began. */
  items: number
  /**
   * The sums of what outcomes counted since the run began; names that were never counted are missing. The engine itself counts
   * `items.changed`: items that were refused because their key is taken by an item with other content.
   */
  counts: Counts
  isPaused: boolean
  pauseReason: string | undefined
  /**
   * How long ago the oldest task that is due now was added. Undefined when none is due, or when the engine keeps no such time:
   * `sqlite:` and the engines on Redis (also `amqp:`) have only the order.
   */
  oldestAgeMs?: number | undefined
  lanes: Record<string, { pending: number; claimed: number }>
  /** The hosts with most pending tasks, at most 50. */
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
  /** Message with numbers, ids and URLs replaced, so that one cause is one group. */
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
  /** Back to pending with fresh tries. Returns how many. */
  retry(filter?: DeadFilter): Promise<number>
  /** Forgets them; they stay counted as failed and seen. Returns how many. */
  drop(filter?: DeadFilter): Promise<number>
}

/**
 * The run's accepted items between the commit that made them true and the sinks that hold them. One reader at a time drains
 * it: read, write to the sinks, flush them, then confirm with their positions. A crash between makes the reader start again
 * from the last confirmed positions, so that no item is lost and none is written twice.
 */
export interface ItemLog {
  /** Unconfirmed items in order, at most `max`, starting after `afterSeq`. */
  read(options: { afterSeq: number; max: number }): Promise<LoggedItem[]>
  /** Durable in all sinks up to `seq`: forget them and keep the sinks' positions, in one transaction. */
  confirm(seq: number, positions: SinkPositions): Promise<void>
  /** What was last confirmed; `seq` 0 and no positions for a new run. */
  confirmed(): Promise<{ seq: number; positions: SinkPositions }>
}

/** Sink name → its opaque position (a file's length, a row count …). */
export type SinkPositions = Record<string, string>

/** How the composition root opens an engine. */
export interface FrontierOptions {
  /** A fresh engine forgets what an earlier one left at the same place. Default: opens what is there. */
  fresh?: boolean
  /** Which run of a database that holds many. Engines with one run per place ignore it. Default `default`. */
  runId?: string
  /** Throws `E_RUN_NOT_FOUND` in place of making a run nobody has begun. For engines that hold many. Default false. */
  mustExist?: boolean
  /**
   * The engine is the store of the run's items: they stay there, nobody drains them, and `items.backlog` is always 0. For engines
   * that keep what is confirmed (`postgres:`); the others ignore it. Default false.
   */
  keepsItems?: boolean
  /** How long an operation waits for a server that went away. Engines without one ignore it. Default 60,000. */
  outageMs?: number
  /** Called once about entries that another program wrote among those of the run. For engines on Redis. */
  onWarning?: (message: string) => void
  /** Told before each wait for a server that went away. Engines without a server ignore it. */
  onOutage?: (outage: Outage) => void
  now?: () => number
}
