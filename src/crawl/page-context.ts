/**
 * What a handler gets. A class with getters on its prototype, because handlers destructure it in their parameter list: only the
 * parts they name are created. (An object literal with twenty closures and getters cost 8 µs and 2.5 KB per page.)
 */

import { ScrapeError } from '../core/errors.ts'
import type { ItemRow } from '../core/item.ts'
import { countNotFetched, type NotFetchedCounts, type NotFetchedReason } from '../core/not-fetched.ts'
import { parseDurationMs } from '../core/options.ts'
import type { LivePage, Page } from '../core/page.ts'
import type { Emitted, Enqueued, FileOptions, Log } from '../core/scraper.ts'
import type { Anchor, DocumentSelection } from '../core/selection.ts'
import { anchors, release, select } from '../extract/html.ts'
import { DroppedLinks } from './dropped-links.ts'
import { newCounts, reasonOf, toTasks } from './enqueue.ts'
import { downloadTask } from './file-tasks.ts'
import { conflictWords, identityOf, isNews, type RouteConflict } from './queued-routes.ts'
import type { PageReading, ReadingRequest } from './read-page.ts'
import { UnawaitedCalls } from './unawaited-calls.ts'

const NONE_ENQUEUED: Enqueued = { added: 0, seen: 0, refused: 0, rerouted: 0, conflicts: 0 }

/** Thrown by `skip`. */
export class SkipPage extends Error {}

export class PageContext implements Disposable {
  readonly #request: ReadingRequest
  readonly #reading: PageReading
  readonly #calls = new UnawaitedCalls()
  #document: DocumentSelection | undefined
  readonly #rendered: DocumentSelection[] = []
  #url: URL | undefined
  /** What this page has queued: task → route. */
  #queued: Map<string, string> | undefined
  #dropped: DroppedLinks | undefined

  constructor(request: ReadingRequest, reading: PageReading) {
    this.#request = request
    this.#reading = reading
  }

  get url(): URL {
    this.#url ??= new URL(this.#request.page.url)
    return this.#url
  }

  get $(): DocumentSelection {
    const { page } = this.#request
    this.#document ??= select(page.text, page.url)
    return this.#document
  }

  get html(): string {
    return this.#request.page.text
  }

  get body(): Buffer {
    return this.#request.page.body
  }

  get status(): number {
    return this.#request.page.status
  }

  get headers(): Page['headers'] {
    return this.#request.page.headers
  }

