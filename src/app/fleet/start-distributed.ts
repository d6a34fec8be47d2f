/** Starts a fleet run: creates it, fills its queue, and says how a worker joins. */
import { readFileSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import type { LoadedScraper } from '../../config/load-scraper.ts'
import { assertTurnedOn } from '../../config/opt-in.ts'
import { checkArgs } from '../../config/scraper-arguments.ts'
import { userAgent } from '../../config/user-agent.ts'
import { exitCodeOfClass, ScrapeError, toScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { isComplete, newRunId, type RunRecord } from '../../core/run.ts'
import type { Json } from '../../core/task.ts'
import { compileScraper } from '../../crawl/compile-scraper.ts'
import type { Frontier } from '../../frontier/contract.ts'
import { openFleetFrontier, openStore } from '../../runs/fleet-places.ts'
import { firstInQueue, isSameQueue, openQueueOf } from '../../runs/queue-of-run.ts'
import { argumentProblems, withoutPassword } from '../../runs/run-identity.ts'
import { startRecord, withLimits } from '../../runs/run-record.ts'
import type { FoundUrl } from '../../sources/contract.ts'
import type { NewStoredRun, Store, StoredRun } from '../../store/contract.ts'
import { isFilled, type SeededUrls, seed, seedUrls, setFilled } from '../run/seed.ts'
import { definitionHash } from './definition-hash.ts'

/** How many unfinished runs are checked for one that uses this queue. */
const RUNS_MAX = 100

interface DistributedRequest {
  loaded: LoadedScraper
  /** The scraper as the user named it. */
  source: string
  args: Record<string, unknown>
  config: Config
  /** Used instead of the scraper's own start tasks. */
  urls?: AsyncIterable<FoundUrl>
  /**
   * Routing rules of a producer, stored with the run because workers route new tasks, too. A resumed run uses these instead of
   * its previous ones.
   */
  rulesFile?: string
  /** Resume this run; true: the scraper's newest unfinished run. */
  resume?: string | true
  /** The caller may name hosts in the private network. Default true. */
  isTrusted?: boolean
  bus: EventBus
  stop: AbortSignal
}

interface DistributedStart {
  status: 'queued' | 'resumed'
  runId: string
  region: string | undefined
  enqueued: number
  /** URLs that were already in the queue. */
  seen: number
  refused: number
  problems: readonly string[]
  /** Another unfinished run of the same scraper. */
  unfinished: string | undefined
}

export async function startDistributed(request: DistributedRequest): Promise<DistributedStart> {
  const { config, loaded } = request
  assertTurnedOn(loaded.scraper, config)
  await using store = await openStore(config.values)
  const listed = await store.listRuns({
    scraper: loaded.scraper.name,
    states: ['running', 'stopped', 'failed'],
    limit: RUNS_MAX,
  })
  const unfinishedRuns = listed.filter(({ record }) => !isComplete(record))
  const own = config.values.frontier
  const isNew = request.resume === undefined
  const unfinished = isNew
    ? unfinishedRuns.find(({ record }) => isSameQueue(record.frontier, own))
    : request.resume === true
      ? firstInQueue(unfinishedRuns, own)
      : undefined
  const run = isNew ? newRun(request) : await runToResume(store, request, unfinished)
  const open = () =>
    openFleetFrontier(config.values, run.record.id, {
      store,
      rules: run.options.rules,
      onOutage: (message) => request.bus.emit({ type: 'log', level: 'warn', message }),
      mustExist: !isNew,
    })
  await using frontier = isNew ? await open() : await openQueueOf(run.record, own, open)
  // Until the queue is marked as filled, no worker mistakes an empty queue for a finished run.
  if (isNew || request.urls !== undefined) await setFilled(frontier, false)
  if (isNew) await store.createRun(run)
  else await wake(store, frontier, run)
  try {
    const { added, seen, refused, problems } = await fill(request, run, frontier)
    if (isNew && added === 0)
      throw new ScrapeError('E_USAGE', 'not one URL could be queued', {
        notes: problems,
        fix: 'Mend the list, or the routes of the scraper; --arg and --site may decide what it starts with.',
      })
    await wakeAgain(store, frontier, run)
    await keepDepth(store, frontier, run.record.id)
    return {
      status: isNew ? 'queued' : 'resumed',
      runId: run.record.id,
      region: run.record.region,
      enqueued: added,
      seen,
      refused,
      problems,
      unfinished: isNew ? unfinished?.record.id : undefined,
    }
  } catch (error) {
    await giveUp(store, frontier, run.record, toScrapeError(error, 'E_DEFINITION'))
    throw error
  }
}

/**
 * Workers must not wait for a run whose queue could not be filled: without tasks the run is deleted, otherwise it can be resumed.
 */
async function giveUp(store: Store, frontier: Frontier, record: RunRecord, error: ScrapeError): Promise<void> {
  try {
    if ((await frontier.stats()).seen === 0) return await store.dropRun(record.id)
    const state = error.code === 'E_STOPPED' ? 'stopped' : 'failed'
    const reason = `its queue was not filled to the end: ${error.message}`
    await store.saveRun({ ...record, state, reason, exitCode: exitCodeOfClass(error.class), isComplete: false }, [
      'running',
      'finished',
    ])
  } catch {
    // The database that failed us in the first place is still down.
  }
}

/** The command, without the program's name, that joins the run from any machine. */
export function workerCommand(source: string, { runId, region }: Pick<DistributedStart, 'runId' | 'region'>): string[] {
  const where = region === undefined ? [] : ['--region', region]
  return ['worker', '--scraper', source, '--run-id', runId, '--batch-size', '50', ...where]
}

function newRun({ loaded, args, source, config, rulesFile }: DistributedRequest): NewStoredRun {
  const { values, limits } = config
  const { scraper, file } = loaded
  const { fields } = compileScraper(scraper, limits, file) // report problems now, not in every worker
  checkArgs(scraper, args)
  const nowMs = Date.now()
  const record = startRecord({
    previous: undefined,
    runId: newRunId(nowMs),
    scraper: scraper.name,
    args: args as Json,
    source,
    frontier: withoutPassword(values.frontier),
    fields,
    nowMs,
  })
  return {
    record: withRegion(record, values.region),
    definitionHash: definitionHash(file),
    options: {
      limits,
      allowPrivate: values.allowPrivate,
      allowAddress: values.allowAddress,
      userAgent: userAgent(values),
      ...rulesOf(rulesFile),
    },
  }
}

const withRegion = (record: RunRecord, region: string | undefined): RunRecord =>
  region === undefined ? record : { ...record, region }

function rulesOf(file: string | undefined): { rules?: Json } {
  return file === undefined ? {} : { rules: JSON.parse(readFileSync(file, 'utf8')) as Json }
}

async function runToResume(
  store: Store,
  { resume, loaded, args, config, rulesFile }: DistributedRequest,
  unfinished: StoredRun | undefined,
): Promise<NewStoredRun> {
  const { name } = loaded.scraper
  const found = resume === true ? unfinished : await store.findRun(resume)
  if (found === undefined)
    throw new ScrapeError(
      'E_RUN_NOT_FOUND',
      `no ${resume === true ? 'unfinished run' : `run ${resume}`} of "${name}" in ${store.place}`,
      { fix: 'Start a new one without --resume.' },
    )
  refuseOtherScraper(found, loaded)
  const { record, options } = found
  const problems = argumentProblems(record.args, args)
  if (problems.length > 0)
    throw new ScrapeError('E_OPTION', `run ${record.id} cannot be resumed like this`, {
      notes: problems,
      fix: 'Resume it without these arguments, or start a new run with --fresh.',
    })
  const limits = withLimits(options.limits, config.limits)
  // An explicit flag moves the run to another region; this machine's environment variable applies only to new runs.
  const region = config.origins.region.startsWith('flag ') ? config.values.region : undefined
  return { ...found, record: withRegion(record, region), options: { ...options, limits, ...rulesOf(rulesFile) } }
}

/** A run continues only with the definition it was started with. */
export function refuseOtherScraper(run: StoredRun, { scraper, file }: LoadedScraper): void {
  const { id, scraper: name } = run.record
  if (name !== scraper.name)
    throw new ScrapeError('E_OPTION', `run ${id} is one of "${name}", not of "${scraper.name}"`)
  const own = definitionHash(file)
  if (own === run.definitionHash) return
  throw new ScrapeError(
    'E_DEFINITION_DIFFERS',
    `the definition of "${name}" here is not the one run ${id} was started with`,
    {
      at: file,
      notes: [`here ${own.slice(0, 12)}, the run's ${run.definitionHash.slice(0, 12)}`],
    },
  )
}

/** Reopens a run that ended or was stopped manually. */
async function wake(store: Store, frontier: Frontier, { record, options }: NewStoredRun): Promise<void> {
  await frontier.setMeta('stop', '')
  await frontier.resume()
  await store.wakeRun({ ...record, state: 'running', reason: null, exitCode: null, finishedAt: null }, options)
}

/** A worker that checked the queue just before we began to fill it may have ended the run in the meantime. */
async function wakeAgain(store: Store, frontier: Frontier, run: NewStoredRun): Promise<void> {
  const found = await store.findRun(run.record.id)
  if (found !== undefined && isComplete(found.record) && (await frontier.stats()).remaining > 0)
    await wake(store, frontier, run)
}

/** Stores the queue depth for processes that look at the run later without access to its queue. */
async function keepDepth(store: Store, frontier: Frontier, runId: string): Promise<void> {
  const record = (await store.findRun(runId))?.record
  if (record?.state !== 'running') return
  const { remaining } = await frontier.stats()
  await store.saveRun({ ...record, pages: { ...record.pages, remaining } }, ['running'])
}

async function fill(
  { loaded, urls, bus, config, isTrusted = true, stop }: DistributedRequest,
  run: NewStoredRun,
  frontier: Frontier,
): Promise<SeededUrls> {
  const { scraper, file } = loaded
  const compiled = compileScraper(scraper, run.options.limits, file)
  // For people who query the database: the view url_work_queue shows these values.
  await frontier.setMeta('scraper', scraper.name)
  await frontier.setMeta('retries', String(compiled.limits.retries))
  if (urls !== undefined) {
    await frontier.setMeta('source', 'urls')
    const { allowPrivate, allowAddress } = run.options
    const addresses = {
      allowPrivate: allowPrivate || config.values.allowPrivate,
      allowAddresses: [...allowAddress, ...config.values.allowAddress],
    }
    return await seedUrls(urls, { compiled, frontier, stop, addresses })
  }
  if ((await frontier.getMeta('source')) === 'urls' && !(await isFilled(frontier)))
    throw new ScrapeError('E_USAGE', `the URL list of run ${run.record.id} was not read to its end`, {
      fix: 'Give it once more with --urls-file: what is in the queue already is passed over.',
    })
  const before = (await frontier.stats()).seen
  const args = checkArgs(scraper, run.record.args as Record<string, unknown>)
  await seed({ compiled, args, frontier, bus, isTrusted, stop })
  return { added: (await frontier.stats()).seen - before, seen: before, refused: 0, problems: [] }
}
