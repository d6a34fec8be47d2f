/** Runs `sluice run books` against the demo site as a user would, and checks that its files are complete. */
import { createReadStream, existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Cost, type RunOptions, runMeasured } from './process-tree.ts'

const SLUICE = fileURLToPath(new URL('../bin/sluice', import.meta.url))
const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Up to this many records are checked for duplicates; beyond it they are only counted. */
const DISTINCT_MAX = 10_000

/** As in bin/sluice, so that the loop's start-up is not slower. */
export const compileCache = { NODE_COMPILE_CACHE: join(ROOT, '.deps', 'compile-cache') }

export const hasSluice = () => existsSync(SLUICE)

export interface SluiceRunOptions {
  readonly site: string
  readonly products: number
  readonly inFlight: number
  readonly processes: number
  readonly timeoutMs: number
  readonly run?: Partial<RunOptions>
}

/** The cost of one run. Throws if the output is not exactly the catalogue. */
export async function runSluice(options: SluiceRunOptions): Promise<Cost> {
  const out = await mkdtemp(join(tmpdir(), 'sluice-bench-'))
  try {
    const args = ['run', 'books', '--site', options.site, '--arg', 'details=true']
    args.push('--concurrency', String(options.inFlight), '--per-host', String(options.inFlight), '--rps', '0')
    args.push('--format', 'jsonl,csv', '--out', out, '--quiet')
    if (options.processes > 1) args.push('--processes', String(options.processes))
    const cost = await runMeasured(SLUICE, args, { cwd: ROOT, timeoutMs: options.timeoutMs, ...options.run })
    if (cost.exitCode !== 0) throw new Error(`sluice ended with ${cost.exitCode}:\n${cost.stderr}${cost.stdout}`)
    await checkOutput(out, options.products)
    return cost
  } finally {
    await rm(out, { recursive: true, force: true })
  }
}

async function checkOutput(out: string, products: number): Promise<void> {
  for (const [name, headerLines] of [
    ['items.jsonl', 0],
    ['items.csv', 1],
  ] as const) {
    const lines = new Set<string>()
    let count = -headerLines
    for await (const line of createInterface({ input: createReadStream(join(out, 'books', 'latest', name)) })) {
      count++
      if (products <= DISTINCT_MAX) lines.add(line)
    }
    if (count !== products) throw new Error(`${name} has ${count} records, not ${products}`)
    if (products <= DISTINCT_MAX && lines.size !== products + headerLines) throw new Error(`${name} repeats records`)
  }
}
