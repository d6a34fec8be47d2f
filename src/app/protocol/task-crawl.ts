/** Runs one task of the protocol as a small in-memory crawl, through the fetch chain its instance shares. */
import { join } from 'node:path'
import { ERRORS } from '../../core/error-table.ts'
import { type ErrorRecord, ScrapeError, toErrorRecord, toScrapeError } from '../../core/errors.ts'
import { createEventBus } from '../../core/events.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { CrawlEnd } from '../../crawl/contract.ts'
import { crawl } from '../../crawl/crawl.ts'
import { enqueuePolicy } from '../../crawl/enqueue.ts'
import type { BrowserPool } from '../../fetch/browser/pool.ts'
import { openMemoryFrontier } from '../../frontier/memory/engine.ts'
import type { ResultStatus, TaskMessage } from '../../protocol/messages.ts'
import { RunFolder } from '../../runs/run-folder.ts'
import { seed } from '../run/seed.ts'
import { openSessions } from '../run/sessions.ts'
import type { Chains } from './chains.ts'
import { chainWish, taskArgs } from './task-args.ts'
import { taskFrontier } from './task-frontier.ts'
import { PLAIN_HTTP, type TaskMetadata, TaskWatch } from './task-watch.ts'

export interface TaskCrawlParts {
  compiled: CompiledScraper
  chains: Chains
  browsers: BrowserPool | undefined
  concurrency: number
  workerId: string
  /** Base folder for files that handlers save. */
  out: string
}

export interface TaskOutcome {
  status: Extract<ResultStatus, 'success' | 'failed' | 'partial' | 'timeout'>
  items: { key: string; item: object }[]
  metadata: TaskMetadata
  error: ErrorRecord | null
  /** The failure may be temporary. */
  isWorthAnotherTry: boolean
  /** Egress that the next try should avoid. */
  turnedAway: readonly string[]
}

/** Many tasks run concurrently: with a run's 4096 each, an instance took 7 MB more. */
const RECENT_ITEMS_MAX = 512
/** Lease on the tasks inside; no other worker could take them over. */
const LEASE_MS = 3_600_000
/** Maximum length of an error message, including its notes. */
const MESSAGE_LENGTH_MAX = 1_000
const ENOUGH = Symbol('as many as were wanted')
const LATE = Symbol('the time is over')

/** Never throws: a task that cannot even begin has failed. Ends early, with partial results, when `stop` is aborted. */
export async function crawlTask(task: TaskMessage, parts: TaskCrawlParts, stop: AbortSignal): Promise<TaskOutcome> {
  const watch = new TaskWatch(task.turned_away)
  try {
    return await crawlInside(task, parts, watch, stop)
  } catch (error) {
    const problem = toScrapeError(error, 'E_HANDLER')
    return outcomeOf({ end: { how: 'halted', error: problem }, stopped: undefined, items: [], failures: [], watch })
  }
}

