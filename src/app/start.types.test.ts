/** Wrong uses of `start` and `replay` that the compiler must reject. `tsc` fails when one of these lines starts to compile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as z from 'zod'
import { defineScraper, type Scraper } from '../core/scraper.ts'
import type { Sink } from '../sinks/contract.ts'
import { start } from './start.ts'
import { replay } from './tools/replay.ts'

const shop = defineScraper({
  name: 'shop',
  args: z.object({ site: z.url(), pages: z.number().default(1) }),
  item: z.object({ title: z.string(), price: z.number() }),
  routes: { page: {} },
  start() {},
  handlers: { page() {} },
})

const item = z.object({ id: z.string() })

// Never called; only the compiler reads it.
async function wrongPrograms(sink: Sink<{ title: string; price: number }>, other: Sink<{ upc: string }>) {
  const own: Scraper = shop
  await start(own, { args: { anything: 1 } })
  await start(shop, {
    args: { site: 'http://127.0.0.1/' },
    rps: 2,
    perHost: '4',
    wait: true,
    cache: '1h',
    sinks: [sink],
  })
  await start(shop, {
    proxies: ['http://127.0.0.1:8080'],
    sites: { 'a.example': { delay: '2s-6s' } },
    allowPrivate: true,
  })
  // @ts-expect-error no such argument
  await start(shop, { args: { sitte: 42 } })
  // @ts-expect-error site is missing
  await start(shop, { args: { pages: 3 } })
  // @ts-expect-error a rate is a number
  await start(shop, { rps: 'fast' })
  // @ts-expect-error respect or ignore
  await start(shop, { robots: 'maybe' })
  // @ts-expect-error no such option
  await start(shop, { concurency: 4 })
  // @ts-expect-error no such setting of a site
  await start(shop, { sites: { 'a.example': { rsp: 4 } } })
  // @ts-expect-error a sink of other items
  await start(shop, { sinks: [other] })
  const [page] = await replay(shop, 'pages')
  const price: number | undefined = page?.emitted[0]?.price
  // @ts-expect-error no such field
  page?.emitted[0]?.upc
  const bare = defineScraper({ name: 'bare', item, routes: { a: {} }, start() {}, handlers: { a() {} } })
  await start(bare, {})
  // @ts-expect-error it takes no arguments
  await start(bare, { args: { site: 'x' } })
  return price
}
test('rejects wrong arguments, options, sinks and fields at compile time', () => {
  assert.equal(typeof wrongPrograms, 'function')
})
