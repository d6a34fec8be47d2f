/** Which run is next: the one asked longest ago comes first, and idle runs are left alone for a while. */
import type { StoredRun } from '../../store/contract.ts'
import { inOrderOfNeed } from './worker-shares.ts'

/** Pause for a run that cannot be worked on from here. */
const HOPELESS_MS = 60_000
/** Pause for an idle run; doubles with each idle answer. */
const IDLE_MS = { min: 5_000, max: 60_000 }
/**
 * A few runs are each asked often; many are all asked about once in this time, so that runs with work are reached behind idle
 * ones.
 */
const ASK_EVERY_MS = 1_000

export class RunRotation {
  readonly #now: () => number
  readonly #rests = new Map<string, { untilMs: number; idleMs: number }>()
  readonly #turnAtMs = new Map<string, number>()
  #known = 0

  constructor(now: () => number) {
    this.#now = now
  }

  /** The runs of a list (newest first) that are not resting, oldest first. Runs missing from the list are forgotten. */
  open(runs: readonly StoredRun[]): Map<string, StoredRun> {
    const ids = new Set(runs.map(({ record }) => record.id))
    this.#known = ids.size
    for (const known of [this.#rests, this.#turnAtMs]) for (const id of known.keys()) if (!ids.has(id)) known.delete(id)
    const nowMs = this.#now()
    const open = runs.filter(({ record: { id } }) => nowMs > (this.#rests.get(id)?.untilMs ?? Number.NEGATIVE_INFINITY))
    return new Map(open.reverse().map((run) => [run.record.id, run]))
  }

  inOrder(runIds: Iterable<string>, counts: ReadonlyMap<string, number>): string[] {
    return inOrderOfNeed([...runIds], counts, this.#turnAtMs)
  }

  /** The run gets a worker. */
  served(runId: string): void {
    this.#rests.delete(runId)
    this.#turnAtMs.set(runId, this.#now())
  }

  /** The run has nothing to do now. */
  idle(runId: string): void {
    const beforeMs = this.#rests.get(runId)?.idleMs ?? 0
    const longestMs = Math.min(IDLE_MS.max, Math.max(IDLE_MS.min, this.#known * ASK_EVERY_MS))
    this.#rest(runId, Math.min(longestMs, Math.max(IDLE_MS.min, beforeMs * 2)))
  }

  hopeless(runId: string): void {
    this.#rest(runId, HOPELESS_MS)
  }

  #rest(runId: string, ms: number): void {
    const nowMs = this.#now()
    this.#rests.set(runId, { untilMs: nowMs + ms, idleMs: ms })
    this.#turnAtMs.set(runId, nowMs)
  }
}
