/** How fast this machine scrapes: an ordinary run against a shop on loopback, writing to files that are then deleted. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as z from 'zod'
import { VERSION } from '../../config/user-agent.ts'
import { ScrapeError } from '../../core/errors.ts'
import { defineScraper } from '../../core/scraper.ts'
import { start } from '../start.ts'

const SITE = fileURLToPath(new URL('./bench-site.ts', import.meta.url))

interface BenchOptions {
  pages: number
  concurrency: number
  onProgress?: (done: number) => void
}

export interface BenchResult {
  machine: { version: string; node: string; cores: number; cpu: string; memoryBytes: number; loadBefore: number }
  pages: number
  concurrency: number
  seconds: number
  pagesPerSecond: number
  /** The scraping process only; the site runs in another process. */
  cpuMsPerPage: number
  latencyMs: { p50: number; p95: number }
  rssBytesMax: number
  bytes: number
}

const shop = defineScraper({
  name: 'bench',
  args: z.object({ site: z.url(), pages: z.number() }),
  item: z.object({ id: z.string(), title: z.string(), price: z.string(), url: z.url() }),
  key: 'id',
  routes: { product: { match: '/product/:id' } },
  async start({ args, enqueue }) {
    for (let id = 1; id <= args.pages; id++) await enqueue('product', new URL(`/product/${id}`, args.site))
  },
  handlers: {
    async product({ $, params, url, emit }) {
      await emit({ id: params.id, title: $.text('h1'), price: $.text('.price'), url: url.href })
    },
  },
})

export async function bench({ pages, concurrency, onProgress }: BenchOptions): Promise<BenchResult> {
  const [load] = loadavg()
  const out = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const child = fork(SITE, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  try {
    const run = await start(shop, {
      args: { site: await siteOf(child), pages },
      out,
      concurrency,
      rps: 0,
      robots: 'ignore',
      format: 'dual',
    })
    let done = 0
    for await (const event of run.events) if (event.type === 'page' && ++done % 250 === 0) onProgress?.(done)
    const record = await run.result
    if (record.pages.ok !== pages)
      throw new ScrapeError(
        'E_HANDLER',
        `${pages - record.pages.ok} of ${pages} pages failed: ${record.reason ?? ''}`,
        {
          notes: record.errors.map(({ code, example }) => `${code}: ${example}`),
        },
      )
    return {
      machine: {
        version: VERSION,
        node: process.version,
        cores: availableParallelism(),
        cpu: cpus()[0]?.model ?? 'unknown',
        memoryBytes: totalmem(),
        loadBefore: Number(load!.toFixed(2)), // a busy machine explains a slow result
      },
      pages,
      concurrency,
      seconds: record.durationMs / 1000,
      pagesPerSecond: Math.round(pages / (record.durationMs / 1000)),
      cpuMsPerPage: Number((record.cpuMs / pages).toFixed(3)),
      latencyMs: record.latencyMs,
      rssBytesMax: record.rssBytesMax,
      bytes: record.bytes,
    }
  } finally {
    if (child.connected) child.disconnect()
    rmSync(out, { recursive: true, force: true })
  }
}

/** Throws `E_SERVICE` if the process exits before it reports its address. */
export async function siteOf(child: ChildProcess): Promise<string> {
  const waiting = new AbortController()
  const { signal } = waiting
  const ended = once(child, 'exit', { signal }).then(([code, killedBy]) => {
    throw new ScrapeError('E_SERVICE', `the site of the bench ended before it listened (${killedBy ?? code})`, {
      fix: 'What it said is above. Is there memory left, and may this user listen on 127.0.0.1?',
    })
  })
  try {
    const [message] = await Promise.race([once(child, 'message', { signal }), ended])
    return (message as { url: string }).url
  } finally {
    waiting.abort()
    await ended.catch(() => {}) // the loser of the race
  }
}
