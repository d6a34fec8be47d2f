/**
 * What a reliable crawl costs compared with the bare loop: both crawl the same demo site, alternating, for several rounds.
 *
 *   node bench/crawl.ts [--products 1000] [--rounds 3] [--in-flight 16,64] [--processes 1,2] [--warm] [--json]
 *
 * CPU is that of the client's whole process tree from its start, including Node's start-up and the JIT's warm-up. `--warm` also
 * runs a catalogue five times as large and reports the cost of the additional pages, where start-up cancels out.
 */

import { loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Cost, runMeasured } from './process-tree.ts'
import { startSite } from './site-process.ts'
import { compileCache, hasSluice, runSluice } from './sluice-run.ts'

const TIMEOUT_MS = 120_000
const BARE = fileURLToPath(new URL('./bare-loop.ts', import.meta.url))

export interface CrawlOptions {
  readonly products: number
  readonly rounds: number
  readonly inFlight: readonly number[]
  readonly processes: readonly number[]
  readonly isWarm: boolean
}

/** Medians over the rounds. */
export interface CrawlRow {
  readonly what: string
  readonly inFlight: number
  readonly products: number
  readonly pagesPerSecond: number
  readonly cpuSecondsPer1000: number
  readonly wallSeconds: number
  readonly peakRssMb: number
  /** CPU relative to the bare loop with the same number in flight; 1 for the loop itself. */
  readonly cpuRatio: number
  /** Pages per second relative to the bare loop. */
  readonly speedRatio: number
  /** CPU seconds per 1,000 pages with start-up cancelled out; only with `--warm`. */
  readonly warmCpuSecondsPer1000?: number
}

const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!
const round = (number: number, digits = 3) => Number(number.toFixed(digits))
const pagesOf = (products: number) => products + Math.ceil(products / 20)

async function runBare(site: string, products: number, inFlight: number): Promise<Cost> {
  const args = [BARE, '--site', site, '--in-flight', String(inFlight)]
  const cost = await runMeasured(process.execPath, args, {
    timeoutMs: TIMEOUT_MS,
    env: { ...process.env, ...compileCache },
  })
  if (cost.exitCode !== 0) throw new Error(`the bare loop ended with ${cost.exitCode}:\n${cost.stderr}`)
  const { pages, items } = JSON.parse(cost.stdout) as { pages: number; items: number }
  if (items !== products || pages !== pagesOf(products)) throw new Error(`the bare loop read ${items} of ${products}`)
  return cost
}

/** All contestants in turn, `rounds` times, so that disturbances affect them alike. */
async function measure(products: number, options: CrawlOptions): Promise<Map<string, Cost[]>> {
  await using site = await startSite({ products })
  const costs = new Map<string, Cost[]>()
  const note = (name: string, cost: Cost) => costs.set(name, [...(costs.get(name) ?? []), cost])
  await runBare(site.url, products, 16) // fills the site's page cache
  for (let i = 0; i < options.rounds; i++) {
    for (const inFlight of options.inFlight) {
      note(`bare ${inFlight}`, await runBare(site.url, products, inFlight))
      if (!hasSluice()) continue
      for (const processes of options.processes) {
        const run = { site: site.url, products, inFlight, processes, timeoutMs: TIMEOUT_MS }
        note(`sluice ×${processes} ${inFlight}`, await runSluice(run))
      }
    }
  }
  return costs
}

export async function benchCrawl(options: CrawlOptions): Promise<CrawlRow[]> {
  const cold = await measure(options.products, options)
  const large = options.products * 5
  const warm = options.isWarm ? await measure(large, { ...options, rounds: 1 }) : undefined
  const perPage = (costs: readonly Cost[]) => median(costs.map((cost) => cost.cpuMs)) / pagesOf(options.products)
  return [...cold].map(([name, costs]) => {
    const [, what, inFlight] = /^(.*) (\d+)$/.exec(name)!
    const floor = cold.get(`bare ${inFlight}`)!
    const wallMs = median(costs.map((cost) => cost.wallMs))
    const pages = pagesOf(options.products)
    const warmCosts = warm?.get(name)
    const row: CrawlRow = {
      what: what!,
      inFlight: Number(inFlight),
      products: options.products,
      pagesPerSecond: Math.round((pages / wallMs) * 1000),
      cpuSecondsPer1000: round(perPage(costs)),
      wallSeconds: round(wallMs / 1000),
      peakRssMb: Math.round(median(costs.map((cost) => cost.peakRssMb))),
      cpuRatio: round(perPage(costs) / perPage(floor), 2),
      speedRatio: round(median(floor.map((cost) => cost.wallMs)) / wallMs, 2),
    }
    if (warmCosts === undefined) return row
    const more = median(warmCosts.map((cost) => cost.cpuMs)) - median(costs.map((cost) => cost.cpuMs))
    return { ...row, warmCpuSecondsPer1000: round(more / (pagesOf(large) - pages)) }
  })
}

/** "16,64" as numbers. */
export const numbers = (text: string) => text.split(',').map(Number)

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      products: { type: 'string', default: '1000' },
      rounds: { type: 'string', default: '3' },
      'in-flight': { type: 'string', default: '16,64' },
      processes: { type: 'string', default: '1,2' },
      warm: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  })
  if (loadavg()[0]! > 0.5)
    console.error(`The machine is busy (load ${loadavg()[0]!.toFixed(2)}): trust CPU, not wall time.`)
  const rows = await benchCrawl({
    products: Number(values.products),
    rounds: Number(values.rounds),
    inFlight: numbers(values['in-flight']),
    processes: numbers(values.processes),
    isWarm: values.warm,
  })
  if (values.json) console.log(JSON.stringify(rows))
  else console.table(rows)
  if (!hasSluice()) console.error('bin/sluice is missing: only the bare loop was measured.')
}
