/** A user's own scraper, mounted into the stack: pages that link to files, for the file worker. */
import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: 'gallery',
  item: z.object({ url: z.url() }),
  args: z.object({ site: z.url(), pages: z.int().positive() }),
  routes: { page: {} },
  start: ({ args, enqueue }) =>
    enqueue(
      'page',
      Array.from({ length: args.pages }, (_, i) => new URL(`/page/${i}`, args.site)),
    ),
  handlers: {
    async page({ $, url, emit, file }) {
      await emit({ url: url.href })
      for (const link of $.all('a')) await file(link.ownAttr('href')!)
    },
  },
})
