/** __NAME__: describe in one sentence what it collects. */
import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: '__NAME__',
  description: 'One page of __HOST__',
  args: z.object({ site: z.url().default('__SITE__') }),
  item: z.object({
    url: z.url(),
    title: z.string().min(1),
    description: z.string().optional(), //? description
    price: z.number().optional(), //? price
  }),
  key: 'url',
  routes: { page: {} },
  start: ({ args, enqueue }) => enqueue('page', args.site),
  handlers: {
    async page({ $, url, emit }) {
      await emit({
        url: url.href,
        title: $.text('__TITLE__'),
        description: $.attr('__DESCRIPTION__', 'content', { optional: true }), //? description
        price: $.number('__PRICE__', { optional: true }), //? price
      })
    },
  },
  expect: { items: { min: 1 }, filled: { title: 1 } },
})
