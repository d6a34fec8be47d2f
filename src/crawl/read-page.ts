/** Reads one page with its route's handler: what it emitted, what it enqueued, what was wrong with it. It holds no state. */
import { ScrapeError, toScrapeError } from '../core/errors.ts'
import { contentKey, type ItemRow } from '../core/item.ts'
import { parseDurationMs } from '../core/options.ts'
import type { Page } from '../core/page.ts'
import type { Emitted, Enqueue, HandlerContext, Log } from '../core/scraper.ts'
import type { DocumentSelection } from '../core/selection.ts'
import type { Json, NewTask, Task } from '../core/task.ts'
import type { CompiledScraper } from './compiled.ts'
import { type EnqueuePolicy, toTasks } from './enqueue.ts'

type AnyContext = HandlerContext<never, Record<string, object>, string, unknown>

export interface PageReading {
  readonly items: ItemRow[]
  readonly tasks: NewTask[]
  readonly invalid: { problems: string[]; item: string }[]
  /** field → items of this page that have a value for it */
  readonly filled: Record<string, number>
  refused: number
  skipped: string | undefined
}

export interface ReadingRequest {
  compiled: CompiledScraper
  task: Task
  page: Page
  attempt: number
  runId: string
  args: unknown
  policy: EnqueuePolicy
  log: Log
  /** Keeps bytes with the run; returns where. */
  save: (name: string, bytes: Uint8Array | string) => Promise<string>
  /** Tells what this process remembers of an item's key; the commit has the last word. */
  recall: (row: ItemRow) => Emitted
}

class SkipPage extends Error {}

/** Throws `ScrapeError` only: the handler's own bugs come back as E_HANDLER with the place in its file. */
export async function readPage(request: ReadingRequest): Promise<PageReading> {
  const reading: PageReading = {
    items: [],
    tasks: [],
    invalid: [],
    filled: Object.create(null),
    refused: 0,
    skipped: undefined,
  }
  const { compiled, task } = request
  const handler = compiled.scraper.handlers[task.route]
  if (handler === undefined) {
    throw new ScrapeError('E_ROUTE_UNMATCHED', `scraper "${compiled.scraper.name}" has no route "${task.route}"`, {
      url: task.url,
    })
  }
  const context = createContext(request, reading)
  try {
    await handler(context as never)
  } catch (error) {
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

function createContext(request: ReadingRequest, reading: PageReading): AnyContext & Disposable {
  const { compiled, task, page, policy } = request
  const base = page.url
  let document: DocumentSelection | undefined
  let url: URL | undefined
  const $ = () => {
    document ??= compiled.extract.select(page.text, base)
    return document
  }
  const accept = (route: string | undefined, targets: unknown) => {
    const counts = { refused: 0 }
    const addedBefore = reading.tasks.length
    const room = policy.linksMax - addedBefore
    for (const found of toTasks(compiled, policy, { route, targets, base, depth: task.depth + 1, room }, counts)) {
      reading.tasks.push(found)
    }
    reading.refused += counts.refused
    return { added: reading.tasks.length - addedBefore, seen: 0, refused: counts.refused }
  }
  const enqueue = async (routeOrUrl: string | URL, targets?: unknown) =>
    routeOrUrl instanceof URL ? accept(undefined, routeOrUrl) : accept(routeOrUrl, targets)
  enqueue.links = async (route: string, css: string, map?: (anchor: unknown) => unknown) => {
    const found = compiled.extract.anchors($(), css)
    reading.refused += found.bad
    const targets = found.anchors.map((anchor) => ({ url: anchor.href, data: map?.(anchor), isLink: true }))
    const result = accept(route, targets)
    return { ...result, refused: result.refused + found.bad }
  }

  return {
    get url() {
      url ??= new URL(base)
      return url
    },
    get $() {
      return $()
    },
    get html() {
      return page.text
    },
    get body() {
      return page.body
    },
    get params() {
      return compiled.routes.get(task.route)?.match(new URL(task.url).pathname) ?? {}
    },
    get fetchedAt() {
      return new Date(page.fetchedAtMs)
    },
    status: page.status,
    headers: page.headers,
    attempt: request.attempt,
    depth: task.depth,
    runId: request.runId,
    data: (task.data ?? {}) as object,
    args: request.args,
    page: undefined,
    json: () => parseJson(page) as never,
    emit: async (item: unknown) => emitItem(request, reading, item),
    enqueue: enqueue as unknown as Enqueue<Record<string, object>>,
    save: request.save,
    retry(after, why) {
      const retryAfterMs = after === undefined ? undefined : parseDurationMs(after)
      throw new ScrapeError('E_RETRY_ASKED', why ?? 'the handler asked for another try', {
        url: task.url,
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      })
    },
    skip(why) {
      throw new SkipPage(why)
    },
    stop(why) {
      throw new ScrapeError('E_STOPPED', why, { url: task.url })
    },
    log: request.log,
    [Symbol.dispose]() {
      if (document !== undefined) compiled.extract.release(document)
      document = undefined
    },
  }
}

function emitItem(request: ReadingRequest, reading: PageReading, item: unknown): Emitted {
  const checked = request.compiled.checkItem(item)
  if (!checked.ok) {
    reading.invalid.push({ problems: checked.problems, item: safeJson(item) })
    return 'invalid'
  }
  const json = JSON.stringify(checked.value)
  const row = { key: request.compiled.keyOf(checked.value) ?? contentKey(json), json }
  for (const [field, value] of Object.entries(checked.value)) {
    if (value !== undefined && value !== null && value !== '') reading.filled[field] = (reading.filled[field] ?? 0) + 1
  }
  reading.items.push(row)
  return request.recall(row)
}

function parseJson(page: Page): Json {
  try {
    return JSON.parse(page.text)
  } catch (cause) {
    throw new ScrapeError('E_JSON_INVALID', `the body of ${page.url} is not JSON: ${(cause as Error).message}`, {
      url: page.url,
      cause,
    })
  }
}

function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value)?.slice(0, 10_000) ?? String(value)
  } catch {
    return '(not representable as JSON)'
  }
}

/** Adds where in the scraper's file an error came from, read off the stack. */
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
