/** Downloads every file of a list. */
import { readFileSync } from 'node:fs'
import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: 'hostile-files',
  args: z.object({ base: z.url(), list: z.string() }),
  item: z.object({ count: z.number() }),
  key: 'count',
  routes: { page: { match: '/' } },
  start: ({ args, enqueue }) => enqueue('page', args.base),
  handlers: {
    async page({ args, emit, file }) {
      const urls = JSON.parse(readFileSync(args.list, 'utf8')) as string[]
      for (const url of urls) await file(url)
      await emit({ count: urls.length })
    },
  },
})
