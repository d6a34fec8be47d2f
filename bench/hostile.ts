/**
 * Hostile pages: every family of misbehaviour through real runs, each case with the outcome that is right for it, the time it may
 * take, and the memory of the process. About two minutes. Ends with 1 when an outcome is wrong, late, or over the memory limit.
 *
 *   node bench/hostile.ts [--json] [--family NAME]
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createGzip } from 'node:zlib'
import { type HostileSite, html, openHostileSite } from '../test/site/hostile.ts'
import { FAMILIES, type HostileCase } from './hostile/cases.ts'
import { ENDLESS_SITES, type EndlessSite, openEndlessSite } from './hostile/sites-without-end.ts'
import { type Cost, runMeasured } from './process-tree.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SLUICE = join(ROOT, 'bin', 'sluice')
const SCRAPER = join(ROOT, 'bench', 'scrapers', 'hostile.ts')
/** Long enough that a page that comes at all comes in time, on a busy machine too. */
const TIMEOUT_MS = 8000
/** A page's deadline, that of its robots.txt, and time to read it on a busy machine. */
const LIMIT_MS = 2 * TIMEOUT_MS + 4000
const RSS_MB_MAX = 250
const RUN_MS_MAX = 120_000

interface Family {
  readonly family: string
  readonly cases: number
  readonly right: number
  readonly wrong: string[]
  readonly longestMs: number
  readonly limitMs: number
  readonly peakRssMb: number
}

interface PageEvent {
  readonly event: string
  readonly url: string
  readonly outcome: string
  readonly fetchMs?: number
  readonly parseMs?: number
  readonly error?: { code: string; message: string }
}

/** A case on a site of its own: no pause or circuit of one touches another, and its port names it. */
interface Opened extends HostileCase {
  readonly family: string
  readonly site: HostileSite
  readonly url: () => string
}

async function openCase(family: string, one: HostileCase, internal: HostileSite): Promise<Opened> {
  const site = await openHostileSite(one.tls === undefined ? {} : { tls: one.tls })
  if (one.behaviour !== undefined) site.on('case', one.behaviour)
  if (one.robots !== undefined) site.on('robots.txt', one.robots)
  const own = site.url(one.behaviour === undefined ? one.name : 'case')
  return { ...one, family, site, url: () => one.url?.(site, internal) ?? own }
}

const isOf = (opened: Opened, { url }: PageEvent) => url.includes(`:${opened.site.port}/`)

/** One run with every case as a start page. */
async function runPages(names: readonly string[], folder: string): Promise<Family[]> {
  await using sites = new AsyncDisposableStack()
  const internal = sites.use(await openHostileSite())
  const opened: Opened[] = []
  for (const family of names)
    for (const one of FAMILIES[family]!) {
      opened.push(await openCase(family, one, internal))
      sites.use(opened.at(-1)!.site)
    }
  const list = join(folder, 'list.json')
  await writeFile(list, JSON.stringify(opened.map((one) => ({ route: 'page', url: one.url() }))))
  const limits = ['--retries', '0', '--circuit', 'off', '--timeout', `${TIMEOUT_MS}ms`, '--wait', '1s', '--rps', '0']
  const { cost, events } = await run(folder, ['--arg', `list=${list}`, ...limits])
  if (internal.requests.length > 0) throw new Error(`the internal service was asked ${internal.requests.length} times`)
  return names.map((family) => {
    const ends = opened
      .filter((one) => one.family === family)
      .map((one) => ({ one, event: events.findLast((event) => isOf(one, event)) }))
    const got = (event: PageEvent | undefined) => event?.error?.code ?? (event?.outcome === 'ok' ? 'page' : 'no end')
    const wrong = ends.filter(({ one, event }) => got(event) !== one.expect)
    const longestMs = Math.max(...ends.map(({ event }) => (event?.fetchMs ?? 0) + (event?.parseMs ?? 0)))
    return {
      family,
      cases: ends.length,
      right: ends.length - wrong.length,
      wrong: wrong.map(
        ({ one, event }) => `${one.name}: ${got(event)} instead of ${one.expect} ${event?.error?.message ?? ''}`,
      ),
      longestMs: Math.round(longestMs),
      limitMs: LIMIT_MS,
      peakRssMb: Math.round(cost.peakRssMb),
    }
  })
}

async function run(folder: string, args: readonly string[]): Promise<{ cost: Cost; events: PageEvent[] }> {
  const out = join(folder, 'runs')
  const all = ['run', SCRAPER, '--out', out, '--log-level', 'debug', '--quiet', ...args]
  const cost = await runMeasured(SLUICE, all, { cwd: folder, timeoutMs: RUN_MS_MAX, sampleMs: 20 })
  if (![0, 1, 4].includes(cost.exitCode)) throw new Error(`sluice ended with ${cost.exitCode}:\n${cost.stderr}`)
  const log = await readFile(join(out, 'hostile', 'latest', 'log.jsonl'), 'utf8')
  const lines = log.split('\n').filter((line) => line !== '')
  return { cost, events: lines.map((line) => JSON.parse(line) as PageEvent).filter(({ event }) => event === 'page') }
}

