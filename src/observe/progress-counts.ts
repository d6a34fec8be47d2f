/** The frontier counts tasks of pages and files together; this separates them for display. */
import type { FileCounts } from '../core/run.ts'
import { isFileLane } from '../core/task.ts'
import type { FrontierStats } from '../frontier/contract.ts'

interface FileWork {
  pending: number
  /** Being processed by a file worker. */
  claimed: number
}

export function fileWork(lanes: FrontierStats['lanes']): FileWork {
  const work: FileWork = { pending: 0, claimed: 0 }
  for (const [lane, { pending, claimed }] of Object.entries(lanes)) {
    if (!isFileLane(lane)) continue
    work.pending += pending
    work.claimed += claimed
  }
  return work
}

type TaskCounts = Pick<FrontierStats, 'pending' | 'claimed' | 'completed' | 'failed' | 'remaining' | 'lanes'>
export type PageCounts = Omit<TaskCounts, 'lanes'>

/** The count of files may be slightly ahead of the frontier, or behind it: never returns less than 0. */
export function pageCounts(stats: TaskCounts, files: FileCounts): PageCounts {
  const { pending, claimed } = fileWork(stats.lanes)
  return {
    pending: Math.max(0, stats.pending - pending),
    claimed: Math.max(0, stats.claimed - claimed),
    completed: Math.max(0, stats.completed - fileTasksDone(files)),
    failed: Math.max(0, stats.failed - files.failed),
    remaining: Math.max(0, stats.remaining - pending - claimed),
  }
}

/** A file that was stored, or was already there, and then recorded is two tasks. */
export function fileTasksDone({ stored, same, recorded }: FileCounts): number {
  return stored + same + recorded
}

export function hasFiles(lanes: FrontierStats['lanes'], files: FileCounts): boolean {
  const { pending, claimed } = fileWork(lanes)
  return pending + claimed + fileTasksDone(files) + files.failed + files.retried > 0
}
