/** Sends one page through a scraper's own route and handler, and returns all results. Nothing is queued or written. */
import { ScrapeError, toScrapeError } from '../../core/errors.ts'
import type { ItemRow } from '../../core/item.ts'
import type { Page } from '../../core/page.ts'
import type { Emitted, Enqueued, FileOptions } from '../../core/scraper.ts'
import type { Json, NewTask, Task } from '../../core/task.ts'
import { DEFAULT_LANE } from '../../core/task.ts'
import { hostOf, taskId } from '../../core/url.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { Sessions } from '../../crawl/contract.ts'
import { type EnqueuePolicy, enqueuePolicy, newCounts, toTasks } from '../../crawl/enqueue.ts'
import { downloadTask } from '../../crawl/file-tasks.ts'
import { readPage } from '../../crawl/read-page.ts'
import { requestOf } from '../../crawl/request.ts'
import type { OnePage, Visit } from './one-page.ts'
import { createEnqueue, type Watching } from './try-enqueue.ts'

interface TryRequest {
  compiled: CompiledScraper
  args: Json
  /** Normalised. */
  url: string
  /** Undefined: the route whose `match` accepts the URL. */
  route: string | undefined
  data: unknown
  /** The session the page belongs to; undefined: none. */
  session?: string | undefined
  chain: OnePage
  signal: AbortSignal
}

interface TriedItem {
  key: string
  item: Record<string, unknown>
  /** Its key was already emitted on this page: the first one stays. */
  isRepeated: boolean
}

/** A file that would be kept: bytes the handler saved, a file it requested, or a browser download. */
interface TriedFile {
  /** Null: the server that provides it will name it. */
  name: string | null
  /** For a file that is already there. */
  bytes?: number
  /** For a file that a file worker would fetch. */
  url?: string
}

interface RefusedLink {
  url: string
  route: string | undefined
  /** In a few words; the same for all links refused for the same reason. */
  why: string
}

export interface TriedPage {
  route: string
  params: Record<string, string>
  data: Json
  session: string | null
  visit: Visit
  items: TriedItem[]
  invalid: { problems: string[]; item: unknown }[]
  links: NewTask[]
  /** Links that a more specific `match` took from the route they were enqueued for. */
  rerouted: { url: string; wanted: string; route: string }[]
  refused: RefusedLink[]
  files: TriedFile[]
  log: { level: string; message: string; extra?: object }[]
  skipped: string | undefined
  readMs: number
  /** An error of the fetch or of the handler. */
  error: ScrapeError | undefined
}

/** A page inspected on its own may belong to a user's session, but no login has taken place. */
const NOBODY: Sessions = { get: async () => undefined, keep: async () => {}, headers: () => ({}) }

/** Throws if the request is wrong (no such route, data that breaks its schema); errors of the page are in the result. */
export async function tryPage(request: TryRequest): Promise<TriedPage> {
  const { compiled, chain, signal } = request
  const task = taskFor(request)
  const route = compiled.routes.get(task.route)!
  const isInBrowser = route.definition.fetch === 'browser'
  const visit = await chain.visit(await requestOf({ compiled, isInBrowser }, { task, attempt: 1 }, NOBODY), signal)
  const tried: TriedPage = {
    route: task.route,
    params: route.match(new URL(task.url).pathname) ?? {},
    data: task.data,
    session: task.session ?? null,
    visit,
    items: [],
    invalid: [],
    links: [],
    rerouted: [],
    refused: [],
    files: [],
    log: [],
    skipped: undefined,
    readMs: 0,
    error: visit.error,
  }
  try {
    if (visit.error === undefined) await read(request, task, visit.page!, tried)
    return tried
  } finally {
    if (visit.page?.live !== undefined) visit.page.release()
  }
}

function taskFor({ compiled, url, route, data, session }: TryRequest): Task {
  const { routes } = compiled
  if (route !== undefined && !routes.has(route))
    throw new ScrapeError('E_USAGE', `"${compiled.scraper.name}" has no route "${route}"`, {
      fix: `Choose one of: ${[...routes.keys()].join(', ')}`,
    })
  const policy: EnqueuePolicy = { hosts: 'any', depthMax: 0, linksMax: 1 }
  const target = { url, data }
  try {
    const open = { base: undefined, depth: 0, room: 1, session }
    const [task] = toTasks(
      compiled,
      policy,
      { ...open, route: route ?? onlyRoute(compiled), isRouteFixed: true, targets: target },
      newCounts(),
    )
    return {
      id: taskId(task!),
      url: task!.url,
      route: task!.route,
      data: task!.data ?? null,
      depth: 0,
      priority: 0,
      lane: DEFAULT_LANE,
      session,
    }
  } catch (error) {
    const { code, message, details } = toScrapeError(error, 'E_USAGE')
    const fix =
      code === 'E_ROUTE_UNMATCHED' && route !== undefined
        ? 'A route reads only what its pattern matches: correct the URL, or the pattern.'
        : code === 'E_ROUTE_UNMATCHED'
          ? `Name the route that should read it: --route ${[...routes.keys()].join('|')}`
          : code === 'E_ROUTE_DATA'
            ? 'Give what the page before would have handed over: --data \'{"name": "value"}\''
            : undefined
    throw new ScrapeError('E_USAGE', message, { ...details, fix: fix ?? details.fix, cause: error })
  }
}

