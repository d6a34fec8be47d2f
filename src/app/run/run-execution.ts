/** A run while it executes: its workers, sinks and record, until the end is judged. `run.ts` opens what it needs. */

import { resolve } from 'node:path'
import type { Config } from '../../config/config.ts'
import { unknownBoards } from '../../config/opt-in.ts'
import { userAgent } from '../../config/user-agent.ts'
import { systemClock } from '../../core/clock.ts'
import { ScrapeError, toScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { every } from '../../core/every.ts'
import type { RunRecord } from '../../core/run.ts'
import type { Json } from '../../core/task.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { CrawlEnd } from '../../crawl/contract.ts'
import type { Frontier, FrontierStats } from '../../frontier/contract.ts'
import type { Tally } from '../../observe/tally.ts'
import { troubleNotes } from '../../observe/trouble.ts'
import { fullRunBefore } from '../../runs/earlier-run.ts'
import type { RunFolder } from '../../runs/run-folder.ts'
import { cacheStoreOf } from '../../runs/run-identity.ts'
import {
  failureNotes,
  isEmpty,
  judge,
  type RecordBase,
  setFiles,
  TIME_REACHED,
  updateRecord,
} from '../../runs/run-record.ts'
import type { Sink } from '../../sinks/contract.ts'
import type { Drain } from '../../sinks/drain.ts'
import { egressOf } from './egress-options.ts'
import { findExamples } from './error-examples.ts'
import { LOSSES_MAX, runProcesses, sweep } from './processes.ts'
import { traceRatioOf } from './run-tracing.ts'
import { seed } from './seed.ts'
import { placeIn, work } from './worker.ts'
import { browserSpecOf, fileSpecOf, type WorkerSpec } from './worker-spec.ts'

export interface Run {
  readonly id: string
  readonly folder: string
  readonly limits: CompiledScraper['limits']
  readonly tally: Tally
  readonly startedAtMs: number
  stats(): Promise<FrontierStats>
  pause(reason?: string): Promise<void>
  resume(): Promise<void>
  /** Stops claiming, and finishes or hands back what is in flight; the run stays resumable. May be called twice. */
  stop(reason: string): void
  /** How it ended. Rejects only if the run could not be executed at all. */
  readonly result: Promise<RunRecord>
}

const RECORD_EVERY_MS = 500

interface ExecutionParts {
  config: Config
  isResumed: boolean
  /** The client may name hosts in the private network. */
  isTrusted: boolean
  /** Where to save pages as fixtures. */
  recordTo: string | undefined
  compiled: CompiledScraper
  args: Json
  folder: RunFolder
  frontier: Frontier
  frontierUrl: string
  bus: EventBus
  tally: Tally
  drain: Drain
  sinks: readonly Sink[]
  record: RunRecord
  /** Closed when the run has ended. */
  parts: AsyncDisposableStack
}

export class RunExecution {
  readonly #parts: ExecutionParts
  readonly #stop = new AbortController()
  readonly #startedAtMs = Date.now()
  readonly #base: RecordBase

  constructor(parts: ExecutionParts) {
    this.#parts = parts
    this.#base = structuredClone(parts.record)
  }

  begin(): Run {
    const { folder, compiled, frontier, tally } = this.#parts
    const stop = (reason: string) => this.#stop.abort(new ScrapeError('E_STOPPED', reason))
    const { time } = compiled.limits
    const timeLimit = time === undefined ? undefined : setTimeout(() => stop(TIME_REACHED), time)
    let lastStats: FrontierStats | undefined
    const result = this.#execute().finally(() => clearTimeout(timeLimit))
    result.catch(() => {}) // callers that care await it
    return {
      id: folder.runId,
      folder: folder.path,
      limits: compiled.limits,
      tally,
      startedAtMs: this.#startedAtMs,
      result,
      stop,
      // The frontier is closed when the run has ended; the last figures stay readable.
      stats: async () => {
        if (this.#parts.record.state === 'running') lastStats = await frontier.stats()
        return lastStats ?? (await frontier.stats())
      },
      pause: (reason = 'paused by hand') => frontier.pause(reason),
      resume: () => frontier.resume(),
    }
  }

  async #execute(): Promise<RunRecord> {
    const { folder, bus, record, frontier, parts, tally, compiled } = this.#parts
    const { scraper } = compiled
    await using _ = parts
    const saving = every(() => this.#save().catch(() => {}), RECORD_EVERY_MS)
    bus.emit({
      type: 'run.started',
      runId: folder.runId,
      scraper: scraper.name,
      resumed: this.#parts.isResumed,
    })
    for (const message of unknownBoards(scraper, this.#parts.config)) bus.emit({ type: 'log', level: 'warn', message })
    const crawling = this.#crawl()
    let end: CrawlEnd
    try {
      end = await Promise.race([crawling, this.#sinkFailure()])
      if (end.how === 'limit' && (await frontier.stats()).remaining === 0) end = { how: 'finished' }
      await this.#drainSinks(end)
      record.outputs = await this.#outputs(end.how === 'finished')
    } catch (error) {
      end = { how: 'halted', error: toScrapeError(error, 'E_HANDLER') }
      await crawling.catch(() => {}) // it hands its tasks back before the frontier is closed
    } finally {
      clearInterval(saving)
    }
    updateRecord(record, this.#base, await frontier.stats(), tally.snapshot(), Date.now() - this.#startedAtMs)
    await findExamples(record, frontier)
    await this.#countFiles()
    this.#judge(end)
    record.finishedAt = new Date().toISOString()
    try {
      folder.writeRecord(record)
    } catch (error) {
      // The record on disk still says "running", which --resume correctly treats as unfinished.
      if (end.how !== 'halted') judge(record, { how: 'halted', error: error as ScrapeError }, compiled, undefined)
    }
    bus.emit({
      type: 'run.finished',
      runId: folder.runId,
      scraper: scraper.name,
      state: record.state,
      reason: record.reason ?? undefined,
    })
    return record
  }

  #judge(end: CrawlEnd): void {
    const { record, compiled, folder, tally, bus } = this.#parts
    const told = tally.snapshot()
    judge(record, end, compiled, this.#stopReason())
    const before = isEmpty(record) ? fullRunBefore(resolve(folder.path, '../..'), record) : undefined
    if (before !== undefined) {
      judge(record, end, compiled, this.#stopReason(), before)
      for (const message of record.warnings) bus.emit({ type: 'log', level: 'warn', message })
    }
    record.warnings.push(...failureNotes(record, told.errors), ...troubleNotes(told))
  }

  async #crawl(): Promise<CrawlEnd> {
    const { config, isResumed, isTrusted, frontier, frontierUrl, compiled, args, bus, folder } = this.#parts
    const stop = this.#stop.signal
    if (isResumed) {
      // We hold the folder's lock, so every other holder of a lease is dead.
      const swept = await frontier.sweep({ lossesMax: LOSSES_MAX, workerIds: 'all' })
      if (swept.returned + swept.dead > 0) bus.emit({ type: 'leases.expired', ...swept })
    }
    await seed({ compiled, args, frontier, bus, isTrusted, stop })
    const { processes } = config.values
    const spec = await this.#workerSpec()
    if (spec.pagesMax <= 0) return { how: 'limit' }
    const sweeping = every(() => sweep({ frontier, bus, lossesMax: LOSSES_MAX }), spec.leaseMs / 2)
    try {
      if (processes === 1) return await work(spec, { compiled, frontier, bus, place: placeIn(folder, false) }, stop)
      return await runProcesses(
        {
          spec: { ...spec, args: this.#parts.record.args }, // as given: each process applies the schema itself
          processes,
          compiled,
          frontier,
          frontierUrl,
          bus,
          folder,
          lossesMax: LOSSES_MAX,
          pagesLeft: this.#pagesLeft,
          limits: config.limits,
        },
        stop,
      )
    } finally {
      clearInterval(sweeping)
    }
  }

  async #workerSpec(): Promise<WorkerSpec> {
    const { config, compiled, args, folder, recordTo } = this.#parts
    const { values } = config
    return {
      workerId: `${folder.runId}-${process.pid}`,
      args,
      concurrency: compiled.limits.concurrency,
      perHostConcurrency: compiled.limits.perHost.concurrency,
      pagesMax: await this.#pagesLeft(),
      leaseMs: values.lease,
      drainMs: values.drainTimeout,
      userAgent: userAgent(values),
      allowPrivate: values.allowPrivate,
      allowAddresses: values.allowAddress,
      cacheStore: cacheStoreOf(values),
      ways: egressOf(values),
      browsers: browserSpecOf(values),
      files: fileSpecOf(values, folder, folder.file('files.db')),
      memoryReserve: values.memoryReserve,
      isOneOfMany: values.processes > 1,
      isFirstStart: !this.#parts.isResumed && values.processes === 1,
      traceRatio: traceRatioOf(values),
      recordTo,
    }
  }

  /** What remains of the run's page limit. */
  #pagesLeft = async (): Promise<number> => {
    const { frontier, compiled, folder } = this.#parts
    const { pages } = compiled.limits
    if (pages === undefined) return Number.MAX_SAFE_INTEGER
    const { countPages } = await import('../../runs/file-records.ts')
    return pages - (await countPages(folder.file('files.db'), folder.runId, frontier))
  }

  /** A finished run waits for its sinks. A stopped run gives them the drain time: the rest stays in the log. */
  async #drainSinks(end: CrawlEnd): Promise<void> {
    const drained = this.#parts.drain.drainAll()
    if (end.how === 'finished' && !this.#stop.signal.aborted) return await drained
    drained.catch(() => {}) // the next resume will see a failure after the deadline
    const { drainTimeout } = this.#parts.config.values
    const over = new AbortController()
    await Promise.race([drained, systemClock.sleep(drainTimeout, over.signal).catch(() => {})])
    over.abort()
  }

  /** Rejects when a sink fails, which ends the crawl; never resolves. */
  async #sinkFailure(): Promise<never> {
    await this.#parts.drain.ended.catch((cause) => {
      const error = toScrapeError(cause, 'E_OUTPUT')
      this.#stop.abort(error)
      throw error
    })
    return await new Promise<never>(() => {})
  }

  /** A run that can be resumed has output files, too; only a finished run completes them. */
  async #outputs(isFinished: boolean): Promise<RunRecord['outputs']> {
    const { drain, sinks } = this.#parts
    if (!isFinished)
      return sinks.flatMap((sink) => (sink.soFar === undefined ? [] : [{ sink: sink.name, ...sink.soFar() }]))
    const results = await drain.finish()
    return results.map((result, i) => ({ sink: sinks[i]!.name, ...result }))
  }

  /** At the end, uses confirmed figures: the counts of a process killed with -9 are lost. */
  async #countFiles(): Promise<void> {
    const { record, frontier, folder } = this.#parts
    const { countFiles } = await import('../../runs/file-records.ts')
    const certain = await countFiles(folder.file('files.db'), folder.runId, frontier).catch(() => undefined)
    if (certain !== undefined) setFiles(record, await frontier.stats(), { ...record.files, ...certain })
  }

  #stopReason(): string | undefined {
    const { reason } = this.#stop.signal
    return reason instanceof Error ? reason.message : undefined
  }

  async #save(): Promise<void> {
    const { record, frontier, tally, folder } = this.#parts
    if (record.state !== 'running') return
    const asked = await frontier.getMeta('stop') // `sluice cancel`, in another process
    if (asked) this.#stop.abort(new ScrapeError('E_STOPPED', asked))
    updateRecord(record, this.#base, await frontier.stats(), tally.snapshot(), Date.now() - this.#startedAtMs)
    folder.writeRecord(record)
  }
}
