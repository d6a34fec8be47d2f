/** An example: books from a shop's listings. Change the site, the fields and the selectors to yours. */
import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: 'example',
  description: 'Title, price and address of every book in a shop',
  args: z.object({ site: z.url().default('https://books.toscrape.com/') }),
  item: z.object({ title: z.string().min(1), price: z.number(), url: z.url() }),
  key: 'url',
  routes: { listing: {} },
  start: ({ args, enqueue }) => enqueue('listing', args.site),
  handlers: {
    async listing({ $, enqueue, emit }) {
      for (const book of $.all('article.product_pod')) {
        const link = { title: book.attr('h3 a', 'title'), url: book.attr('h3 a', 'href') }
        await emit({ ...link, price: book.number('.price_color') })
      }
      await enqueue.links('listing', 'li.next a')
    },
  },
  limits: { perHost: { rps: 5 } },
  expect: { items: { min: 1 }, filled: { title: 1, price: 1 } },
})
