/** Replay: reads recorded pages again, offline, and compares the handlers' output with what was recorded. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { checkArgs } from '../../config/scraper-arguments.ts'
import { ScrapeError, toScrapeError } from '../../core/errors.ts'
import type { Page } from '../../core/page.ts'
import type { Scraper } from '../../core/scraper.ts'
import type { Json } from '../../core/task.ts'
import { taskId } from '../../core/url.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import { compileScraper } from '../../crawl/compile-scraper.ts'
import { enqueuePolicy } from '../../crawl/enqueue.ts'
import { FILE_ROUTE } from '../../crawl/file-tasks.ts'
import { readPage } from '../../crawl/read-page.ts'
import { INDEX, type RecordedLink, type RecordedPage, resultOf } from '../run/recorder.ts'

/** The result for one recorded page. */
export interface Replayed<Item = unknown> {
  url: string
  route: string
  /** The saved page's file name in the fixture folder. */
  file: string
  items: number
  /** What the handlers emit now, as JSON; empty if they fail. */
  emitted: readonly Item[]
  links: number
  /** Empty if the handlers' output still equals what was recorded. */
  problems: string[]
  /** Why the page cannot be replayed: its handler needs an open browser page. */
  notReplayable?: string
}

interface ReplayOptions {
  /** The scraper's own file, for errors that name a location. */
  file?: string
  /** Accept the handlers' current output as expected. Pages they fail on keep the previous expectation. */
  update?: boolean
}

/** Reads every recorded page again. Throws if there is none: a test that tests nothing must fail. */
export async function replay<Item = unknown>(
  scraper: Scraper<unknown, Item>,
  folder: string,
  options: ReplayOptions = {},
): Promise<Replayed<Item>[]> {
  const pages = readIndex(scraper, folder)
  const results: Replayed<Item>[] = []
  const kept: RecordedPage[] = []
  for (const recorded of pages) {
    const { replayed, now } = await replayPage(scraper, folder, recorded, options.file)
    results.push(replayed as Replayed<Item>)
    kept.push({ ...recorded, ...now })
  }
  if (options.update) {
    const index = join(folder, INDEX)
    writeFileSync(`${index}.tmp`, kept.map((recorded) => `${JSON.stringify(recorded)}\n`).join(''))
    renameSync(`${index}.tmp`, index)
  }
  return results
}

function readIndex(scraper: Scraper, folder: string): RecordedPage[] {
  const index = join(folder, INDEX)
  // The last recording of a page counts.
  const pages = new Map<string, RecordedPage>()
  for (const [i, line] of (existsSync(index) ? readFileSync(index, 'utf8') : '').split('\n').entries()) {
    if (line === '') continue
    try {
      const recorded = JSON.parse(line) as RecordedPage
      pages.set(recorded.file, recorded)
    } catch (cause) {
      throw new ScrapeError('E_DEFINITION', `${index} is damaged: ${(cause as Error).message}`, {
        at: `${index}:${i + 1}`,
        fix: 'Take the line out, or record the pages again.',
        cause,
      })
    }
  }
  if (pages.size > 0) return [...pages.values()]
  throw new ScrapeError('E_DEFINITION', `no recorded pages of "${scraper.name}" in ${folder}`, {
    fix: `Record some: sluice run ${scraper.name} --record --pages 20`,
  })
}

const NOTHING = { items: 0, emitted: [], links: 0 }

interface PageReplay {
  replayed: Replayed
  /** The handlers' output; undefined if they failed or emitted something invalid. */
  now: Pick<RecordedPage, 'items' | 'links'> | undefined
}

