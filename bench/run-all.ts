/** `make bench`: every benchmark with quick settings, as one JSON document that describes the machine, too. About two minutes. */
import { cpus, loadavg, totalmem, version } from 'node:os'
import { fileURLToPath } from 'node:url'
import { benchCrawl } from './crawl.ts'
import { benchLatency } from './latency.ts'
import { benchMemory } from './memory.ts'
import { runMeasured } from './process-tree.ts'
import { canPin } from './site-process.ts'
import { hasSluice } from './sluice-run.ts'

/** A benchmark in a separate program that prints JSON. If one fails, that is reported, and the others still run. */
async function program(name: string, ...args: string[]): Promise<unknown> {
  const script = fileURLToPath(new URL(`./${name}.ts`, import.meta.url))
  const { exitCode, stdout, stderr } = await runMeasured(process.execPath, [script, '--json', ...args], {
    timeoutMs: 180_000,
  })
  return exitCode === 0 ? JSON.parse(stdout) : { failed: stderr.slice(0, 2000) }
}

const startedMs = Date.now()
const machine = {
  node: process.version,
  os: version(),
  cores: cpus().length,
  cpu: cpus()[0]?.model,
  memoryMb: Math.round(totalmem() / 1024 / 1024),
  siteIsPinned: canPin,
  loadBefore: Number(loadavg()[0]!.toFixed(2)), // a busy machine explains a slow result
}
const results = {
  crawl: await benchCrawl({ products: 1000, rounds: 3, inFlight: [16, 64], processes: [1, 2], isWarm: true }),
  latency: await benchLatency({ products: 4000, delayMs: 50, inFlight: 64 }),
  memory: await benchMemory({ products: 20_000, inFlight: 64, isBare: !hasSluice() }),
  pipeline: await program('pipeline', '--items', '1000000', '--workers', '8'),
  extract: await program('extract', '--ms', '500'),
}
const tookSeconds = Math.round((Date.now() - startedMs) / 1000)
const startedAt = new Date(startedMs).toISOString()
console.log(JSON.stringify({ machine, startedAt, tookSeconds, hasSluice: hasSluice(), ...results }, null, 2))