/** With a single route there is no choice, with or without a pattern. */
function onlyRoute({ routes }: CompiledScraper): string | undefined {
  const [only, ...others] = routes.values()
  return others.length === 0 && only?.definition.match === undefined ? only?.name : undefined
}

async function read(request: TryRequest, task: Task, page: Page, tried: TriedPage): Promise<void> {
  const { compiled, args, chain, signal } = request
  const startedMs = performance.now()
  const policy = enqueuePolicy(compiled.limits, [hostOf(task.url)])
  const watched = watch(compiled, policy, { task, page, tried, fetcher: chain.fetcher, signal })
  const log = (level: string) => (message: string, extra?: object) => void tried.log.push({ level, message, extra })
  try {
    const reading = await readPage({
      compiled: watched,
      task,
      page,
      attempt: 1,
      runId: 'try',
      args,
      policy,
      log: () => ({ debug: log('debug'), info: log('info'), warn: log('warn') }),
      save: async (_task, name, bytes) => {
        tried.files.push({ name, bytes: Buffer.byteLength(bytes) })
        return `files/${name}`
      },
      recall: (row) => recall(tried, row),
      sessions: NOBODY,
    })
    tried.skipped = reading.skipped
    for (const download of (await page.live?.downloads()) ?? [])
      tried.files.push(
        download.kind === 'kept'
          ? { name: download.name, bytes: download.bytes }
          : { name: download.name, url: download.url },
      )
  } catch (error) {
    tried.error = toScrapeError(error, 'E_HANDLER', { url: task.url })
  } finally {
    tried.readMs = performance.now() - startedMs
  }
}

function recall(tried: TriedPage, { key, json }: ItemRow): Emitted {
  const isRepeated = tried.items.some((one) => one.key === key)
  tried.items.push({ key, item: JSON.parse(json), isRepeated })
  return isRepeated ? 'same' : 'new'
}

/** Wraps the scraper to record each item and link its handler produces, so that a later error does not lose them. */
function watch(compiled: CompiledScraper, policy: EnqueuePolicy, watching: Watching): CompiledScraper {
  const { tried, task } = watching
  const handler = compiled.scraper.handlers[task.route]!
  const listening = (context: object) => {
    const { enqueue, file } = context as { enqueue: object; file: FileCall }
    const own = createEnqueue(compiled, policy, context, watching)
    const heard: Record<string | symbol, unknown> = {
      enqueue: Object.assign(own, { ...enqueue, links: own.links }),
      file: listenToFiles(file, watching),
    }
    return handler(
      new Proxy(context, {
        get: (target, name) => (Object.hasOwn(heard, name) ? heard[name] : Reflect.get(target, name)),
      }) as never,
    )
  }
  return {
    ...compiled,
    scraper: { ...compiled.scraper, handlers: { ...compiled.scraper.handlers, [task.route]: listening } },
    checkItem(item) {
      const checked = compiled.checkItem(item)
      if (!checked.ok) tried.invalid.push({ problems: checked.problems, item })
      return checked
    },
  }
}

type FileCall = (url: string | URL, options?: FileOptions) => Promise<Enqueued>

function listenToFiles(file: FileCall, { task, page, tried }: Watching): FileCall {
  return async (url, options) => {
    const answer = await file(url, options)
    try {
      const ordered = downloadTask({ task, base: page.url }, url, options).url
      if (answer.added > 0) tried.files.push({ name: options?.name ?? null, url: ordered })
      else tried.refused.push({ url: ordered, route: undefined, why: 'a file more than linksMax allows on one page' })
    } catch (error) {
      const why = `as a file: ${toScrapeError(error, 'E_URL_INVALID').kind.what}`
      tried.refused.push({ url: String(url), route: undefined, why })
    }
    return answer
  }
}
