/**
 * Items per second through the pipeline in one thread: bounded channel of 512, batches of 64, dedup over the last 100,000 keys
 * (by 128-bit fingerprints, see `LruSet`), 5 % duplicates, everything drained and counted.
 *
 *   node bench/pipeline.ts [--items 3000000] [--workers 4,8,16] [--json]
 *
 * (a) `memory`: the writer only counts. (b) `files`: the writer is the real CSV and JSONL sinks, flushed to disk, and the files
 * are counted afterwards. Every variant runs in its own process, so that none warms up or fills the heap of another.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { getHeapStatistics } from 'node:v8'
import type { LoggedItem } from '../src/core/item.ts'
import { LruSet } from '../src/core/lru-set.ts'
import { type BatchOptions, writeBatches } from '../src/crawl/batch.ts'
import { Channel } from '../src/crawl/channel.ts'
import { createCsvSink } from '../src/sinks/csv.ts'
import { createJsonlSink } from '../src/sinks/jsonl.ts'

const CAPACITY = 512
const BATCH = 64
const SEEN = 100_000
/** Every 20th item repeats the one 10 before it. */
const DUPLICATE_EVERY = 20

const FIELDS = 'title,price,price_numeric,rating,rating_numeric,availability,image_url,url,scraped_at'.split(',')

interface Book {
  title: string
  price: string
  price_numeric: number
  rating: string
  rating_numeric: number
  availability: string
  image_url: string
  url: string
  scraped_at: string
}

interface Figures {
  variant: 'memory' | 'files'
  workers: number
  items: number
  itemsPerSecond: number
  itemsPerCpuSecond: number
  bytesPerItem: number
  rssPeakMb: number
  unique: number
  duplicates: number
  filesBytes?: number
  isVerified: boolean
}

/** Only the URL differs between items: this measures the pipeline, not the formatting of numbers. */
function book(i: number): Book {
  const id = i % DUPLICATE_EVERY === DUPLICATE_EVERY - 1 ? i - 10 : i
  const kind = id & 15
  return {
    title: TITLES[kind]!,
    price: PRICES[kind]!,
    price_numeric: AMOUNTS[kind]!,
    rating: 'Three',
    rating_numeric: 3,
    availability: 'In stock',
    image_url: IMAGES[kind]!,
    url: `https://books.example/catalogue/book_${id}/index.html`,
    scraped_at: '2026-01-31T12:00:00.000Z',
  }
}

/** As on the real site: commas and colons are common, typographic apostrophes or quotation marks are not. */
const TITLES = [
  'A Light in the Attic',
  'Tipping the Velvet',
  'Soumission',
  'Sharp Objects',
  'Sapiens: A Brief History of Humankind',
  'The Requiem Red',
  'The Dirty Little Secrets of Getting Your Dream Job',
  'The Coming Woman: A Novel Based on the Life of the Infamous Feminist, Victoria Woodhull',
  'The Boys in the Boat: Nine Americans and Their Epic Quest for Gold at the 1936 Berlin Olympics',
  'The Black Maria',
  'Starving Hearts (Triangular Trade Trilogy, #1)',
  'Shakespeare’s Sonnets',
  'Set Me Free',
  "Scott Pilgrim's Precious Little Life (Scott Pilgrim #1)",
  'Rip it Up and "Start" Again',
  'Our Band Could Be Your Life: Scenes from the American Indie Underground, 1981-1991',
]
const AMOUNTS = TITLES.map((_, i) => (1_777 + i * 231) / 100)
const PRICES = AMOUNTS.map((amount) => `£${amount}`)
const IMAGES = TITLES.map((_, i) => `https://books.example/media/cache/2c/da/2cdad67c44b002e7ead0cc35693c0e8b${i}.jpg`)

