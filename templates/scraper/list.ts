/** __NAME__: describe in one sentence what it collects. */
import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: '__NAME__',
  description: 'Pages of __HOST__',
  args: z.object({ site: z.url().default('__SITE__') }),
  item: z.object({
    url: z.url(),
    title: z.string().min(1),
    description: z.string().optional(), //? description
    price: z.number().optional(), //? price
  }),
  key: 'url',
  routes: {
    list: __LIST__,
    page: __PAGE__,
  },
  start: ({ args, enqueue }) => enqueue('list', args.site),
  handlers: {
    async list({ enqueue }) {
      // List pages first: a URL is read by only one route, the one whose `match` accepts it, else the first it is enqueued for. //? next
      await enqueue.links('list', '__NEXT__') //? next
      await enqueue.links('page', '__LINKS__')
    },
    async page({ $, url, emit }) {
      await emit({
        url: url.href,
        title: $.text('__TITLE__'),
        description: $.attr('__DESCRIPTION__', 'content', { optional: true }), //? description
        price: $.number('__PRICE__', { optional: true }), //? price
      })
    },
  },
  // Keep these low while you test; raise them once the items are right.
  limits: { pages: 100, perHost: { rps: 5 } },
  expect: { items: { min: 1 }, filled: { title: 1 } },
})
