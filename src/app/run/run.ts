/** Starts a run: opens its folder, frontier, log and sinks, then hands them to its execution. */

import { type Config, flagLimits } from '../../config/config.ts'
import { assertTurnedOn } from '../../config/opt-in.ts'
import { checkArgs } from '../../config/scraper-arguments.ts'
import { createEventBus, type EventBus } from '../../core/events.ts'
import type { Scraper } from '../../core/scraper.ts'
import type { Json } from '../../core/task.ts'
import { compileScraper } from '../../crawl/compile-scraper.ts'
import { openFrontier } from '../../frontier/open.ts'
import { openRunLog } from '../../observe/logs.ts'
import { createTally } from '../../observe/tally.ts'
import { RunFolder } from '../../runs/run-folder.ts'
import {
  absolutePlace,
  claimFrontier,
  frontierUrlOf,
  keepArgs,
  keptArgs,
  queueUrlOf,
  refuseOtherRun,
  urlOfPlace,
} from '../../runs/run-identity.ts'
import { limitsOfSession, startRecord } from '../../runs/run-record.ts'
import type { Sink } from '../../sinks/contract.ts'
import { createDrain } from '../../sinks/drain.ts'
import { type Run, RunExecution } from './run-execution.ts'
import { openMetricsServer } from './run-metrics.ts'
import { openRunSinks, rememberSinks } from './run-sinks.ts'
import { openRunTracing } from './run-tracing.ts'

export type { Run }

interface RunRequest {
  scraper: Scraper
  /** Its file; needed for more than one process. */
  file?: string
  args?: Record<string, unknown>
  config: Config
  /** How the user names the scraper: shown in the command that resumes the run. Default: its name. */
  source?: string
  /** Whoever ordered it may name hosts of the private network. Default true. */
  isTrusted?: boolean
  /** By a server: its flags are defaults for all its runs, so a run that goes on has its own limits. */
  isServed?: boolean
  /** Go on with this run in place of a new one. */
  resume?: RunFolder
  /** Sinks of the caller's own, in place of those the options name. */
  sinks?: readonly Sink[]
  /** Keep pages as fixtures here. */
  recordTo?: string
  /** Hears everything from the first event on. */
  onEvent?: Parameters<EventBus['on']>[0]
}

/** Opens everything, then returns while the run goes on. Throws when it cannot begin. */
export async function startRun(asked: RunRequest): Promise<Run> {
  const { scraper, isServed = false } = asked
  assertTurnedOn(scraper, asked.config)
  const previous = asked.resume?.readRecord()
  const limits = limitsOfSession(previous, asked.config.limits, isServed ? {} : flagLimits(asked.config))
  const config = { ...asked.config, limits }
  const request = { ...asked, config }
  const compiled = compileScraper(scraper, limits, request.file)
  if (previous === undefined)
    checkArgs(scraper, request.args ?? {}) // before anything is made
  else refuseOtherRun(previous, request, config)
  const parts = new AsyncDisposableStack()
  const folder = parts.use(request.resume ?? RunFolder.create(config.values.out, scraper.name, Date.now()))
  try {
    folder.lock()
    const place = previous?.frontier ?? absolutePlace(config.values.frontier)
    const frontierUrl = frontierUrlOf(urlOfPlace(place, queueUrlOf(config.values)), folder)
    const frontier = parts.use(await openFrontier(frontierUrl, { runId: folder.runId, outageMs: config.values.outage }))
    await claimFrontier(frontier, folder, place, request.resume !== undefined)
    const given = previous === undefined ? (request.args ?? {}) : await keptArgs(frontier, previous, request.args)
    const args = checkArgs(scraper, given)
    if (previous === undefined) await keepArgs(frontier, given)
    if (request.resume !== undefined) await frontier.setMeta('stop', '') // what stopped it is over
    const bus = createEventBus()
    const tally = createTally()
    bus.on(tally.record)
    if (request.onEvent !== undefined) bus.on(request.onEvent)
    const log = parts.use(await openRunLog({ folder: folder.path, level: config.values.logLevel, runId: folder.runId }))
    bus.on(log.record)
    if (config.values.metrics !== undefined)
      parts.use(
        await openMetricsServer({
          address: config.values.metrics,
          scraper: scraper.name,
          runId: folder.runId,
          frontier,
          bus,
          disk: folder.path,
        }),
      )
    const tracing = await openRunTracing(config.values, { scraper: scraper.name, runId: folder.runId, bus })
    if (tracing !== undefined) parts.use(tracing)
    const sinks = request.sinks ?? (await openRunSinks(compiled, folder, frontier, config.values))
    const drain = parts.use(
      await createDrain({
        log: frontier.items,
        sinks,
        onFlushed: (flushed) => bus.emit({ type: 'sinks.flushed', ...flushed }),
        onStored: tracing?.stored,
      }),
    )
    if (request.sinks === undefined) await rememberSinks(frontier, compiled, config.values)
    bus.on((event) => {
      if (event.type === 'committed' && event.backlog > 0) drain.wake(event.backlog)
    })
    const record = startRecord({
      previous,
      runId: folder.runId,
      scraper: scraper.name,
      args: given as Json,
      limits,
      isServed,
      source: request.source ?? scraper.name,
      frontier: place,
      fields: compiled.fields,
      nowMs: Date.now(),
    })
    folder.writeRecord(record)
    folder.pointLatest()
    const execution = new RunExecution({
      config,
      isResumed: request.resume !== undefined,
      isTrusted: request.isTrusted ?? true,
      recordTo: request.recordTo,
      compiled,
      args,
      folder,
      frontier,
      frontierUrl,
      bus,
      tally,
      drain,
      sinks,
      record,
      parts: parts.move(),
    })
    return execution.begin()
  } catch (error) {
    await parts.disposeAsync()
    if (request.resume === undefined) folder.discard() // nothing has happened in it
    throw error
  }
}
