/**
 * What the browser pool costs compared with the bare driver, and whether a browser's memory stays stable: real Chromium, loopback
 * site.
 *
 *   node bench/browser.ts [--rounds 7] [--pages 0] [--slots 0]
 *
 * Both open each page in its own context, 4 at once, in browsers with the same flags, and alternate in short slices, so that a
 * busy machine affects both alike; the figure is the median of the ratios. `--pages 500` adds a soak: the memory of one browser
 * with all its processes (PSS), at rest, before and after that many pages. `--slots 60` adds how long after the end of a page its
 * slot is free for the next task, alone and while file processes download 100 files of 5 MB, together with the event-loop lag.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Browser } from 'puppeteer-core'
import { createEventBus } from '../src/core/events.ts'
import { launchChromium } from '../src/fetch/browser/launch.ts'
import { type BrowserPoolOptions, withDefaults } from '../src/fetch/browser/options.ts'
import { type BrowserPool, openBrowserPool } from '../src/fetch/browser/pool.ts'
import { killTree, treeOf } from '../src/fetch/browser/processes.ts'
import { openFilePool } from '../src/files/pool.ts'
import { chromiumForTests } from '../test/services/chromium.ts'
import { allOf, HTTP, jobFor } from './files.ts'
import { startSite } from './site-process.ts'

const AT_ONCE = 4
const SLICE_PAGES = 24
const WARM_UP_PAGES = 40
/** Chromium releases memory some time after its pages are gone. */
const REST_MS = 5000

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    pages: { type: 'string', default: '0' },
    slots: { type: 'string', default: '0' },
  },
})
const { signal } = new AbortController()

