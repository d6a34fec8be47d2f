/** A list and the pages it links to, shared by any number of workers. */
import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: 'shop',
  description: 'Title, price and stock of every book in a shop',
  args: z.object({ site: z.url().default('http://127.0.0.1:4180/') }),
  item: z.object({ url: z.url(), title: z.string().min(1), price: z.number(), stock: z.number().optional() }),
  key: 'url',
  routes: {
    list: {},
    book: { match: '/book/:id' },
  },
  start: ({ args, enqueue }) => enqueue('list', args.site),
  handlers: {
    async list({ enqueue }) {
      await enqueue.links('book', 'li.book a')
      await enqueue.links('list', 'a.next')
    },
    async book({ $, url, emit }) {
      await emit({
        url: url.href,
        title: $.text('h1'),
        price: $.number('.price'),
        stock: $.number('.stock', { optional: true }),
      })
    },
  },
  mode: 'distributed',
  limits: { perHost: { rps: 20 } },
  expect: { items: { min: 1 }, filled: { title: 1, price: 1 } },
})
