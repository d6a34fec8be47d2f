/** Fair sharing: the order of lanes, and how the tasks of a claim are dealt out over the hosts of one priority. */
import { isFileLane } from '../../core/task.ts'

/** A host's tasks in one lane and priority, as an engine offers them to a claim. */
export interface Candidate {
  readonly lane: string
  readonly host: string
  readonly priority: number
  /** Grows each time the queue is served or becomes non-empty: the lowest has waited longest. */
  readonly turn: number
  /** Tasks that can be claimed now; at least 1. */
  readonly ready: number
}

const FIRST_LANES = ['manual', 'priority']

/** Lanes in the order they are served. Lanes in one group share: among them only priority and turn decide. */
export function laneGroups(known: Iterable<string>, wanted?: readonly string[]): string[][] {
  const lanes = new Set(known)
  const first = (wanted ?? FIRST_LANES).filter((lane) => lanes.has(lane)).map((lane) => [lane])
  if (wanted !== undefined) return first
  const others = [...lanes].filter((lane) => !FIRST_LANES.includes(lane) && !isFileLane(lane))
  return others.length === 0 ? first : [...first, others]
}

/** Whether a claim for these lanes may be given a task of this one. */
export function isServed(lane: string, wanted: readonly string[] | undefined): boolean {
  return wanted?.includes(lane) ?? !isFileLane(lane)
}

export function byTurn(a: Candidate, b: Candidate): number {
  return b.priority - a.priority || a.turn - b.turn
}

/**
 * One entry per task to claim, in the order in which they are given out: the top priority first, and within it one task of each
 * queue per round. `candidates` are in the order of `byTurn`.
 */
export function deal<Q extends Candidate>(candidates: readonly Q[], max: number): Q[] {
  const dealt: Q[] = []
  let start = 0
  while (start < candidates.length && dealt.length < max) {
    const priority = candidates[start]!.priority
    let end = start
    while (candidates[end]?.priority === priority) end++
    let level = candidates.slice(start, end)
    for (let round = 1; level.length > 0 && dealt.length < max; round++) {
      dealt.push(...level.slice(0, max - dealt.length))
      level = level.filter((queue) => queue.ready > round)
    }
    start = end
  }
  return dealt
}
