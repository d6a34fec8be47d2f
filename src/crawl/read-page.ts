/** Reads one page with its route's handler and collects what it emits, enqueues and gets wrong. Holds no state. */
import { ScrapeError, toScrapeError } from '../core/errors.ts'
import type { ItemRow } from '../core/item.ts'
import type { NotFetchedCounts } from '../core/not-fetched.ts'
import type { Page } from '../core/page.ts'
import type { Emitted, Log } from '../core/scraper.ts'
import type { NewTask, Task } from '../core/task.ts'
import type { CompiledScraper } from './compile-scraper.ts'
import type { Sessions } from './contract.ts'
import type { EnqueuePolicy } from './enqueue.ts'
import type { QueuedRoutes } from './queued-routes.ts'

export interface PageReading {
  readonly items: ItemRow[]
  readonly tasks: NewTask[]
  readonly invalid: { problems: string[]; item: string }[]
  /** field → items of this page that have a value for it */
  readonly filled: Record<string, number>
  /** Links and files of this page that are skipped, by reason. */
  readonly notFetched: NotFetchedCounts
  skipped: string | undefined
  /** The handler asked to end the run; items it emitted before are kept. */
  stop?: ScrapeError
}

export interface ReadingRequest {
  compiled: CompiledScraper
  task: Task
  page: Page
  attempt: number
  runId: string
  args: unknown
  policy: EnqueuePolicy
  log: (task: Task) => Log
  /** Stores bytes with the run; returns where. */
  save: (task: Task, name: string, bytes: Uint8Array | string) => Promise<string>
  sessions: Pick<Sessions, 'keep'>
  /** What pages of this process have queued recently. If omitted, nothing is known about other pages. */
  queuedRoutes?: QueuedRoutes | undefined
  /** What this process remembers about an item's key; the commit has the last word. */
  recall: (row: ItemRow) => Emitted
}

let loaded: typeof import('./page-context.ts') | undefined

/** What a handler is given, with `extract/`: 26 modules, which would delay the first request by 19 ms. */
export async function loadReader(): Promise<void> {
  loaded = await import('./page-context.ts')
}

export const isReaderLoaded = (): boolean => loaded !== undefined

/** Throws `ScrapeError` only: the handler's own bugs are rethrown as E_HANDLER with the location in its file. */
export async function readPage(request: ReadingRequest): Promise<PageReading> {
  const reading: PageReading = {
    items: [],
    tasks: [],
    invalid: [],
    filled: Object.create(null),
    notFetched: {},
    skipped: undefined,
  }
  const { compiled, task } = request
  const handler = compiled.scraper.handlers[task.route]
  if (handler === undefined) {
    throw new ScrapeError('E_ROUTE_UNMATCHED', `scraper "${compiled.scraper.name}" has no route "${task.route}"`, {
      url: task.url,
    })
  }
  if (loaded === undefined) await loadReader()
  const { PageContext, SkipPage } = loaded!
  const context = new PageContext(request, reading)
  try {
    await handler(context as never)
    await context.settle()
  } catch (error) {
    if (error instanceof ScrapeError && error.code === 'E_STOPPED') {
      reading.stop = error
      return reading
    }
    if (error instanceof SkipPage) {
      reading.skipped = error.message
      return reading
    }
    throw withPlace(toScrapeError(error, 'E_HANDLER', { url: task.url }), error, request)
  } finally {
    context[Symbol.dispose]()
  }
  return reading
}

/** Adds the location in the scraper's file, taken from the stack trace. */
function withPlace(error: ScrapeError, thrown: unknown, { compiled, task }: ReadingRequest): ScrapeError {
  if (error.details.at !== undefined || compiled.file === undefined) return error
  const stack = thrown instanceof Error ? (thrown.stack ?? '') : ''
  const index = stack.indexOf(compiled.file)
  const line = index === -1 ? undefined : /^:(\d+)/.exec(stack.slice(index + compiled.file.length))?.[1]
  const where = line === undefined ? compiled.file : `${compiled.file}:${line}`
  return new ScrapeError(error.code, error.message, {
    ...error.details,
    url: error.details.url ?? task.url,
    at: `${where} (handler "${task.route}")`,
    cause: error.details.cause ?? thrown,
  })
}