async function replayPage(
  scraper: Scraper,
  folder: string,
  recorded: RecordedPage,
  file?: string,
): Promise<PageReplay> {
  const compiled = compileScraper(scraper, {}, file)
  const { url, route } = recorded
  const known = { url, route, file: recorded.file }
  const isBrowser = compiled.routes.get(route)?.definition.fetch === 'browser'
  const watched = watchPage(compiled, route)
  try {
    const reading = await readPage({
      compiled: watched.compiled,
      task: {
        id: taskId({ url }),
        url,
        route,
        data: recorded.data,
        depth: recorded.depth,
        priority: 0,
        lane: 'bulk',
        session: undefined,
      },
      page: toPage(recorded, readFileSync(join(folder, recorded.file))),
      attempt: 1,
      runId: 'replay',
      args: checkArgs(scraper, recorded.args as Record<string, unknown>),
      policy: enqueuePolicy(compiled.limits, [new URL(url).host]),
      log: () => ({ debug() {}, info() {}, warn() {} }),
      save: async (_task, name) => name,
      recall: () => 'new',
      sessions: { keep: async () => {} },
    })
    const result = resultOf(reading)
    const problems = [
      ...compareItems(recorded.items, result.items),
      ...compareLinks(isBrowser ? withoutDownloads(recorded.links, result.links) : recorded.links, result.links),
      ...reading.invalid.map((invalid) => `invalid item: ${invalid.problems.join(', ')}`),
    ]
    const replayed = {
      ...known,
      items: result.items.length,
      emitted: result.items,
      links: result.links.length,
      problems,
    }
    return { replayed, now: reading.invalid.length === 0 ? result : undefined }
  } catch (error) {
    const { code, message, details } = toScrapeError(error, 'E_HANDLER')
    if (isBrowser && watched.wantsPage() && details.cause instanceof TypeError) {
      const notReplayable = `handler of route ${route} uses the browser's page; it cannot be replayed offline`
      return { replayed: { ...known, ...NOTHING, problems: [], notReplayable }, now: undefined }
    }
    return { replayed: { ...known, ...NOTHING, problems: [`${code}: ${message}`] }, now: undefined }
  }
}

/** Wraps the scraper to note whether its handler accessed the browser's page, so that its own bugs are not mistaken for that. */
function watchPage(compiled: CompiledScraper, route: string) {
  const handler = compiled.scraper.handlers[route]
  let wantsPage = false
  if (handler === undefined) return { compiled, wantsPage: () => false }
  const watching = (context: object) =>
    handler(
      new Proxy(context, {
        get(target, name) {
          if (name === 'page') wantsPage = true
          return Reflect.get(target, name)
        },
      }) as never,
    )
  const handlers = { ...compiled.scraper.handlers, [route]: watching }
  return { compiled: { ...compiled, scraper: { ...compiled.scraper, handlers } }, wantsPage: () => wantsPage }
}

/** Files the browser downloaded by itself during recording cannot be requested by a handler again. */
function withoutDownloads(expected: RecordedPage['links'], actual: RecordedPage['links']): RecordedPage['links'] {
  const now = new Set(actual.filter(({ route }) => route === FILE_ROUTE).map(({ url }) => url))
  return expected.filter(({ route, url }) => route !== FILE_ROUTE || now.has(url))
}

function toPage(recorded: RecordedPage, body: Buffer): Page {
  const text = new TextDecoder(recorded.charset).decode(body)
  return {
    requestedUrl: recorded.url,
    url: recorded.finalUrl,
    redirects: [],
    status: recorded.status,
    headers: { 'content-type': recorded.contentType },
    body,
    contentType: recorded.contentType,
    charset: recorded.charset,
    text,
    bytes: { wire: body.length, decoded: body.length },
    timings: { firstByteMs: 0, totalMs: 0 },
    fromCache: true,
    fetchedAtMs: Date.parse(recorded.fetchedAt),
    release() {},
  }
}

function compareItems(expected: Json[], actual: Json[]): string[] {
  if (expected.length !== actual.length) return [`${actual.length} items, recorded were ${expected.length}`]
  return expected.flatMap((item, i) =>
    compareFields(item as Record<string, Json>, actual[i] as Record<string, Json>, i),
  )
}

function compareFields(expected: Record<string, Json>, actual: Record<string, Json>, i: number): string[] {
  const fields = new Set([...Object.keys(expected), ...Object.keys(actual)])
  return [...fields]
    .filter((field) => !isDeepStrictEqual(expected[field], actual[field]))
    .map(
      (field) =>
        `item ${i + 1}, ${field}: ${JSON.stringify(actual[field])}, recorded was ${JSON.stringify(expected[field])}`,
    )
}

function compareLinks(expected: RecordedLink[], actual: RecordedLink[]): string[] {
  const spell = (links: RecordedLink[]) => new Set(links.map(({ route, url, key }) => `${route} ${key ?? url}`))
  const before = spell(expected)
  const now = spell(actual)
  const gone = [...before.difference(now)].map((link) => `link no longer found: ${link}`)
  const added = [...now.difference(before)].map((link) => `link not recorded: ${link}`)
  return [...gone, ...added].slice(0, 20)
}
