/** Runs that were interrupted when their server ended: it resumes them when it is back. */

import { listRuns, type RunFolder } from '../../../runs/run-folder.ts'
import { isLeftByServer } from '../../../runs/run-record.ts'
import type { OpenRun } from '../../../runs/run-view.ts'
import type { OpenRunCache } from './open-run-cache.ts'

/** Only this many of the newest folders are read. */
const FOLDERS_MAX = 1000
const LOOK_MS = 500
/**
 * A run whose server was killed ends on its own within its drain time; one still running after that belongs to another process.
 */
const WAIT_MS_MAX = 90_000

interface InterruptedParts {
  out: string
  openRuns: OpenRunCache
  goOn: (run: OpenRun) => Promise<unknown>
  say: (level: 'info' | 'warn', message: string) => void
}

export class InterruptedRuns implements AsyncDisposable {
  readonly #parts: InterruptedParts
  readonly #stop = new AbortController()
  readonly #working: Promise<void>

  constructor(parts: InterruptedParts) {
    this.#parts = parts
    this.#working = this.#goOnWithAll().catch((error: Error) => parts.say('warn', `interrupted runs: ${error.message}`))
  }

  async #goOnWithAll(): Promise<void> {
    const untilMs = performance.now() + WAIT_MS_MAX
    let left = listRuns(this.#parts.out).slice(0, FOLDERS_MAX).filter(isCandidate).reverse()
    while (left.length > 0 && performance.now() < untilMs && !this.#stop.signal.aborted) {
      const alive: RunFolder[] = []
      for (const folder of left) if (await this.#isStillAlive(folder)) alive.push(folder)
      left = alive
      if (left.length > 0) await new Promise((resolve) => setTimeout(resolve, LOOK_MS).unref())
    }
  }

  /** Resumes a run whose process is gone, unless it was stopped or resumed since. */
  async #isStillAlive({ runId }: RunFolder): Promise<boolean> {
    const { openRuns, goOn, say } = this.#parts
    if (this.#stop.signal.aborted) return false
    try {
      const run = await openRuns.run(runId)
      if (run.isAlive) return true
      if (!isLeftByServer(run.record) || (await isHeld(run))) return false
      await openRuns.change(runId, goOn)
      say('info', `run ${runId} resumes: ${run.record.reason}`)
    } catch (error) {
      say('warn', `run ${runId} cannot be resumed: ${(error as Error).message}`)
    }
    return false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#working
  }
}

async function isHeld({ frontier }: OpenRun): Promise<boolean> {
  if (frontier === undefined) return true // a queue in memory is gone
  return (await frontier.stats()).isPaused || Boolean(await frontier.getMeta('stop'))
}

function isCandidate(folder: RunFolder): boolean {
  try {
    const record = folder.readRecord()
    return record !== undefined && record.isServed === true && (record.state === 'running' || isLeftByServer(record))
  } catch {
    return false
  }
}
