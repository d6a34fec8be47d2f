/** The scraper of `patchy-site.test.ts`: one item from each page that responds, with few, quick tries. */
import * as z from 'zod'
import { defineScraper } from '../../src/index.ts'

export const PAGES = 300

export default defineScraper({
  name: 'patchy',
  args: z.object({ base: z.url() }),
  item: z.object({ path: z.string() }),
  key: 'path',
  limits: { backoff: 10, retries: 1 },
  routes: { page: { match: '/page/:n' } },
  start: async ({ args, enqueue }) => {
    for (let n = 0; n < PAGES; n++) await enqueue('page', new URL(`/page/${n}`, args.base))
  },
  handlers: { page: ({ url, emit }) => emit({ path: url.pathname }) },
})
