/**
 * Memory over the length of a crawl: resident memory of the whole process tree, sampled every 500 ms, beside the number of pages
 * the site had served by then.
 *
 *   node bench/memory.ts [--products 200000] [--in-flight 64] [--bare] [--json]
 */
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startBooksSite } from '../test/site/books.ts'
import { runMeasured, statusMb } from './process-tree.ts'
import { hasSluice, runSluice } from './sluice-run.ts'

export interface MemoryOptions {
  readonly products: number
  readonly inFlight: number
  /** Run the bare loop instead of Sluice. */
  readonly isBare: boolean
}

export interface MemoryCurve {
  readonly what: string
  readonly pages: number
  readonly pagesPerSecond: number
  /** Median of the samples around each milestone. */
  readonly curve: readonly { pages: number; rssMb: number }[]
  readonly peakRssMb: number
  /** The last tenth of the crawl relative to its second tenth (the first is warm-up): 1 is flat. */
  readonly flatness: number
}

const SAMPLE_MS = 500
const MILESTONES = [1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 150_000, 200_000, 500_000, 1_000_000]
const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0

interface Sample {
  readonly pages: number
  readonly rssMb: number
}

export async function benchMemory({ products, inFlight, isBare }: MemoryOptions): Promise<MemoryCurve> {
  await using site = await startBooksSite({ products, cache: false })
  const pages = products + Math.ceil(products / 20)
  const samples: Sample[] = []
  const onSample = (tree: readonly number[]) => {
    const rssMb = tree.reduce((sum, pid) => sum + statusMb(pid, 'VmRSS'), 0)
    if (rssMb > 0) samples.push({ pages: site.stats().requests, rssMb })
  }
  const timeoutMs = 60_000 + pages * 5
  const run = { timeoutMs, sampleMs: SAMPLE_MS, onSample }
  const bare = fileURLToPath(new URL('./bare-loop.ts', import.meta.url))
  const cost = isBare
    ? await runMeasured(process.execPath, [bare, '--site', site.url, '--in-flight', String(inFlight)], run)
    : await runSluice({ site: site.url, products, inFlight, processes: 1, timeoutMs, run })
  if (cost.exitCode !== 0) throw new Error(`the crawl ended with ${cost.exitCode}:\n${cost.stderr}`)
  const between = (from: number, to: number) =>
    median(samples.filter((sample) => sample.pages >= from && sample.pages <= to).map((sample) => sample.rssMb))
  return {
    what: isBare ? 'bare' : 'sluice ×1',
    pages,
    pagesPerSecond: Math.round((pages / cost.wallMs) * 1000),
    curve: MILESTONES.filter((milestone) => milestone <= pages).map((milestone) => ({
      pages: milestone,
      rssMb: Math.round(nearest(samples, milestone)),
    })),
    peakRssMb: Math.round(cost.peakRssMb),
    flatness: Number((between(pages * 0.9, pages) / between(pages * 0.1, pages * 0.2)).toFixed(2)),
  }
}

/** Median of the five samples nearest to a number of pages. */
function nearest(samples: readonly Sample[], pages: number): number {
  const near = samples.toSorted((a, b) => Math.abs(a.pages - pages) - Math.abs(b.pages - pages)).slice(0, 5)
  return median(near.map((sample) => sample.rssMb))
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      products: { type: 'string', default: '200000' },
      'in-flight': { type: 'string', default: '64' },
      bare: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  })
  const curve = await benchMemory({
    products: Number(values.products),
    inFlight: Number(values['in-flight']),
    isBare: values.bare || !hasSluice(),
  })
  if (values.json) console.log(JSON.stringify(curve))
  else {
    console.table(curve.curve)
    const { what, pages, pagesPerSecond, peakRssMb, flatness } = curve
    console.log(
      `${what}: ${pages} pages, ${pagesPerSecond}/s, peak ${peakRssMb} MB, last tenth ÷ second tenth = ${flatness}`,
    )
  }
}