async function crawlInside(
  task: TaskMessage,
  { compiled, chains, browsers, concurrency, workerId, out }: TaskCrawlParts,
  watch: TaskWatch,
  stop: AbortSignal,
): Promise<TaskOutcome> {
  const { params } = task
  const { args, ignored } = taskArgs(compiled.scraper, params)
  watch.metadata.ignored_params = ignored
  const { chain, release } = await chains.take(chainWish(params))
  using rateLimit = chain.rateLimit()
  using _ = { [Symbol.dispose]: release }
  const over = new AbortController()
  const timer = setTimeout(() => over.abort(LATE), task.timeout * 1000)
  const wanted = params.results_wanted ?? Number.POSITIVE_INFINITY
  await using frontier = taskFrontier(openMemoryFrontier(), {
    onItems: (items) => items >= wanted && over.abort(ENOUGH),
    onFiles: (files) => {
      watch.metadata.files_left_out += files
    },
  })
  const ended = AbortSignal.any([stop, over.signal])
  const bus = createEventBus()
  bus.on(watch.onEvent)
  try {
    await seed({ compiled, args, frontier, bus, stop: ended })
    const startHosts = JSON.parse((await frontier.getMeta('startHosts')) ?? '[]') as string[]
    const end = await crawl(
      {
        compiled: { ...compiled, limits: { ...compiled.limits, wait: Number.POSITIVE_INFINITY } }, // ended by the task's timeout
        frontier,
        bus,
        fetcher: watch.watched(chain.fetcher),
        rateLimit,
        browsers,
        wasTurnedAway: task.turned_away?.includes(PLAIN_HTTP) === true,
        sessions: openSessions(frontier),
        runId: task.task_id,
        workerId,
        args,
        policy: enqueuePolicy(compiled.limits, startHosts),
        concurrency,
        claimMax: () => 2 * concurrency,
        pagesMax: Math.min(
          params.page_limit ?? Number.POSITIVE_INFINITY,
          compiled.limits.pages ?? Number.POSITIVE_INFINITY,
        ),
        leaseMs: LEASE_MS,
        drainMs: 0, // requests in flight are not waited for when the time is up or enough was found
        backlogMax: Number.POSITIVE_INFINITY,
        keepSnapshot: () => undefined,
        keepDownload: async () => {
          throw new ScrapeError('E_BROWSER_DOWNLOAD', 'tasks of the protocol bring no files home')
        },
        save: new RunFolder(join(out, compiled.scraper.name, task.task_id)).save, // created when something is saved
        recentItemsMax: RECENT_ITEMS_MAX,
        now: Date.now,
        random: Math.random,
      },
      ended,
    )
    // A request still waiting for a proxy has not failed, but it explains why there are no results.
    if (chain.areProxiesDown()) watch.lastError ??= toErrorRecord(new ScrapeError('E_PROXIES_DOWN', 'no proxy is up'))
    const { completed } = await frontier.stats()
    watch.metadata.pages_scraped = completed
    const rows = await frontier.items.read({
      afterSeq: 0,
      max: Number.isFinite(wanted) ? wanted : Number.MAX_SAFE_INTEGER,
    })
    const failures = (await frontier.dead.list({})).map(({ error }) => error)
    const items = rows.map(({ key, json }) => ({ key, item: JSON.parse(json) as object }))
    return outcomeOf({ end, stopped: over.signal.reason, items, failures, watch })
  } finally {
    clearTimeout(timer)
  }
}

interface Ending {
  end: CrawlEnd
  stopped: unknown
  items: TaskOutcome['items']
  failures: ErrorRecord[]
  watch: TaskWatch
}

function outcomeOf({ end, stopped, items, failures, watch }: Ending): TaskOutcome {
  const { metadata } = watch
  metadata.pages_failed = failures.length
  metadata.average_response_time = watch.averageSeconds()
  if (metadata.items_invalid > items.length) failures.push(mostlyInvalid(metadata.items_invalid, items.length))
  if (end.how === 'halted') failures.unshift(wholeRecord(end.error))
  const isLate = stopped === LATE
  if (isLate && failures.length === 0 && watch.lastError !== undefined) failures.push(watch.lastError)
  const outcome = { items, metadata, error: failures[0] ?? null, turnedAway: [...watch.turnedAway] }
  const isWorthAnotherTry = items.length === 0 && failures.some(mayPass)
  if (isLate) return { ...outcome, status: 'timeout', isWorthAnotherTry }
  if (stopped === ENOUGH) return { ...outcome, status: 'success', error: null, isWorthAnotherTry: false }
  if (outcome.error !== null) return { ...outcome, status: items.length > 0 ? 'partial' : 'failed', isWorthAnotherTry }
  if (items.length === 0) watch.warn(`nothing was found on the ${metadata.pages_scraped} pages that were read`)
  return { ...outcome, status: 'success', isWorthAnotherTry: false }
}

/** Includes the notes, since readers of the result have nothing else to diagnose the failure with. */
function wholeRecord(error: ScrapeError): ErrorRecord {
  const { notes = [] } = error.details
  if (notes.length === 0) return toErrorRecord(error)
  return { ...toErrorRecord(error), message: `${error.message}: ${notes.join('; ')}`.slice(0, MESSAGE_LENGTH_MAX) }
}

const mayPass = ({ code }: ErrorRecord) => ['retry', 'rotate', 'later'].includes(ERRORS[code].verdict)

/** A redesigned site is more likely than that many odd entries. */
function mostlyInvalid(invalid: number, valid: number): ErrorRecord {
  const message = `${invalid} of ${invalid + valid} items break the schema of the scraper`
  return toErrorRecord(new ScrapeError('E_ITEM_INVALID', message))
}
