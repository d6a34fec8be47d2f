/** Reads every hostile page the way a careless scraper would: all of `$`, every link, the whole text. */
import { readFileSync } from 'node:fs'
import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: 'hostile',
  args: z.object({ list: z.string() }),
  item: z.object({ asked: z.string(), text: z.string(), links: z.number() }),
  key: 'asked',
  routes: { page: { data: z.object({ asked: z.string() }) } },
  async start({ args, enqueue }) {
    const pages = JSON.parse(readFileSync(args.list, 'utf8')) as { route: 'page'; url: string }[]
    for (const { route, url } of pages) await enqueue(route, { url, data: { asked: url } })
  },
  handlers: {
    async page({ $, data, emit, enqueue }) {
      const text = $.text()
      $.jsonLd()
      $.exists('.a .b > .c')
      await enqueue.links('page', 'a.next', ({ href }) => ({ asked: href }))
      await emit({ asked: data.asked, text: text.slice(0, 100), links: $.all('a[href]').length })
    },
  },
})