async function perSecond(pages: number, open: () => Promise<void>): Promise<number> {
  let left = pages
  const startedAtMs = performance.now()
  const worker = async () => {
    while (left-- > 0) await open()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return (pages / (performance.now() - startedAtMs)) * 1000
}

async function openBare(browser: Browser, url: string): Promise<void> {
  const context = await browser.createBrowserContext({ proxyServer: 'direct://' })
  const page = await context.newPage()
  await page.goto(url)
  if ((await page.content()).length < 1000) throw new Error('not the page')
  await context.close()
}

async function openOurs(pool: BrowserPool, url: string): Promise<void> {
  const page = await pool.visit({ url, browser: {} }, signal)
  if (page.text.length < 1000) throw new Error('not the page')
  page.release()
}

/** Shared memory is divided among the processes, so the sum is what the browser takes. */
function pssMb(pid: number): number {
  const figures = treeOf(pid).map((one) => {
    try {
      return Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${one}/smaps_rollup`, 'utf8'))?.[1] ?? 0)
    } catch {
      return 0
    }
  })
  return Math.round(figures.reduce((sum, kb) => sum + kb, 0) / 1024)
}

const median = (figures: readonly number[]) => figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)]!

async function compare(options: BrowserPoolOptions, url: string): Promise<void> {
  await using pool = openBrowserPool(options)
  const folder = join(options.spool, 'bare')
  const { browser, pid } = await launchChromium({ settings: withDefaults(options), closedProxy: 'direct://', folder })
  const slices: { bare: number; ours: number; share: number }[] = []
  try {
    for (let round = -1; round < Number(values.rounds); round++) {
      const bare = await perSecond(SLICE_PAGES, () => openBare(browser, url))
      const ours = await perSecond(SLICE_PAGES, () => openOurs(pool, url))
      if (round >= 0) slices.push({ bare, ours, share: ours / bare }) // the first one warms up
    }
  } finally {
    killTree(pid)
  }
  console.log(`pages per second, ${AT_ONCE} at once, median of ${slices.length} slices of ${SLICE_PAGES} pages`)
  console.table(
    (['bare', 'ours', 'share'] as const).map((figure) => {
      const all = slices.map((slice) => slice[figure])
      const at = (value: number) => Number(value.toPrecision(3))
      return { figure, low: at(Math.min(...all)), median: at(median(all)), high: at(Math.max(...all)) }
    }),
  )
}

async function soak(options: BrowserPoolOptions, url: string, pages: number): Promise<void> {
  const events = createEventBus()
  let pid = 0
  events.on((event) => {
    if (event.type === 'browser' && event.what === 'launched') pid = event.pid!
  })
  await using pool = openBrowserPool({ ...options, events, pagesPerBrowserMax: pages * 2 + 1000 })
  await perSecond(WARM_UP_PAGES, () => openOurs(pool, url))
  await delay(REST_MS)
  const beforeMb = pssMb(pid)
  const rate = await perSecond(pages, () => openOurs(pool, url))
  const loadedMb = pssMb(pid)
  await delay(REST_MS)
  const afterMb = pssMb(pid)
  const growth = `${((afterMb / beforeMb - 1) * 100).toFixed(1)} %`
  console.table([{ pages, 'pages/s': Number(rate.toPrecision(3)), beforeMb, loadedMb, afterMb, growth }])
}

/** One visit after the other: from `release` to the moment the next may begin. */
async function freeing(options: BrowserPoolOptions, url: string, visits: number): Promise<object> {
  await using pool = openBrowserPool({ ...options, slots: 1 })
  await openOurs(pool, url)
  const lag = monitorEventLoopDelay({ resolution: 1 })
  const waited: number[] = []
  lag.enable()
  for (let visit = 0; visit < visits; visit++) {
    const page = await pool.visit({ url, browser: {} }, signal)
    const releasedMs = performance.now()
    page.release()
    while (pool.busy > 0) await new Promise((resolve) => setImmediate(resolve))
    waited.push(performance.now() - releasedMs)
  }
  lag.disable()
  const sorted = waited.toSorted((a, b) => a - b)
  const at = (share: number) =>
    Number(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!.toFixed(1))
  const lagP95Ms = Number((lag.percentile(95) / 1e6).toFixed(1))
  return { visits, freeP50Ms: at(0.5), freeP95Ms: at(0.95), freeMaxMs: at(1), lagP95Ms }
}

async function freeingBesideFiles(options: BrowserPoolOptions, url: string, visits: number): Promise<object> {
  const bench = fileURLToPath(new URL('./files.ts', import.meta.url))
  const server = fork(bench, ['--serve', '5'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  try {
    const [site] = (await once(server, 'message')) as [string]
    await using pool = openFilePool({
      entry: fileURLToPath(new URL('../src/app/run/file-process.ts', import.meta.url)),
      orders: {
        ...{ store: join(options.spool, 'store'), spool: join(options.spool, 'parts'), bytesMax: 1e10 },
        ...{ http: HTTP, steps: [] },
      },
      workers: 2,
      findStored: async () => undefined,
    })
    const ended = new AbortController()
    const downloading = (async () => {
      for (let round = 0; !ended.signal.aborted; round++)
        await allOf(Array.from({ length: 100 }, (_, i) => jobFor(`${site}/file-${round}-${i}`)), (job) => pool.run(job, signal)) // biome-ignore format: one line reads better
    })()
    const figures = await freeing(options, url, visits)
    ended.abort()
    await downloading
    return figures
  } finally {
    server.kill()
  }
}

const spool = mkdtempSync(join(tmpdir(), 'sluice-bench-browser-'))
try {
  await using site = await startSite({ products: 200 })
  const options: BrowserPoolOptions = {
    slots: AT_ONCE,
    userAgent: 'SluiceBench/1.0',
    timeoutMs: 60_000,
    connectTimeoutMs: 10_000,
    bodyBytesMax: 16 * 1024 ** 2,
    retryAfterMsMax: 1000,
    allowPrivate: true,
    allowAddresses: [],
    pagesPerBrowserMax: 100_000,
    spool,
    executable: await chromiumForTests(),
  }
  await compare(options, site.url)
  const visits = Number(values.slots)
  if (visits > 0)
    console.table({
      alone: await freeing(options, site.url, visits),
      'beside files': await freeingBesideFiles(options, site.url, visits),
    })
  if (Number(values.pages) > 0) await soak(options, site.url, Number(values.pages))
} finally {
  rmSync(spool, { recursive: true, force: true })
}
