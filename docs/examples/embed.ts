/** A run inside another program: `node docs/examples/embed.ts http://127.0.0.1:4100/`. */
import { defineScraper, start } from 'sluice'
import * as z from 'zod'

const prices = defineScraper({
  name: 'prices',
  args: z.object({ site: z.url() }),
  item: z.object({ title: z.string(), price: z.number() }),
  key: 'title',
  routes: { listing: {} },
  start: ({ args, enqueue }) => enqueue('listing', args.site),
  handlers: {
    async listing({ $, emit, enqueue }) {
      for (const book of $.all('article.product_pod')) {
        await emit({ title: book.attr('h3 a', 'title'), price: book.number('.price_color') })
      }
      await enqueue.links('listing', 'li.next a')
    },
  },
})

const [site = 'http://127.0.0.1:4100/', out = 'runs'] = process.argv.slice(2)
// Options have the names of the flags: `rps` is `--rps`, `perHost` is `--per-host`.
const run = await start(prices, { args: { site }, rps: 0, out, format: 'jsonl' })

for await (const event of run.events) {
  if (event.type === 'page') console.log(`${event.outcome} ${event.url}`)
}

const record = await run.result
console.log(`${record.state}: ${record.items.new} items in ${record.outputs[0]?.target}`)
process.exitCode = record.exitCode ?? 1
