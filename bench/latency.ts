/**
 * Whether a crawl keeps its connections busy: every response takes 50 ms, 64 are in flight, so 1,280 pages per second is the
 * theoretical limit.
 *
 *   node bench/latency.ts [--products 20000] [--delay 50] [--in-flight 64] [--json]
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runMeasured } from './process-tree.ts'
import { startSite } from './site-process.ts'
import { compileCache, hasSluice, runSluice } from './sluice-run.ts'

export interface LatencyOptions {
  readonly products: number
  readonly delayMs: number
  readonly inFlight: number
}

export interface LatencyRow {
  readonly what: string
  readonly pages: number
  readonly pagesPerSecond: number
  /** In flight divided by the delay. */
  readonly limit: number
  readonly shareOfLimit: number
  readonly cpuSecondsPer1000: number
  readonly peakRssMb: number
}

export async function benchLatency({ products, delayMs, inFlight }: LatencyOptions): Promise<LatencyRow[]> {
  await using site = await startSite({ products, delayMs })
  const pages = products + Math.ceil(products / 20)
  const limit = (inFlight / delayMs) * 1000
  const timeoutMs = 30_000 + (pages / limit) * 5000
  const bare = fileURLToPath(new URL('./bare-loop.ts', import.meta.url))
  const args = [bare, '--site', site.url, '--in-flight', String(inFlight)]
  const env = { ...process.env, ...compileCache }
  const costs = new Map([['bare', await runMeasured(process.execPath, args, { timeoutMs, env })]])
  if (hasSluice())
    costs.set('sluice ×1', await runSluice({ site: site.url, products, inFlight, processes: 1, timeoutMs }))
  return [...costs].map(([what, cost]) => {
    if (cost.exitCode !== 0) throw new Error(`${what} ended with ${cost.exitCode}:\n${cost.stderr}`)
    const pagesPerSecond = (pages / cost.wallMs) * 1000
    return {
      what,
      pages,
      pagesPerSecond: Math.round(pagesPerSecond),
      limit: Math.round(limit),
      shareOfLimit: Number((pagesPerSecond / limit).toFixed(3)),
      cpuSecondsPer1000: Number((cost.cpuMs / pages).toFixed(3)),
      peakRssMb: Math.round(cost.peakRssMb),
    }
  })
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      products: { type: 'string', default: '20000' },
      delay: { type: 'string', default: '50' },
      'in-flight': { type: 'string', default: '64' },
      json: { type: 'boolean', default: false },
    },
  })
  const rows = await benchLatency({
    products: Number(values.products),
    delayMs: Number(values.delay),
    inFlight: Number(values['in-flight']),
  })
  if (values.json) console.log(JSON.stringify(rows))
  else console.table(rows)
}
