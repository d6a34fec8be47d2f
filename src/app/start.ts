/** Embedding: a run inside another program. `for await (const event of run.events) …; await run.result`. */

import type { OptionInputs } from '../config/option-table.ts'
import type { RunEvent } from '../core/events.ts'
import type { RunRecord } from '../core/run.ts'
import type { Scraper } from '../core/scraper.ts'
import type { Sink } from '../sinks/contract.ts'
import type { Run } from './run/run.ts'

/** The options that `sluice.config.ts` may set: `export default { rps: 2 } satisfies Options`. */
export type Options = OptionInputs

/** Options of `start`. They have the names of the flags: `rps` is `--rps`. */
export interface StartOptions<Args = unknown, Item = unknown> extends Options {
  /** In the form that the scraper's `args` schema accepts. */
  args?: unknown extends Args ? Record<string, unknown> : Args
  /** Path of the module that exports the scraper; needed for `processes` above 1. */
  file?: string
  /** Your own sinks, instead of files in the run folder; check them with `sinkConformance` of `sluice/testing`. */
  sinks?: readonly Sink<Item>[]
  /** Resume this run (id or path). */
  resume?: string
}

/** A run in progress: its events, its result, and methods to control it. */
export interface StartedRun extends Pick<Run, 'id' | 'folder' | 'stats' | 'pause' | 'resume' | 'stop'> {
  /** Everything that happens, from the first event until the run ends. Slow readers lose the oldest events: see `EVENTS_MAX`. */
  readonly events: AsyncIterable<RunEvent>
  readonly result: Promise<RunRecord>
}

/** Maximum number of events buffered for a slow reader. A run must not wait for its readers, nor fill the memory for them. */
const EVENTS_MAX = 10_000

/** Runs a scraper inside this program; resolves once the run has started. */
export async function start<Args = unknown, Item = unknown>(
  scraper: Scraper<Args, Item>,
  options: StartOptions<Args, Item> = {},
): Promise<StartedRun> {
  const { args, file, sinks, resume, ...flags } = options
  // Loaded here, not at the top: a scraper's file imports the public names and needs none of this.
  const [{ resolveConfig }, { startRun }, { findRun }] = await Promise.all([
    import('../config/config.ts'),
    import('./run/run.ts'),
    import('../runs/run-folder.ts'),
  ])
  const config = await resolveConfig({ flags })
  const feed = new EventFeed()
  const run = await startRun({
    scraper,
    config,
    onEvent: (event) => feed.push(event),
    args: args as Record<string, unknown> | undefined,
    file,
    sinks: sinks as readonly Sink[] | undefined,
    resume: resume === undefined ? undefined : findRun(config.values.out, resume),
  })
  const end = () => feed.end()
  run.result.then(end, end)
  return {
    id: run.id,
    folder: run.folder,
    events: feed,
    result: run.result,
    stats: run.stats,
    pause: run.pause,
    resume: run.resume,
    stop: run.stop,
  }
}

class EventFeed implements AsyncIterable<RunEvent> {
  readonly #waiting: RunEvent[] = []
  #wake: (() => void) | undefined
  #isEnded = false

  push(event: RunEvent): void {
    this.#waiting.push(event)
    if (this.#waiting.length > EVENTS_MAX) this.#waiting.splice(0, EVENTS_MAX / 10)
    this.#wake?.()
  }

  end(): void {
    this.#isEnded = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RunEvent> {
    for (;;) {
      const event = this.#waiting.shift()
      if (event !== undefined) yield event
      else if (this.#isEnded) return
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }
}
