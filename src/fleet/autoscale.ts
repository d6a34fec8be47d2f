/**
 * How many workers each run should have. Only the decision; `autoscale-loop.ts` has it carried out.
 *
 *   each run   needed = ceil(pending / perWorker), at least 1, at most max; a paused run needs none
 *              needed > wanted   up to needed, at most once per cooldown: new workers must take effect first
 *              needed < wanted   down only if it stayed below for a whole cooldown, to the peak of that time
 *   together   wanted > max      one for each run, then a second for each, and so on until max is used up
 *              wanted < min      one more for the run with the fewest, until min is reached
 *
 * Shares depend on what is wanted and on the runs' age, never on small differences in depth: two runs of the same size would take
 * the odd worker from each other at every look.
 */

export interface ScalePolicy {
  min: number
  max: number
  /** Pending tasks that keep one worker busy. */
  perWorker: number
  cooldownMs: number
}

/** The work of one open run. */
export interface RunDepth {
  /** Ids sort by time. */
  runId: string
  pending: number
  /** Includes tasks in progress. */
  remaining: number
  /** Paused on request: it needs no workers. */
  isPaused: boolean
}

/** State kept between decisions. */
export interface ScaleMemory {
  /** The last decision; undefined before the first. */
  last: Staffing | undefined
  /** Runs that were open and not paused. */
  runs: ReadonlyMap<string, RunMemory>
}

interface RunMemory {
  wanted: number
  raisedAtMs: number
  /** Since when less is needed than wanted, and the peak since then. */
  low: { sinceMs: number; peak: number } | undefined
}

export interface Staffing {
  /** Total number of workers: the shares, but never less than `min`, even if no run can use them. */
  target: number
  /** Workers for each open run. A run that is missing here is over. */
  shares: ReadonlyMap<string, number>
}

export interface ScaleDecision extends Staffing {
  needed: number
  pending: number
  isChanged: boolean
  /** For display. */
  why: string
  memory: ScaleMemory
}

export const NO_MEMORY: ScaleMemory = { last: undefined, runs: new Map() }

/** A run is closed by a worker that sees its queue empty, so even an empty one needs a worker. */
export function neededWorkers({ pending, isPaused }: RunDepth, { max, perWorker }: ScalePolicy): number {
  return isPaused ? 0 : Math.min(max, Math.max(1, Math.ceil(pending / perWorker)))
}

export function decideScale(
  runs: readonly RunDepth[],
  policy: ScalePolicy,
  memory: ScaleMemory,
  nowMs: number,
): ScaleDecision {
  const moving = runs.filter((run) => !run.isPaused).sort(workFirst)
  const reasons: string[] = []
  const known = new Map<string, RunMemory>()
  for (const run of moving) {
    const { why, ...remembered } = want(run, policy, memory.runs.get(run.runId), nowMs)
    known.set(run.runId, remembered)
    if (why !== undefined) reasons.push(runs.length > 1 ? `${run.runId}: ${why}` : why)
  }
  const wanted = new Map([...known].map(([runId, { wanted }]) => [runId, wanted]))
  if (sum(wanted.values()) > policy.max) reasons.push(`fair shares of ${policy.max}`)
  const idle = runs.filter((run) => run.isPaused).map(({ runId }) => [runId, 0] as const)
  const shares = new Map([...dealOut(policy.max, raise(wanted, policy.min)), ...idle])
  const staffing = { target: Math.max(policy.min, sum(shares.values())), shares }
  return {
    ...staffing,
    needed: bounded(sum(runs.map((run) => neededWorkers(run, policy))), policy),
    pending: sum(runs.map(({ pending }) => pending)),
    isChanged: memory.last === undefined || !isSame(staffing, memory.last),
    why: reasons.join('; ') || (moving.length > 0 ? 'as many as needed' : 'no run has anything to do'),
    memory: { last: staffing, runs: known },
  }
}

