/** A paged JSON API: each response is checked against a schema and links to the next one. */
import { defineScraper } from 'sluice'
import * as z from 'zod'

const Answer = z.object({
  books: z.array(z.object({ id: z.number(), title: z.string(), price: z.number(), inStock: z.number() })),
  nextPage: z.number().nullable(),
})

export default defineScraper({
  name: 'books-api',
  description: 'Every book of a shop’s JSON API',
  args: z.object({ site: z.url().default('http://127.0.0.1:4180/') }),
  item: z.object({ id: z.number(), title: z.string().min(1), price: z.number(), stock: z.number() }),
  key: 'id',
  routes: { books: { match: '/api/books' } },
  start: ({ args, enqueue }) => enqueue('books', new URL('api/books?page=1', args.site)),
  handlers: {
    async books({ json, url, emit, enqueue }) {
      const { books, nextPage } = Answer.parse(json())
      for (const { id, title, price, inStock } of books) await emit({ id, title, price, stock: inStock })
      if (nextPage !== null) await enqueue('books', new URL(`?page=${nextPage}`, url))
    },
  },
  limits: { perHost: { rps: 20 } },
  expect: { items: { min: 1 }, filled: { title: 1, price: 1 } },
})
