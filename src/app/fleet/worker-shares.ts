/** Assigns workers when there are more runs than places: no run has two while another has none, and all get a turn. */

/** A worker stays this long on a run before a run without workers gets its place. */
export const TURN_MS = 12_000

interface Placed {
  runId: string
  startedAtMs: number
  /** The worker has been asked to leave. */
  isLeaving: boolean
}

/** How many workers each run has, not counting those that are leaving. */
export function countByRun(workers: Iterable<Pick<Placed, 'runId' | 'isLeaving'>>): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { runId, isLeaving } of workers) if (!isLeaving) counts.set(runId, (counts.get(runId) ?? 0) + 1)
  return counts
}

/** Fewest workers first, then served longest ago. `runIds` are in order of arrival. */
export function inOrderOfNeed(
  runIds: readonly string[],
  counts: ReadonlyMap<string, number>,
  servedAtMs: ReadonlyMap<string, number>,
): string[] {
  const never = Number.NEGATIVE_INFINITY
  const need = (a: string, b: string) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0)
  return [...runIds].sort((a, b) => need(a, b) || compare(servedAtMs.get(a) ?? never, servedAtMs.get(b) ?? never))
}

/** Workers that must make room for waiting runs when all places are taken. */
export function toRelieve<T extends Placed>(
  workers: readonly T[],
  waiting: number,
  nowMs: number,
  turnMs = TURN_MS,
): T[] {
  const counts = countByRun(workers)
  const staying = workers.filter(({ isLeaving }) => !isLeaving).sort((a, b) => a.startedAtMs - b.startedAtMs)
  const relieved: T[] = []
  let wanted = waiting - (workers.length - staying.length) // workers that are already leaving make room, too
  for (; wanted > 0; wanted--) {
    const most = Math.max(0, ...counts.values())
    const next = staying.find(
      (one) =>
        !relieved.includes(one) && counts.get(one.runId) === most && (most > 1 || nowMs - one.startedAtMs >= turnMs),
    )
    if (next === undefined) break
    relieved.push(next)
    counts.set(next.runId, most - 1)
  }
  return relieved
}

const compare = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1)
