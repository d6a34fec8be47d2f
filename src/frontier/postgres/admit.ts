/** Adding tasks, on the client: known tasks are left out, the rest become arrays. */
import { LruSet } from '../../core/lru-set.ts'
import type { NewTask } from '../../core/task.ts'
import { identityOf, packData } from '../shared/intake.ts'
import { numbersText, textsText } from './array-text.ts'
import type { Queues } from './queues.ts'

/** Links repeat: most of the twenty links on a page were also on the page before. */
const RECENT_MAX = 16_384

/** In the order of `TASK_PARAMETERS`, then the queues to open; all null if there are no tasks. */
type TaskValues = (string | null)[]
const NO_TASKS: TaskValues = Array(9).fill(null)

export const ADD = `select sluice.add($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`

export class Admission {
  readonly #queues: Queues
  /** A hit is always correct: a seen task stays seen, whichever process added it. May only contain committed tasks. */
  readonly #recent = new LruSet(RECENT_MAX)

  constructor(queues: Queues) {
    this.#queues = queues
  }

  isRecent(task: NewTask): boolean {
    const identity = identityOf(task)
    if (!this.#recent.has(identity)) return false
    this.#recent.add(identity)
    return true
  }

  committed(tasks: Iterable<NewTask>): void {
    for (const task of tasks) this.#recent.add(identityOf(task))
  }

  async valuesOf(tasks: readonly NewTask[], nowMs: number): Promise<TaskValues> {
    if (tasks.length === 0) return NO_TASKS
    const queues = await this.#queues.idsOf(tasks)
    // Converts local times to delays from now: the server adds them to its own clock.
    const delays = tasks.map(({ notBeforeMs }) => Math.max(0, Math.ceil((notBeforeMs ?? 0) - nowMs)))
    return [
      textsText(tasks.map(({ url }) => url)),
      textsText(tasks.map(({ key }) => key)),
      numbersText(queues),
      textsText(tasks.map(({ route }) => route)),
      numbersText(tasks.map(({ depth }) => depth)),
      textsText(tasks.map(packData)),
      textsText(tasks.map(({ session }) => session)),
      delays.some((delay) => delay > 0) ? numbersText(delays) : null,
      numbersText([...new Set(queues)]),
    ]
  }
}
