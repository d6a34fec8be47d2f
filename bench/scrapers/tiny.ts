/** The trivial handler of the fleet benchmark: one item with the page's own URL. */
import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: 'tiny',
  item: z.object({ url: z.string() }),
  key: 'url',
  routes: { page: { match: '/p/:n' } },
  start() {},
  handlers: { page: ({ url, emit }) => emit({ url: url.href }) },
  limits: { concurrency: 32, perHost: { concurrency: 32, rps: 0 }, robots: 'ignore' },
  mode: 'distributed',
})