/** One command for each site: it must come to an end by itself, soon. */
async function runEndless(family: string, folder: string): Promise<Family> {
  const sites = ENDLESS_SITES.filter((one) => one.family === family)
  const wrong: string[] = []
  let longestMs = 0
  let peakRssMb = 0
  for (const one of sites) {
    await using site = await openEndlessSite(one)
    const cost = await runMeasured(SLUICE, endlessArgs(one, site, folder), {
      cwd: folder,
      timeoutMs: RUN_MS_MAX,
      sampleMs: 20,
    })
    const found =
      one.family === 'sitemaps' ? cost.stdout.split('\n').filter((line) => line.startsWith(site.origin)).length : 0
    if (site.requests.length > one.requestsMax) wrong.push(`${one.name}: ${site.requests.length} requests`)
    else if (found < (one.urlsMin ?? 0)) wrong.push(`${one.name}: ${found} URLs ${cost.stderr.slice(0, 300)}`)
    longestMs = Math.max(longestMs, cost.wallMs)
    peakRssMb = Math.max(peakRssMb, cost.peakRssMb)
  }
  const right = sites.length - wrong.length
  const rounded = { longestMs: Math.round(longestMs), peakRssMb: Math.round(peakRssMb) }
  return { family, cases: sites.length, right, wrong, limitMs: 30_000, ...rounded }
}

function endlessArgs({ family, args = [] }: EndlessSite, site: HostileSite, folder: string): string[] {
  const timeout = ['--timeout', `${TIMEOUT_MS}ms`, '--rps', '0', '--quiet', ...args]
  if (family === 'sitemaps') return ['map', `${site.origin}/`, ...timeout]
  return ['crawl', `${site.origin}/`, '--out', join(folder, 'crawls'), '--pages', '1000', ...timeout]
}

/** Default options, so that as many large pages as may be are under way at once. */
async function runLarge(what: string, count: number, body: Buffer, encoding: string, folder: string): Promise<Family> {
  await using site = await openHostileSite()
  site.on('large', html(body, encoding === '' ? {} : { 'Content-Encoding': encoding }))
  const list = join(folder, 'large.json')
  const pages = Array.from({ length: count }, (_, i) => ({ route: 'page', url: site.url('large', { i: String(i) }) }))
  await writeFile(list, JSON.stringify(pages))
  const { cost, events } = await run(folder, ['--arg', `list=${list}`, '--retries', '0'])
  const expected = encoding === '' ? 'page' : 'E_TOO_LARGE'
  const right = events.filter((event) => (event.error?.code ?? 'page') === expected).length
  return {
    family: what,
    cases: count,
    right,
    wrong: events.flatMap(({ error }) => (error === undefined || error.code === expected ? [] : [error.code])),
    longestMs: Math.round(cost.wallMs),
    limitMs: 60_000,
    peakRssMb: Math.round(cost.peakRssMb),
  }
}

async function gzipBomb(mebibytes: number): Promise<Buffer> {
  const gzip = createGzip({ level: 9 })
  const zeroes = Buffer.alloc(1024 ** 2)
  const write = async () => {
    for (let i = 0; i < mebibytes; i++)
      if (!gzip.write(zeroes)) await new Promise<void>((resolve) => gzip.once('drain', resolve))
    gzip.end()
  }
  const [chunks] = await Promise.all([gzip.toArray() as Promise<Buffer[]>, write()])
  return Buffer.concat(chunks)
}

const ROW = '<li class="item"><a href="/x/1">Item name with some words</a><span class=price>12.50</span></li>\n'

export async function benchHostile(only?: string): Promise<Family[]> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'))
  const isWanted = (family: string) => only === undefined || only === family
  try {
    const results: Family[] = []
    const names = Object.keys(FAMILIES).filter(isWanted)
    if (names.length > 0) results.push(...(await runPages(names, folder)))
    for (const family of ['traps', 'sitemaps'].filter(isWanted)) results.push(await runEndless(family, folder))
    if (isWanted('12 gzip bombs of 1 GiB'))
      results.push(await runLarge('12 gzip bombs of 1 GiB', 12, await gzipBomb(1024), 'gzip', folder))
    const large = Buffer.from(`<h1>large</h1><ul>${ROW.repeat(Math.ceil(10_000_000 / ROW.length))}</ul>`)
    if (isWanted('24 pages of 10 MB')) results.push(await runLarge('24 pages of 10 MB', 24, large, '', folder))
    return results
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { json: { type: 'boolean', default: false }, family: { type: 'string' } } })
  const results = await benchHostile(values.family)
  if (values.json) console.log(JSON.stringify(results))
  else {
    console.table(results.map(({ wrong, ...rest }) => ({ ...rest, wrong: wrong.length })))
    for (const { family, wrong } of results) for (const one of wrong) console.log(`${family}: ${one}`)
  }
  const isBad = (one: Family) => one.right < one.cases || one.longestMs > one.limitMs || one.peakRssMb > RSS_MB_MAX
  process.exitCode = results.some(isBad) ? 1 : 0
}
