/** Any page of any site: the fields that every page has. For lists of URLs without a scraper of their own. */
import { defineScraper, jsonl } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: 'pages',
  description: 'Any page: status, title, description and size',
  item: z.object({
    url: z.url(),
    status: z.int(),
    title: z.string().optional(),
    description: z.string().optional(),
    fetched_at: z.iso.datetime(),
  }),
  key: 'url',
  routes: { page: {} },
  start() {}, // its URLs come from `sluice produce`, or `sluice start --urls-file`
  handlers: {
    page: ({ $, url, status, fetchedAt, emit }) =>
      emit({
        url: url.href,
        status,
        title: $.text('title', { optional: true }),
        description: $.attr('meta[name=description]', 'content', { optional: true }),
        fetched_at: fetchedAt.toISOString(),
      }),
  },
  sinks: [jsonl()],
  limits: { hosts: 'any' },
  mode: 'distributed',
})