async function measure(variant: Figures['variant'], workers: number, items: number): Promise<Figures> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'))
  try {
    await (variant === 'memory' ? inMemory(workers, 200_000) : toFiles(workers, 100_000, folder)) // warm up the JIT
    globalThis.gc?.()
    const startMs = performance.now()
    const cpu = process.cpuUsage()
    sampleHeap()
    allocatedBytes = 0
    const counts = await (variant === 'memory' ? inMemory(workers, items) : toFiles(workers, items, folder))
    const ms = performance.now() - startMs
    const { user, system } = process.cpuUsage(cpu)
    const repeats = Math.floor(items / DUPLICATE_EVERY)
    const inFiles = variant === 'files' ? await countFiles(folder, counts.unique) : undefined
    return {
      variant,
      workers,
      items,
      itemsPerSecond: Math.round((items / ms) * 1000),
      itemsPerCpuSecond: Math.round((items / (user + system)) * 1e6),
      bytesPerItem: Math.round(allocatedBytes / items),
      rssPeakMb: Math.round(process.resourceUsage().maxRSS / 1024),
      ...counts,
      ...(inFiles === undefined ? {} : { filesBytes: inFiles.bytes }),
      isVerified:
        counts.duplicates === repeats &&
        counts.unique === items - repeats &&
        (inFiles === undefined || inFiles.isRight),
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}

interface Counts {
  unique: number
  duplicates: number
}

/** The path of every item: channel → dedup → write, with a producer that waits when the channel is full. */
async function carry(
  workers: number,
  items: number,
  write: (batch: Book[]) => undefined | Promise<void>,
): Promise<Counts> {
  const channel = new Channel<Book>(CAPACITY)
  const seen = new LruSet(SEEN)
  const keys: string[] = []
  const isNew = new Uint8Array(BATCH)
  let unique = 0
  let duplicates = 0
  const options: BatchOptions<Book> = {
    channel,
    batchMax: BATCH,
    write: (batch) => {
      const count = batch.length
      keys.length = 0
      for (let n = 0; n < count; n++) keys.push(batch[n]!.url)
      const fresh = seen.addBatch(keys, isNew)
      if (fresh < count) {
        duplicates += count - fresh
        let kept = 0
        for (let n = 0; n < count; n++) if (isNew[n] === 1) batch[kept++] = batch[n]!
        batch.length = kept
      }
      unique += fresh
      return write(batch)
    },
  }
  const written = Promise.all(Array.from({ length: workers }, () => writeBatches(options)))
  for (let i = 0; i < items; i++) {
    const waiting = channel.push(book(i))
    if (waiting !== undefined) await waiting
    if ((i & 4095) === 0) sampleHeap()
  }
  channel.close()
  await written
  return { unique, duplicates }
}

async function inMemory(workers: number, items: number): Promise<Counts> {
  let counted = 0
  const counts = await carry(workers, items, (batch) => {
    counted += batch.length
    return undefined
  })
  if (counted !== counts.unique) throw new Error(`the writer saw ${counted} of ${counts.unique} items`)
  return counts
}

async function toFiles(workers: number, items: number, folder: string): Promise<Counts> {
  await using csv = createCsvSink({ path: join(folder, 'items.csv'), columns: FIELDS })
  await using jsonl = createJsonlSink({ path: join(folder, 'items.jsonl') })
  await csv.open(undefined)
  await jsonl.open(undefined)
  let seq = 0
  const counts = await carry(workers, items, (batch) => {
    const rows = batch.map(
      (item): LoggedItem => ({ seq: ++seq, key: item.url, json: JSON.stringify(item), value: item }),
    )
    const one = csv.writeNow(rows)
    const two = jsonl.writeNow(rows)
    if (one === undefined) return two
    return two === undefined ? one : one.then(() => two)
  })
  await csv.finish()
  await jsonl.finish()
  return counts
}

/** Reads the files back: as many lines as items, plus the header, and each file ends with a complete line. */
async function countFiles(folder: string, rows: number): Promise<{ bytes: number; isRight: boolean }> {
  const csv = await countLines(join(folder, 'items.csv'))
  const jsonl = await countLines(join(folder, 'items.jsonl'))
  return { bytes: csv.bytes + jsonl.bytes, isRight: csv.lines === rows + 1 && jsonl.lines === rows }
}

async function countLines(path: string): Promise<{ bytes: number; lines: number }> {
  let bytes = 0
  let lines = 0
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    bytes += chunk.length
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines++
  }
  return { bytes, lines }
}

/** Bytes the heap grew by between samples, ignoring collections: close to what `go test -benchmem` counts. */
let allocatedBytes = 0
let heapBytes = 0
function sampleHeap(): void {
  const { used_heap_size } = getHeapStatistics()
  if (used_heap_size > heapBytes) allocatedBytes += used_heap_size - heapBytes
  heapBytes = used_heap_size
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      items: { type: 'string', default: '3000000' },
      workers: { type: 'string', default: '4,8,16' },
      json: { type: 'boolean', default: false },
    },
  })
  const figures: Figures[] = []
  for (const variant of ['memory', 'files'] as const) {
    for (const workers of values.workers.split(',').map(Number)) {
      const child = fork(import.meta.filename, [variant, String(workers), values.items], { execArgv: ['--expose-gc'] })
      const [result] = (await once(child, 'message')) as [Figures]
      figures.push(result)
      if (!values.json) print(result)
    }
  }
  if (values.json) console.log(JSON.stringify({ node: process.version, figures }, null, 2))
  if (figures.some((figure) => !figure.isVerified)) process.exitCode = 1
}

function print(figures: Figures): void {
  const million = (n: number) => `${(n / 1e6).toFixed(2)} M`
  console.log(
    `${figures.variant.padEnd(6)} ${String(figures.workers).padStart(2)} workers  ${million(figures.itemsPerSecond)} items/s  ` +
      `${million(figures.itemsPerCpuSecond)} per CPU-s  ${figures.bytesPerItem} B/item  ${figures.rssPeakMb} MB RSS  ` +
      `${figures.unique} unique + ${figures.duplicates} duplicates ${figures.isVerified ? 'verified' : 'WRONG'}`,
  )
}

if (process.send === undefined) await main()
else {
  const [variant, workers, items] = process.argv.slice(2)
  process.send(await measure(variant as Figures['variant'], Number(workers), Number(items)))
  process.disconnect()
}
