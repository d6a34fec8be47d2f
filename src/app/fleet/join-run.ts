/** Joins a fleet run: finds it, rejects a scraper or options that do not match, opens what a worker needs, and starts it. */
import { hostname } from 'node:os'
import { assertTurnedOn } from '../../config/opt-in.ts'
import { ScrapeError } from '../../core/errors.ts'
import { createEventBus } from '../../core/events.ts'
import { isComplete, type RunRecord } from '../../core/run.ts'
import { compileScraper } from '../../crawl/compile-scraper.ts'
import { openLineLog } from '../../observe/logs.ts'
import { createTally } from '../../observe/tally.ts'
import { openFleetFrontier, openStore } from '../../runs/fleet-places.ts'
import { firstInQueue, openQueueOf } from '../../runs/queue-of-run.ts'
import { withLimits } from '../../runs/run-record.ts'
import type { Store, StoredRun } from '../../store/contract.ts'
import { assertCanBrowse } from '../run/open-browsers.ts'
import { openRunTracing } from '../run/run-tracing.ts'
import { type FleetWorker, type FleetWorkerRequest, WorkingLife } from './fleet-worker.ts'
import { refuseOtherScraper } from './start-distributed.ts'

/** Maximum number of log lines between two heartbeats; beyond this they are mostly repetition. */
const LOG_LINES_MAX = 500
/** How many runs are checked for one that is in this queue. */
const RUNS_MAX = 100

export function newWorkerId(): string {
  const chance = Math.random().toString(36).slice(2, 8).padEnd(6, '0')
  return `${hostname()}_${process.pid}_${chance}`
}

/** Opens everything, then returns while the worker is running. Throws if it cannot join. */
export async function joinRun(request: FleetWorkerRequest): Promise<FleetWorker> {
  const { config, loaded } = request
  assertTurnedOn(loaded.scraper, config)
  if (request.only !== 'files') await assertCanBrowse(loaded.scraper, config.values.chrome)
  const parts = new AsyncDisposableStack()
  try {
    const store = parts.use(await openStore(config.values))
    const run = await runToJoin(store, request)
    refuseOtherScraper(run, loaded)
    const { limits } = run.options
    const limitsHere = request.isServed ? withLimits(config.limits, limits) : withLimits(limits, config.limits)
    const wait = request.keepsWaiting === true ? { wait: true as const } : {}
    const compiled = compileScraper(loaded.scraper, { ...limitsHere, ...wait }, loaded.file)
    const bus = createEventBus()
    const tally = createTally()
    bus.on(tally.record)
    if (request.onEvent !== undefined) bus.on(request.onEvent)
    const warn = (message: string) => bus.emit({ type: 'log', level: 'warn', message })
    const open = () =>
      openFleetFrontier(config.values, run.record.id, {
        store,
        rules: run.options.rules,
        onOutage: warn,
        outageMs: config.values.outage,
        mustExist: true,
      })
    const frontier = parts.use(await openQueueOf(run.record, config.values.frontier, open))
    const id = newWorkerId()
    const logLines: string[] = []
    bus.on(
      await openLineLog({
        level: config.values.logLevel,
        base: { run: run.record.id, worker: id },
        write: (line) => void (logLines.length < LOG_LINES_MAX && logLines.push(line)),
      }),
    )
    const { name: scraper } = loaded.scraper
    const runId = run.record.id
    const workerStates = async () => (await store.listWorkers({ runId })).map(({ state }) => state)
    if (request.vitals !== undefined)
      parts.use(request.vitals.join({ workerId: id, runId, scraper, frontier, bus, workerStates }))
    parts.use(await openRunTracing(config.values, { scraper, runId, bus, storesAtCommit: true }))
    const { region } = config.values
    await store.registerWorker({ id, runId, scraper, host: hostname(), pid: process.pid, region, only: request.only })
    return new WorkingLife({
      request,
      store,
      run,
      compiled,
      frontier,
      bus,
      tally,
      id,
      logLines,
      parts: parts.move(),
    }).begin()
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}

async function runToJoin(store: Store, { runId, loaded, config }: FleetWorkerRequest): Promise<StoredRun> {
  const { name } = loaded.scraper
  const { region } = config.values
  const running =
    runId === undefined
      ? await store.listRuns({ scraper: name, states: ['running'], limit: RUNS_MAX, openTo: { region } })
      : []
  const found = runId === undefined ? firstInQueue(running, config.values.frontier) : await store.findRun(runId)
  if (found === undefined)
    throw new ScrapeError(
      'E_RUN_NOT_FOUND',
      runId === undefined
        ? `no run of "${name}"${region === undefined ? '' : ` for region ${region}`} is going on in ${store.place}`
        : `no run ${runId} in ${store.place}`,
      {
        fix: `Start one: sluice start ${name} --mode distributed. Or name the store it is in with --store (SLUICE_STORE): a file is seen from its own machine and folder only.`,
      },
    )
  refuseOtherRegion(found.record, region)
  const { id, state, reason } = found.record
  if (state !== 'running' && !isComplete(found.record))
    throw new ScrapeError('E_OPTION', `run ${id} is ${state}: ${reason ?? 'no reason was given'}`, {
      fix: `Open it again: sluice start ${name} --resume ${id}`,
    })
  return found
}

function refuseOtherRegion({ id, region: wanted }: RunRecord, own: string | undefined): void {
  if (wanted === undefined || wanted === own) return
  throw new ScrapeError(
    'E_OPTION',
    `run ${id} is for workers of region ${wanted}; this one ${own === undefined ? 'has no region' : `is of region ${own}`}`,
    { fix: `Start the worker with --region ${wanted} (SLUICE_REGION), where that is true.` },
  )
}