  get fetchedAt(): Date {
    return new Date(this.#request.page.fetchedAtMs)
  }

  get params(): Record<string, string> {
    const { compiled, task } = this.#request
    return compiled.routes.get(task.route)?.match(new URL(task.url).pathname) ?? {}
  }

  get data(): unknown {
    return this.#request.task.data ?? {}
  }

  get depth(): number {
    return this.#request.task.depth
  }

  get attempt(): number {
    return this.#request.attempt
  }

  get runId(): string {
    return this.#request.runId
  }

  get args(): unknown {
    return this.#request.args
  }

  get log(): Log {
    return this.#request.log(this.#request.task)
  }

  get session(): string | undefined {
    return this.#request.task.session
  }

  /** Only browser routes have one. */
  get page(): LivePage['driver'] | undefined {
    return this.#request.page.live?.driver
  }

  /** A recorded page always shows what it showed when it had loaded. */
  get render() {
    const { live } = this.#request.page
    return async (): Promise<DocumentSelection> => {
      if (live === undefined) return this.$
      const rendered = select(await live.content(), live.driver.url())
      this.#rendered.push(rendered)
      return rendered
    }
  }

  get keepLogin() {
    const { page, sessions } = this.#request
    const keep = async (): Promise<void> => {
      if (this.session === undefined)
        throw new ScrapeError('E_HANDLER', 'keepLogin() needs a task with a session', {
          fix: "Name its user when it is enqueued: enqueue('login', { url, session: 'alice' }).",
        })
      if (page.live !== undefined) await sessions.keep(this.session, await page.live.state())
    }
    return () => this.#calls.watch(keep())
  }

  /** A file that cannot be downloaded (`mailto:`, too many) is refused, but does not fail the page. */
  get file() {
    const order = (url: string | URL, options?: FileOptions): Enqueued => {
      const { task, page, policy } = this.#request
      const refuse = (reason: NotFetchedReason, why: string): Enqueued => {
        if (this.#reading.notFetched[reason] === undefined) this.log.warn(`a file was not queued: ${why} (${task.url})`)
        this.countNotFetched(reason)
        return { ...NONE_ENQUEUED, refused: 1 }
      }
      try {
        const ordered = downloadTask({ task, base: page.url }, url, options)
        const identity = identityOf(ordered)
        this.#queued ??= new Map()
        if (this.#queued.has(identity)) return { ...NONE_ENQUEUED, seen: 1 }
        if (this.#reading.tasks.length >= policy.linksMax) return refuse('links', `linksMax is ${policy.linksMax}`)
        this.#queued.set(identity, ordered.route)
        this.#reading.tasks.push(ordered)
        return { ...NONE_ENQUEUED, added: 1 }
      } catch (error) {
        if (!(error instanceof ScrapeError && error.class === 'url')) throw error
        return refuse(reasonOf(error), error.message)
      }
    }
    return (url: string | URL, options?: FileOptions) => this.#calls.do(() => order(url, options))
  }

  get json() {
    return () => parseJson(this.#request.page)
  }

  get emit() {
    return (item: unknown): Promise<Emitted> => this.#calls.do(() => emitItem(this.#request, this.#reading, item))
  }

  get save() {
    const { save, task } = this.#request
    return (name: string, bytes: Uint8Array | string) => this.#calls.watch(save(task, name, bytes))
  }

  get enqueue() {
    const enqueue = (routeOrUrl: string | URL, targets?: unknown): Promise<Enqueued> =>
      this.#calls.do(() =>
        routeOrUrl instanceof URL ? this.#accept(undefined, routeOrUrl) : this.#accept(routeOrUrl, targets),
      )
    const links = (route: string, css: string, map?: (anchor: Anchor) => unknown): Enqueued => {
      const found = anchors(this.$, css)
      this.countNotFetched('url', found.bad)
      this.countNotFetched('scheme', found.otherSchemes)
      const result = this.#accept(
        route,
        found.anchors.map((anchor) => ({ url: anchor.href, data: map?.(anchor), isLink: true })),
      )
      return { ...result, refused: result.refused + found.bad }
    }
    enqueue.links = (...wanted: Parameters<typeof links>): Promise<Enqueued> => this.#calls.do(() => links(...wanted))
    return enqueue
  }

  get retry() {
    return (after?: string | number, why = 'the handler requested a retry'): never => {
      const retryAfterMs = after === undefined ? undefined : parseDurationMs(after)
      if (retryAfterMs !== undefined && !(retryAfterMs >= 0)) {
        throw new ScrapeError('E_HANDLER', `retry() takes a duration such as "30s", not ${JSON.stringify(after)}`)
      }
      throw new ScrapeError('E_RETRY_ASKED', why, {
        url: this.#request.task.url,
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      })
    }
  }

  get skip() {
    return (why: string): never => {
      throw new SkipPage(why)
    }
  }

  get stop() {
    return (why: string): never => {
      throw new ScrapeError('E_STOPPED', why, { url: this.#request.task.url })
    }
  }

  countNotFetched(reason: NotFetchedReason, by = 1): void {
    countNotFetched(this.#reading.notFetched, reason, by)
  }

  #accept(route: string | undefined, targets: unknown): Enqueued {
    const { compiled, policy, page, task, queuedRoutes } = this.#request
    const { tasks } = this.#reading
    const counts = newCounts()
    const addedBefore = tasks.length
    this.#queued ??= new Map()
    this.#dropped ??= new DroppedLinks()
    const onConflict = (conflict: RouteConflict) => {
      this.countNotFetched('conflict')
      if (isNews(compiled, conflict))
        this.log.warn(`${conflict.url} ${conflictWords(conflict)}: route ${conflict.wanted} does not get it`)
    }
    const wanted = {
      route,
      targets,
      base: page.url,
      depth: task.depth + 1,
      session: task.session,
      room: policy.linksMax - addedBefore,
      queued: this.#queued,
      dropped: this.#dropped,
      onConflict,
    }
    let elsewhere = 0
    for (const found of toTasks(compiled, policy, wanted, counts)) {
      const owner = queuedRoutes?.get(identityOf(found))
      // A page that links to itself is already being read by its own route, which is fine.
      if (owner !== undefined && owner !== found.route && found.url !== task.url) {
        elsewhere++
        onConflict({ url: found.url, wanted: found.route, owner, why: 'queued' })
      }
      tasks.push(found) // even if it conflicts with another page: only the frontier knows whether that page was committed
    }
    const { links } = counts.notFetched
    reportNotFetched(this, counts.notFetched)
    if (links !== undefined)
      this.log.warn(`${links} links of a page were dropped: linksMax is ${policy.linksMax} (${task.url})`)
    return {
      added: tasks.length - addedBefore - elsewhere,
      seen: counts.repeated,
      refused: counts.refused,
      rerouted: counts.rerouted,
      conflicts: counts.conflicts + elsewhere,
    }
  }

  /** Waits for calls the handler did not await; rejects with the failure of one of them. */
  settle(): Promise<void> {
    return this.#calls.settle()
  }

  [Symbol.dispose](): void {
    for (const rendered of this.#rendered.splice(0)) release(rendered)
    if (this.#document !== undefined) release(this.#document)
    this.#document = undefined
  }
}

/** For links that a built-in handler skips by its own rules. Nothing is counted for a page that is only tried out. */
export function reportNotFetched(context: object, counts: NotFetchedCounts): void {
  if (!(context instanceof PageContext)) return
  for (const [reason, by] of Object.entries(counts) as [NotFetchedReason, number][]) context.countNotFetched(reason, by)
}

function emitItem({ compiled, recall }: ReadingRequest, reading: PageReading, emitted: unknown): Emitted {
  const checked = compiled.checkItem(emitted)
  if (!checked.ok) return refuse(reading, emitted, checked.problems)
  let row: ItemRow
  try {
    row = compiled.toRow(checked.value)
  } catch (error) {
    return refuse(reading, emitted, [(error as Error).message])
  }
  const item = checked.value as Record<string, unknown>
  for (const field in item) {
    const value = item[field]
    if (value === undefined || value === null || value === '' || !compiled.isCounted(field)) continue
    reading.filled[field] = (reading.filled[field] ?? 0) + 1
  }
  reading.items.push(row)
  return recall(row)
}

function refuse(reading: PageReading, emitted: unknown, problems: string[]): Emitted {
  reading.invalid.push({ problems, item: safeJson(emitted) })
  return 'invalid'
}

function parseJson(page: Page): unknown {
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
