/** The scraper of the README: `bin/sluice run docs/examples/shop.ts --site http://127.0.0.1:4100/`. */
import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: 'shop',
  args: z.object({ site: z.url() }),
  item: z.object({ title: z.string(), price: z.number(), url: z.url() }),
  key: 'url',
  routes: { listing: {} },
  start: ({ args, enqueue }) => enqueue('listing', args.site),
  handlers: {
    async listing({ $, emit, enqueue }) {
      for (const book of $.all('article.product_pod')) {
        const link = { title: book.attr('h3 a', 'title'), url: book.attr('h3 a', 'href') }
        await emit({ ...link, price: book.number('.price_color') })
      }
      await enqueue.links('listing', 'li.next a')
    },
  },
})
