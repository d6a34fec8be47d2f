/** Promise 4: a slow sink slows the crawl instead of filling memory. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import books from '../../scrapers/books/books.ts'
import type { LoggedItem, Sink } from '../../src/index.ts'
import { start } from '../../src/index.ts'
import { startBooksSite } from '../site/books.ts'
import { temporaryFolder } from '../sluice.ts'

const PRODUCTS = 10_000

test('stops the crawl while a sink is stalled, and continues with it, with every item', async () => {
  await using site = await startBooksSite({ products: PRODUCTS })
  using folder = temporaryFolder()
  const sink = new GatedSink()
  const run = await start(books, {
    args: { site: site.url, details: true },
    rps: 0,
    concurrency: 32,
    out: folder.path,
    sinks: [sink],
  })
  // The log may hold 5,000 items, the channel 512 pages, and some are in flight; then everything must stand still.
  await standsStill(() => site.stats().requests)
  const { requests } = site.stats()
  assert.ok(requests < 8_000, `${requests} pages were fetched although no item was taken`)
  assert.equal(sink.written, 0)
  sink.letThrough()
  const record = await run.result
  assert.equal(record.state, 'finished')
  assert.equal(sink.written, PRODUCTS)
})

/** Accepts nothing until its gate is opened. */
class GatedSink implements Sink {
  readonly name = 'gated'
  written = 0
  readonly #gate = Promise.withResolvers<void>()

  letThrough(): void {
    this.#gate.resolve()
  }

  async open(): Promise<void> {}

  async write(items: readonly LoggedItem[]): Promise<void> {
    await this.#gate.promise
    this.written += items.length
  }

  async flush(): Promise<string> {
    return String(this.written)
  }

  async finish() {
    return { target: 'memory', rows: this.written, bytes: 0 }
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Waits until a growing number has not grown for a second. */
async function standsStill(read: () => number): Promise<void> {
  let last = 0
  let unchangedMs = 0
  while (unchangedMs < 1000 || last === 0) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    unchangedMs = read() === last ? unchangedMs + 50 : 0
    last = read()
  }
}
