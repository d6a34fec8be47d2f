/**
 * API reads while a run is active: latency at 500 requests per second, and memory with 200 event streams.
 *
 *   .deps/bin/node bench/api.ts [--rate 500] [--seconds 20] [--watchers 200]
 */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { parseArgs } from 'node:util'
import { createClient } from '../src/server/api/client.ts'
import { startServe } from '../test/serve.ts'
import { startBooksSite } from '../test/site/books.ts'
import { temporaryFolder } from '../test/sluice.ts'

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '500' },
    seconds: { type: 'string', default: '20' },
    watchers: { type: 'string', default: '200' },
    frontier: { type: 'string' },
  },
})
const [rate, seconds, watchers] = [Number(values.rate), Number(values.seconds), Number(values.watchers)]

await using site = await startBooksSite({ products: 200_000, misbehave: false })
using folder = temporaryFolder()
const flags = ['--rps', '50', '--allow-address', new URL(site.url).host]
const env = values.frontier === undefined ? {} : { SLUICE_FRONTIER: values.frontier }
await using server = await startServe(flags, { cwd: folder.path, env })
const client = createClient({ url: server.url })
for (let ended = 0; ended < 20; ended++) {
  const { id } = await client.startRun({ body: { scraper: 'books', args: { site: site.url, pages: 1 } } })
  while ((await client.getRun({ params: { id } })).state === 'running') await new Promise((r) => setTimeout(r, 50))
}
const { id } = await client.startRun({ body: { scraper: 'books', args: { site: site.url, details: true } } })

const rssMb = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))![1]) / 1024
const agent = new Agent({ keepAlive: true, maxSockets: 64 })
const paths = [`/v1/runs/${id}`, '/v1/runs?limit=20', '/v1/workers', `/v1/runs/${id}/errors`, `/v1/dlq?run=${id}`]

function timed(path: string): Promise<number> {
  const startedMs = performance.now()
  return new Promise((resolve, reject) => {
    request(server.url + path, { agent }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${path}: ${response.statusCode}`))
      response.resume().once('end', () => resolve(performance.now() - startedMs))
    })
      .once('error', reject)
      .end()
  })
}

/** Open loop: requests are sent on schedule, however long the responses take. */
async function load(atRate: number, forSeconds: number): Promise<number[]> {
  const pending: Promise<number>[] = []
  const startedMs = performance.now()
  for (let sent = 0; sent < atRate * forSeconds; ) {
    const due = Math.floor(((performance.now() - startedMs) / 1000) * atRate)
    while (sent < Math.min(due, atRate * forSeconds)) pending.push(timed(paths[sent++ % paths.length]!))
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  return (await Promise.all(pending)).sort((a, b) => a - b)
}

const at = (sorted: readonly number[], q: number) => sorted[Math.floor(q * (sorted.length - 1))]!.toFixed(1)

await load(rate / 2, 3) // warm up
const times = await load(rate, seconds)
console.log(
  `reads at ${rate}/s for ${seconds} s beside an active run: p50 ${at(times, 0.5)} · p95 ${at(times, 0.95)} · p99 ${at(times, 0.99)} · max ${at(times, 1)} ms`,
)

const before = rssMb()
const stop = new AbortController()
let events = 0
for (let n = 0; n < watchers; n++) {
  const response = await client.watchRun({ params: { id } }, { signal: stop.signal })
  void (async () => {
    for await (const chunk of response.body!) events += String(chunk).length > 0 ? 1 : 0
  })().catch(() => {})
}
await new Promise((resolve) => setTimeout(resolve, 5_000))
const with200 = rssMb()
await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
console.log(
  `${watchers} watchers: RSS ${before.toFixed(0)} MB before, ${with200.toFixed(0)} MB after 5 s, ${rssMb().toFixed(0)} MB after ${seconds + 5} s; ${events} chunks`,
)
stop.abort()
await client.cancelRun({ params: { id } })
agent.destroy()
