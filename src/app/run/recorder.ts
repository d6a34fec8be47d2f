/**
 * Recorder: saves the first pages of each route beside a scraper, with the output of its handlers. `sluice test` replays them.
 */
import { hash } from 'node:crypto'
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from '../../core/page.ts'
import type { Json, Task } from '../../core/task.ts'
import type { PageReading } from '../../crawl/read-page.ts'

/** Fixtures are for tests; they are not an archive. */
const PAGES_PER_ROUTE_MAX = 10
export const INDEX = 'pages.jsonl'

export interface RecordedPage {
  url: string
  finalUrl: string
  route: string
  data: Json
  depth: number
  status: number
  contentType: string
  charset: string
  fetchedAt: string
  args: Json
  file: string
  items: Json[]
  links: RecordedLink[]
}

export interface RecordedLink {
  route: string
  url: string
  /** Distinguishes pages with the same URL. */
  key?: string
}

type OnRead = (task: Task, page: Page, reading: PageReading, args: unknown) => void

/** Saves the first pages of each route. */
export function createRecorder(folder: string): OnRead {
  const counts = new Map<string, number>()
  return (task, page, reading, args) => {
    const count = counts.get(task.route) ?? 0
    if (count >= PAGES_PER_ROUTE_MAX) return
    counts.set(task.route, count + 1)
    mkdirSync(folder, { recursive: true })
    // The same page read with different arguments is a separate fixture.
    const name = `${task.route}-${task.id.slice(0, 12)}-${hash('sha256', JSON.stringify(args ?? {})).slice(0, 4)}`
    const file = `${name}.${page.contentType.includes('json') ? 'json' : 'html'}`
    const recorded: RecordedPage = {
      url: task.url,
      finalUrl: page.url,
      route: task.route,
      data: task.data,
      depth: task.depth,
      status: page.status,
      contentType: page.contentType,
      charset: page.charset,
      fetchedAt: new Date(page.fetchedAtMs).toISOString(),
      args: args as Json,
      file,
      ...resultOf(reading),
    }
    writeFileSync(join(folder, file), page.body)
    appendFileSync(join(folder, INDEX), `${JSON.stringify(recorded)}\n`)
  }
}

export function resultOf(reading: PageReading): Pick<RecordedPage, 'items' | 'links'> {
  return {
    items: reading.items.map((item) => JSON.parse(item.json) as Json),
    links: reading.tasks.map(({ route, url, key }) => ({ route, url, ...(key === undefined ? {} : { key }) })),
  }
}
