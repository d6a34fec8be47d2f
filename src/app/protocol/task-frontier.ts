/** The queue of one task: in memory, without files, and reporting how many items there are. */
import { isFileLane } from '../../core/task.ts'
import type { Frontier, Outcome } from '../../frontier/contract.ts'
import { over } from '../../frontier/over.ts'

interface TaskFrontierOptions {
  /** Called after each commit. */
  onItems: (items: number) => void
  /** Called when a page requested files, which a task does not return. */
  onFiles: (files: number) => void
}

export function taskFrontier(inner: Frontier, { onItems, onFiles }: TaskFrontierOptions): Frontier {
  let items = 0
  return over(inner, {
    async commit(outcomes) {
      const committed = await inner.commit(outcomes.map((outcome) => withoutFiles(outcome, onFiles)))
      items += committed.items.new
      onItems(items)
      // No sink drains these items, so nothing must wait for one.
      return { ...committed, items: { ...committed.items, backlog: 0 } }
    },
  })
}

function withoutFiles(outcome: Outcome, onFiles: (files: number) => void): Outcome {
  if (outcome.kind !== 'done' || outcome.tasks === undefined) return outcome
  const tasks = outcome.tasks.filter(({ lane = '' }) => !isFileLane(lane))
  if (tasks.length === outcome.tasks.length) return outcome
  onFiles(outcome.tasks.length - tasks.length)
  return { ...outcome, tasks }
}