/** What a run wants on its own: what it needs, without following every fluctuation of its queue. */
function want(
  run: RunDepth,
  policy: ScalePolicy,
  before: RunMemory | undefined,
  nowMs: number,
): RunMemory & { why?: string } {
  const needed = neededWorkers(run, policy)
  if (before === undefined) return { wanted: needed, raisedAtMs: nowMs, low: undefined, why: 'the first look' }
  const { wanted, raisedAtMs } = before
  if (needed === wanted) return { ...before, low: undefined }
  if (needed > wanted) {
    if (nowMs - raisedAtMs >= policy.cooldownMs)
      return { wanted: needed, raisedAtMs: nowMs, low: undefined, why: `${needed} needed for ${run.pending} pending` }
    return { ...before, low: undefined, why: `${needed} needed, but the last ones were started just now` }
  }
  const low = { sinceMs: before.low?.sinceMs ?? nowMs, peak: Math.max(before.low?.peak ?? 0, needed) }
  if (nowMs - low.sinceMs < policy.cooldownMs)
    return { ...before, low, why: `${needed} needed, but perhaps not for long` }
  return { wanted: low.peak, raisedAtMs, low: undefined, why: `no more than ${low.peak} needed for some time` }
}

/**
 * If there are more runs than workers, runs with work come before those that only wait to be closed or filled, then the oldest.
 * Tasks in progress count: a run whose last page is in flight must not lose its worker and get it back with the page.
 */
function workFirst(a: RunDepth, b: RunDepth): number {
  return Number(b.remaining > 0) - Number(a.remaining > 0) || (a.runId < b.runId ? -1 : 1)
}

/** One for each in turn, none beyond what it wants, until `total` is used up. */
function dealOut(total: number, wanted: ReadonlyMap<string, number>): Map<string, number> {
  const shares = new Map([...wanted.keys()].map((runId) => [runId, 0]))
  let left = Math.min(total, sum(wanted.values()))
  for (let round = 1; left > 0; round++)
    for (const [runId, most] of wanted) {
      if (most < round || left === 0) continue
      shares.set(runId, round)
      left--
    }
  return shares
}

function raise(wanted: ReadonlyMap<string, number>, min: number): Map<string, number> {
  const raised = new Map(wanted)
  for (let lack = min - sum(wanted.values()); lack > 0 && raised.size > 0; lack--) {
    const [runId, fewest] = [...raised].reduce((least, one) => (one[1] < least[1] ? one : least))
    raised.set(runId, fewest + 1)
  }
  return raised
}

function isSame(a: Staffing, b: Staffing): boolean {
  const runIds = [...a.shares.keys(), ...b.shares.keys()]
  return a.target === b.target && runIds.every((runId) => (a.shares.get(runId) ?? 0) === (b.shares.get(runId) ?? 0))
}

const sum = (numbers: Iterable<number>) => [...numbers].reduce((total, one) => total + one, 0)
const bounded = (wanted: number, { min, max }: ScalePolicy) => Math.min(max, Math.max(min, wanted))

interface StaffChanges {
  /** How many workers of each run to drain, the newest first. */
  drain: Map<string, number>
  /** The run of each new worker, in this order. */
  start: string[]
}

/**
 * The changes that lead from the current workers to the shares. At most `roomMax` may be started now; if that is too few, runs
 * with the fewest workers come first, and the rest follows when the drained workers have ended.
 */
export function staffChanges(
  workers: ReadonlyMap<string, number>,
  shares: ReadonlyMap<string, number>,
  roomMax: number,
): StaffChanges {
  const drain = new Map<string, number>()
  for (const [runId, count] of workers) {
    const spare = count - (shares.get(runId) ?? 0)
    if (spare > 0) drain.set(runId, spare)
  }
  const short = new Map([...shares].map(([runId]) => [runId, workers.get(runId) ?? 0]))
  const start: string[] = []
  while (start.length < roomMax) {
    const lacking = [...short].filter(([runId, count]) => count < shares.get(runId)!)
    if (lacking.length === 0) break
    const [runId, count] = lacking.reduce((least, one) => (one[1] < least[1] ? one : least))
    short.set(runId, count + 1)
    start.push(runId)
  }
  return { drain, start }
}
