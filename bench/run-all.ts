/** `make bench`: the crawl benchmarks with quick settings, as one JSON document with the machine they ran on. */
import { cpus, loadavg, totalmem, version } from 'node:os'
import { benchCrawl } from './crawl.ts'
import { benchLatency } from './latency.ts'
import { benchMemory } from './memory.ts'
import { canPin } from './site-process.ts'
import { hasSluice } from './sluice-run.ts'

const startedMs = Date.now()
const loadBefore = loadavg()[0]! // a busy machine explains a slow result
const crawl = await benchCrawl({ products: 1000, rounds: 3, inFlight: [16, 64], processes: [1, 2], isWarm: true })
const latency = await benchLatency({ products: 4000, delayMs: 50, inFlight: 64 })
const memory = await benchMemory({ products: 20_000, inFlight: 64, isBare: !hasSluice() })
console.log(
  JSON.stringify(
    {
      machine: {
        node: process.version,
        os: version(),
        cores: cpus().length,
        cpu: cpus()[0]?.model,
        memoryMb: Math.round(totalmem() / 1024 / 1024),
        siteIsPinned: canPin,
        loadBefore: Number(loadBefore.toFixed(2)),
      },
      startedAt: new Date(startedMs).toISOString(),
      tookSeconds: Math.round((Date.now() - startedMs) / 1000),
      hasSluice: hasSluice(),
      crawl,
      latency,
      memory,
    },
    null,
    2,
  ),
)
