/**
 * How many workers a queue deserves. Only the decision: `app/autoscale.ts` carries it out.
 *
 *   needed = ceil(pending / perWorker), at least 1 while a run is open, within min and max
 *
 *   needed > target   up to needed, at most once per cooldown: new workers must show what they do first
 *   needed < target   down only when it stayed below for a whole cooldown, and then to the most that was needed in that time
 */

export interface ScalePolicy {
  min: number
  max: number
  /** Pending tasks that keep one worker busy. */
  perWorker: number
  cooldownMs: number
}

/** What one run has to do. */
export interface RunDepth {
  pending: number
  /** Waits by order: it needs nobody. */
  isPaused: boolean
}

/** What is remembered from decision to decision. */
export interface ScaleMemory {
  /** Undefined before the first decision. */
  target: number | undefined
  raisedAtMs: number
  /** Since when less is needed than there is, and the most that was needed since. */
  low: { sinceMs: number; peak: number } | undefined
}

export interface ScaleDecision {
  target: number
  needed: number
  pending: number
  isChanged: boolean
  /** For a person. */
  why: string
  memory: ScaleMemory
}

export const NO_MEMORY: ScaleMemory = { target: undefined, raisedAtMs: Number.NEGATIVE_INFINITY, low: undefined }

/**
 * Workers for these runs, all of which are open. A run is closed by a worker that sees its queue empty, so even an empty one
 * needs one.
 */
export function neededWorkers(runs: readonly RunDepth[], { min, max, perWorker }: ScalePolicy): number {
  const moving = runs.filter((run) => !run.isPaused)
  const wanted = moving.reduce((sum, { pending }) => sum + Math.max(1, Math.ceil(pending / perWorker)), 0)
  return Math.min(max, Math.max(min, wanted))
}

export function decideScale(
  runs: readonly RunDepth[],
  policy: ScalePolicy,
  memory: ScaleMemory,
  nowMs: number,
): ScaleDecision {
  const needed = neededWorkers(runs, policy)
  const pending = runs.reduce((sum, run) => sum + run.pending, 0)
  const { target } = memory
  const decide = (next: number, why: string, remembered: Partial<ScaleMemory>): ScaleDecision => ({
    target: next,
    needed,
    pending,
    isChanged: next !== target,
    why,
    memory: { ...memory, low: undefined, target: next, ...remembered },
  })
  if (target === undefined) return decide(needed, 'the first look', needed > 0 ? { raisedAtMs: nowMs } : {})
  if (needed === target) return decide(target, 'as many as needed', {})
  if (needed > target) {
    if (nowMs - memory.raisedAtMs >= policy.cooldownMs)
      return decide(needed, `${needed} needed for ${pending} pending`, { raisedAtMs: nowMs })
    return decide(target, `${needed} needed, but the last ones were started just now`, {})
  }
  const low = { sinceMs: memory.low?.sinceMs ?? nowMs, peak: Math.max(memory.low?.peak ?? 0, needed) }
  if (nowMs - low.sinceMs < policy.cooldownMs)
    return decide(target, `${needed} needed, but perhaps not for long`, { low })
  return decide(low.peak, `no more than ${low.peak} needed for ${policy.cooldownMs} ms`, {})
}

/** A run's share in the workers there are. */
export interface RunShare {
  runId: string
  pending: number
  isPaused: boolean
  /** At work for it now. */
  workers: number
}

/** Which run the next worker should join: the one with most to do for each worker it would then have. */
export function runToStaff(runs: readonly RunShare[]): string | undefined {
  let best: { runId: string; load: number } | undefined
  for (const { runId, pending, isPaused, workers } of runs) {
    if (isPaused) continue
    const load = workers === 0 ? Number.POSITIVE_INFINITY : pending / (workers + 1) // nobody waits while others have two
    if (best === undefined || load > best.load) best = { runId, load }
  }
  return best?.runId
}

export interface StaffedWorker {
  runId: string
  startedAtMs: number
}

/** Which worker to drain: the newest, but the last one of a run only when every run is down to its last. */
export function workerToDrain<W extends StaffedWorker>(workers: readonly W[]): W | undefined {
  const perRun = new Map<string, number>()
  for (const { runId } of workers) perRun.set(runId, (perRun.get(runId) ?? 0) + 1)
  const spare = workers.filter(({ runId }) => perRun.get(runId)! > 1)
  const from = spare.length > 0 ? spare : workers
  return from.reduce<W | undefined>(
    (newest, one) => (newest && newest.startedAtMs > one.startedAtMs ? newest : one),
    undefined,
  )
}
