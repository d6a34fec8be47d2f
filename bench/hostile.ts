/**
 * Hostile pages: every family of misbehaviour through real runs, each case with its correct outcome, a time limit, and the memory
 * of the process. About four minutes. Exits with 1 if an outcome is wrong, late, or over the memory limit.
 *
 *   node bench/hostile.ts [--json] [--family NAME]
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createGzip } from 'node:zlib'
import { type HostileSite, html, openHostileSite } from '../test/site/hostile.ts'
import { FAMILIES, type HostileCase } from './hostile/cases.ts'
import {
  endOf,
  type Family,
  familyOf,
  type LogEvent,
  NO_RETRIES,
  RUN_MS_MAX,
  run,
  SLUICE,
  TIMEOUT_MS,
} from './hostile/family.ts'
import { runBrowser, runFiles } from './hostile/files-and-browser.ts'
import { runOneByOne, SINGLE_FAMILIES } from './hostile/one-by-one.ts'
import { ENDLESS_SITES, type EndlessSite, openEndlessSite } from './hostile/sites-without-end.ts'
import { runMeasured } from './process-tree.ts'

const RSS_MB_MAX = 250

/** A case on a separate site, identified by its port: no pause or circuit of one affects another. */
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

const isOf = (opened: Opened, { url }: LogEvent) => url.includes(`:${opened.site.port}/`)

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
  const { cost, events } = await run('hostile', folder, ['--arg', `list=${list}`, ...NO_RETRIES])
  if (internal.requests.length > 0) throw new Error(`the internal service was asked ${internal.requests.length} times`)
  return names.map((family) => {
    const cases = opened.filter((one) => one.family === family)
    const ends = cases.map((one) =>
      endOf(
        one.name,
        one.expect,
        events.findLast((event) => isOf(one, event)),
      ),
    )
    return familyOf(family, ends, cost.peakRssMb)
  })
}

/** One command for each site: it must end by itself, soon. */
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

/** Default options, so that as many large pages as possible are in flight at once. */
async function runLarge(what: string, count: number, body: Buffer, encoding: string, folder: string): Promise<Family> {
  await using site = await openHostileSite()
  site.on('large', html(body, encoding === '' ? {} : { 'Content-Encoding': encoding }))
  const list = join(folder, 'large.json')
  const pages = Array.from({ length: count }, (_, i) => ({ route: 'page', url: site.url('large', { i: String(i) }) }))
  await writeFile(list, JSON.stringify(pages))
  const { cost, events } = await run('hostile', folder, ['--arg', `list=${list}`, '--retries', '0'])
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
    for (const family of SINGLE_FAMILIES.filter(isWanted)) results.push(await runOneByOne(family, folder))
    if (isWanted('files')) results.push(await runFiles(folder))
    if (isWanted('browser')) results.push(await runBrowser(folder))
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
    console.log(
      'peakRssMb: VmHWM of the sluice process, read from /proc every 20 ms. The page families are one run together, so they',
    )
    console.log('share a figure. files: the largest of its processes. browser: without the processes of Chromium.')
    for (const { family, wrong } of results) for (const one of wrong) console.log(`${family}: ${one}`)
  }
  const isBad = (one: Family) => one.right < one.cases || one.longestMs > one.limitMs || one.peakRssMb > RSS_MB_MAX
  process.exitCode = results.some(isBad) ? 1 : 0
}
