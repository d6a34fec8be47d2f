/** A page rendered by a script: fetched in a browser, which waits until the books are there. */
import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: 'drawn',
  description: 'Books of a page that is empty until its script has run',
  args: z.object({ site: z.url().default('http://127.0.0.1:4180/') }),
  item: z.object({ id: z.string().min(1), title: z.string().min(1), price: z.number() }),
  key: 'id',
  routes: { books: { match: '/app', fetch: 'browser' } },
  start: ({ args, enqueue }) => enqueue('books', new URL('app', args.site)),
  handlers: {
    async books({ page, render, emit }) {
      await page.waitForSelector('li.book')
      const $ = await render()
      for (const book of $.all('li.book'))
        await emit({ id: book.ownAttr('data-id') ?? '', title: book.text('b'), price: book.number('span') })
    },
  },
  limits: { perHost: { rps: 5 } },
  expect: { items: { min: 1 }, filled: { title: 1, price: 1 } },
})
