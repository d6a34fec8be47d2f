/** Opens every hostile page in a browser and reads the result. */
import { readFileSync } from 'node:fs'
import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: 'hostile-browser',
  args: z.object({ list: z.string() }),
  item: z.object({ url: z.string(), text: z.string() }),
  key: 'url',
  routes: { page: { match: '/*', fetch: 'browser' } },
  async start({ args, enqueue }) {
    for (const url of JSON.parse(readFileSync(args.list, 'utf8')) as string[]) await enqueue('page', url)
  },
  handlers: {
    async page({ $, url, emit }) {
      await emit({ url: url.href, text: $.text().slice(0, 100) })
    },
  },
})
