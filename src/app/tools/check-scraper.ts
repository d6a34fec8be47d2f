/** Fetches a few live pages of a scraper, spread over its routes, and compares them with its expectations. Keeps nothing. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { assertTurnedOn } from '../../config/opt-in.ts'
import { checkArgs } from '../../config/scraper-arguments.ts'
import { userAgent } from '../../config/user-agent.ts'
import { createEventBus } from '../../core/events.ts'
import type { Scraper } from '../../core/scraper.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import { compileScraper } from '../../crawl/compile-scraper.ts'
import type { CrawlEnd } from '../../crawl/contract.ts'
import { openMemoryFrontier } from '../../frontier/memory/engine.ts'
import { createTally, type TallySnapshot } from '../../observe/tally.ts'
import { RunFolder } from '../../runs/run-folder.ts'
import { egressOf } from '../run/egress-options.ts'
import { seed } from '../run/seed.ts'
import { placeIn, work } from '../run/worker.ts'
import { browserSpecOf, fileSpecOf } from '../run/worker-spec.ts'
import { type PageYield, sampleFrontier } from './sample-frontier.ts'

interface CheckRequest {
  scraper: Scraper
  file: string
  args: Record<string, unknown>
  config: Config
  pages: number
  signal: AbortSignal
}

/** Result of the pages of one route. */
export interface RouteCheck {
  route: string
  ok: number
  failed: number
  /** Fewest and most on one page; undefined if none was read. */
  items: [min: number, max: number] | undefined
  links: [min: number, max: number] | undefined
  expected: { items?: [number, number]; links?: [number, number] }
}

interface FieldCheck {
  field: string
  filled: number
  expected: number
}

export interface Check {
  scraper: string
  pages: { ok: number; failed: number }
  items: { valid: number; invalid: number }
  routes: RouteCheck[]
  fields: FieldCheck[]
  errors: { code: string; count: number; example: string; message: string }[]
  /** Empty if everything is as expected. */
  problems: string[]
  durationMs: number
}

const CONCURRENCY_MAX = 4
const LEASE_MS = 60_000
const DRAIN_MS = 10_000

export async function checkScraper({
  scraper,
  file,
  args: given,
  config,
  pages,
  signal,
}: CheckRequest): Promise<Check> {
  assertTurnedOn(scraper, config)
  const startedMs = performance.now()
  const compiled = compileScraper(scraper, { ...config.limits, pages }, file)
  const args = checkArgs(scraper, given)
  const yields: PageYield[] = []
  const bus = createEventBus()
  const tally = createTally()
  bus.on(tally.record)
  const base = mkdtempSync(join(tmpdir(), 'sluice-check-'))
  let end: CrawlEnd
  try {
    await using frontier = sampleFrontier(openMemoryFrontier({}), {
      perRoute: pages,
      onPage: (page) => yields.push(page),
    })
    await seed({ compiled, args, frontier, bus, stop: signal })
    const concurrency = Math.min(CONCURRENCY_MAX, compiled.limits.concurrency)
    const folder = RunFolder.create(base, scraper.name, Date.now())
    const spec = {
      workerId: `check-${process.pid}`,
      args,
      concurrency,
      perHostConcurrency: Math.min(concurrency, compiled.limits.perHost.concurrency),
      pagesMax: pages,
      leaseMs: LEASE_MS,
      drainMs: DRAIN_MS,
      userAgent: userAgent(config.values),
      allowPrivate: config.values.allowPrivate,
      allowAddresses: config.values.allowAddress,
      cacheStore: 'memory:',
      ways: egressOf(config.values),
      browsers: browserSpecOf(config.values),
      files: fileSpecOf(config.values, folder, folder.file('files.db')),
      memoryReserve: config.values.memoryReserve,
      isOneOfMany: false,
      recordTo: undefined,
    }
    const place = placeIn(folder, false)
    end = await work(spec, { compiled, frontier, bus, place }, signal)
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
  if (end.how === 'halted') throw end.error
  const check = measure(compiled, yields, tally.snapshot(), performance.now() - startedMs)
  if (end.how === 'stopped') check.problems.unshift(`stopped after ${Math.round(check.durationMs / 1000)} s`)
  return check
}

function measure(compiled: CompiledScraper, yields: PageYield[], tally: TallySnapshot, durationMs: number): Check {
  const { scraper } = compiled
  const expect = (scraper.expect ?? {}) as {
    filled?: Record<string, number>
    perRoute?: Record<string, RouteCheck['expected']>
  }
  const routes = Object.keys(scraper.routes).map((route): RouteCheck => {
    const read = yields.filter((page) => page.route === route)
    return {
      route,
      ok: read.length,
      failed: tally.routes[route]?.failed ?? 0,
      items: range(read.map((page) => page.items)),
      links: range(read.map((page) => page.links)),
      expected: expect.perRoute?.[route] ?? {},
    }
  })
  const check: Check = {
    scraper: scraper.name,
    pages: { ok: yields.length, failed: tally.pages.failed },
    items: { valid: yields.reduce((sum, page) => sum + page.items, 0), invalid: tally.items.invalid },
    routes,
    fields: Object.entries(expect.filled ?? {}).map(([field, expected]) => ({
      field,
      filled: tally.fieldFill[field] ?? 0,
      expected,
    })),
    errors: tally.errors
      .filter((group) => group.count > 0)
      .map(({ code, count, example, message }) => ({ code, count, example, message })),
    problems: [],
    durationMs,
  }
  check.problems.push(...problemsOf(check, compiled))
  return check
}

function range(values: number[]): [number, number] | undefined {
  return values.length === 0 ? undefined : [Math.min(...values), Math.max(...values)]
}

const percent = (share: number) => `${Math.round(share * 1000) / 10} %`

function problemsOf({ pages, items, routes, fields }: Check, { limits, scraper }: CompiledScraper): string[] {
  const problems: string[] = []
  if (pages.ok === 0) problems.push('no page could be read')
  else if (pages.failed / (pages.ok + pages.failed) > limits.failAt)
    problems.push(`${pages.failed} of ${pages.ok + pages.failed} pages failed, over failAt ${percent(limits.failAt)}`)
  if (items.invalid > 0 && items.invalid / (items.valid + items.invalid) > limits.failAt)
    problems.push(
      `${items.invalid} of ${items.valid + items.invalid} items are invalid, over failAt ${percent(limits.failAt)}`,
    )
  // So few pages cannot yield what a whole run must, but no item at all is wrong.
  if (items.valid === 0 && (scraper.expect?.items?.min ?? 0) > 0) problems.push('no item, and the scraper expects some')
  for (const { route, ...actual } of routes) {
    for (const what of ['items', 'links'] as const) {
      const [min, max] = actual.expected[what] ?? [0, Number.POSITIVE_INFINITY]
      const found = actual[what]
      if (found !== undefined && (found[0] < min || found[1] > max))
        problems.push(`${what} on a page of route "${route}": ${rangeText(found)}, expected ${rangeText([min, max])}`)
    }
  }
  for (const { field, filled, expected } of fields)
    if (items.valid > 0 && filled < expected)
      problems.push(`field "${field}" is filled in ${percent(filled)}, expected ${percent(expected)}`)
  return problems
}

export function rangeText([min, max]: readonly [number, number]): string {
  return min === max ? String(min) : `${min}–${max === Number.POSITIVE_INFINITY ? '∞' : max}`
}
