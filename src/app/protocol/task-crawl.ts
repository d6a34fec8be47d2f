/** One task of the protocol as a small crawl of its scraper, in memory, through the chain its instance shares. */
import { join } from 'node:path'
import { ERRORS } from '../../core/error-table.ts'
import { type ErrorRecord, ScrapeError, toErrorRecord, toScrapeError } from '../../core/errors.ts'
import { createEventBus } from '../../core/events.ts'
import { contentKey, type ItemRow } from '../../core/item.ts'
import type { Emitted } from '../../core/scraper.ts'
import type { CompiledScraper } from '../../crawl/compiled.ts'
import type { CrawlEnd } from '../../crawl/contract.ts'
import { crawl } from '../../crawl/crawl.ts'
import { enqueuePolicy } from '../../crawl/enqueue.ts'
import type { Settled } from '../../crawl/settle.ts'
import type { BrowserPool, Fetcher } from '../../fetch/contract.ts'
import { pageOf } from '../../fetch/status.ts'
import { openMemoryFrontier } from '../../frontier/memory.ts'
import { writeBatches } from '../../pipeline/batch.ts'
import { Channel } from '../../pipeline/channel.ts'
import type { ResultMetadata, ResultStatus, TaskMessage } from '../../protocol/messages.ts'
import { RunFolder } from '../run/run-folder.ts'
import { seed } from '../run/seed.ts'
import { openSessions } from '../run/sessions.ts'
import type { Chains } from './chains.ts'
import { chainWish, taskArgs } from './task-args.ts'
import { taskFrontier } from './task-frontier.ts'

export interface TaskCrawlParts {
  compiled: CompiledScraper
  chains: Chains
  browsers: BrowserPool | undefined
  concurrency: number
  workerId: string
  /** Base of the folders for what handlers save. */
  out: string
}

export interface TaskOutcome {
  status: Extract<ResultStatus, 'success' | 'failed' | 'partial' | 'timeout'>
  items: { key: string; item: object }[]
  metadata: Omit<ResultMetadata, 'memory_usage_mb' | 'worker_id'>
  error: ErrorRecord | null
  /** A failure that may pass by itself. */
  isWorthAnotherTry: boolean
}

const CHANNEL_CAPACITY = 512
/** Of the tasks inside; nobody else could take them over. */
const LEASE_MS = 3_600_000
const ENOUGH = Symbol('as many as were wanted')
const LATE = Symbol('the time is over')

/** Never throws: a task that cannot even begin has failed. Ends early, with what there is, when `stop` is aborted. */
export async function crawlTask(task: TaskMessage, parts: TaskCrawlParts, stop: AbortSignal): Promise<TaskOutcome> {
  const watch = createWatch()
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
  watch: Watch,
  stop: AbortSignal,
): Promise<TaskOutcome> {
  const { params } = task
  const { args, ignored } = taskArgs(compiled.scraper, params)
  watch.metadata.ignored_params = ignored
  const { chain, release } = await chains.take(chainWish(params))
  watch.metadata.proxy_used = chain.proxy
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
  try {
    await seed({ compiled, args, frontier, bus, stop: ended })
    const startHosts = JSON.parse((await frontier.getMeta('startHosts')) ?? '[]') as string[]
    const end = await crawl(
      {
        compiled,
        frontier,
        bus,
        fetcher: watched(chain.fetcher, watch),
        rateLimit,
        ...(browsers === undefined ? {} : { browsers }),
        sessions: openSessions(frontier),
        channel: new Channel<Settled>(CHANNEL_CAPACITY),
        writeBatches,
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
        drainMs: 0, // what is in flight when the time is over, or enough was found, is not waited for
        backlogMax: Number.POSITIVE_INFINITY,
        keepSnapshot: () => undefined,
        keepDownload: async () => {
          throw new ScrapeError('E_BROWSER_DOWNLOAD', 'tasks of the protocol bring no files home')
        },
        failedPage: pageOf,
        save: new RunFolder(join(out, compiled.scraper.name, task.task_id)).save, // made when something is saved
        recall: createRecall(),
        now: Date.now,
        random: Math.random,
      },
      ended,
    )
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
  watch: Watch
}

function outcomeOf({ end, stopped, items, failures, watch }: Ending): TaskOutcome {
  const { metadata } = watch
  metadata.pages_failed = failures.length
  metadata.average_response_time = watch.answers === 0 ? 0 : round(watch.answerMs / watch.answers / 1000)
  const error = end.how === 'halted' ? toErrorRecord(end.error) : (failures[0] ?? null)
  const common = { items, metadata, error, isWorthAnotherTry: false }
  if (stopped === LATE) return { ...common, status: 'timeout' }
  if (stopped === ENOUGH) return { ...common, status: 'success', error: null }
  if (error === null) return { ...common, status: 'success' }
  if (items.length > 0) return { ...common, status: 'partial' }
  const causes = end.how === 'halted' ? [toErrorRecord(end.error)] : failures
  const isWorthAnotherTry = causes.some(({ code }) => ['retry', 'rotate', 'later'].includes(ERRORS[code].verdict))
  return { ...common, status: 'failed', isWorthAnotherTry }
}

/** What is counted on the way. */
interface Watch {
  metadata: TaskOutcome['metadata']
  answers: number
  answerMs: number
}

function createWatch(): Watch {
  return { metadata: noMetadata(), answers: 0, answerMs: 0 }
}

export function noMetadata(): TaskOutcome['metadata'] {
  return {
    proxy_used: null,
    requests_made: 0,
    rate_limited: false,
    captcha_encountered: false,
    pages_scraped: 0,
    pages_failed: 0,
    blocked_requests: 0,
    average_response_time: 0,
    ignored_params: [],
    files_left_out: 0,
  }
}

const BLOCKS = new Set(['E_BLOCKED', 'E_CAPTCHA', 'E_LOGIN_WALL', 'E_FORBIDDEN'])

function watched(fetcher: Fetcher, watch: Watch): Fetcher {
  const { metadata } = watch
  return {
    async fetch(request, signal) {
      metadata.requests_made++
      const startedMs = performance.now()
      try {
        return await fetcher.fetch(request, signal)
      } catch (error) {
        const { code } = toScrapeError(error, 'E_CONNECTION')
        if (code === 'E_RATE_LIMITED') metadata.rate_limited = true
        if (code === 'E_CAPTCHA') metadata.captcha_encountered = true
        if (BLOCKS.has(code)) metadata.blocked_requests++
        throw error
      } finally {
        watch.answers++
        watch.answerMs += performance.now() - startedMs
      }
    },
    [Symbol.asyncDispose]: async () => {},
  }
}

function createRecall(): (row: ItemRow) => Emitted {
  const known = new Map<string, string>()
  return ({ key, json, content = contentKey(json) }) => {
    const before = known.get(key)
    if (before === undefined) known.set(key, content)
    return before === undefined ? 'new' : before === content ? 'same' : 'changed'
  }
}

const round = (seconds: number) => Math.round(seconds * 1000) / 1000
