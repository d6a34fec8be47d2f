/** The book catalogue of books.toscrape.com: every book once, from the listing pages or, with `details`, from its own page. */
import { csv, defineScraper, jsonl } from 'sluice'
import * as z from 'zod'

const RATINGS = ['One', 'Two', 'Three', 'Four', 'Five']

const Book = z.object({
  title: z.string().min(1),
  price: z.string(),
  price_numeric: z.number().nonnegative(),
  rating: z.enum(RATINGS),
  rating_numeric: z.int().min(1).max(5),
  availability: z.string(),
  image_url: z.url(),
  url: z.url(),
  scraped_at: z.iso.datetime(),
  upc: z.string().optional(),
  stock: z.int().optional(),
  category: z.string().optional(),
  description: z.string().optional(),
})

export default defineScraper({
  name: 'books',
  description: 'Books with price, rating and stock, from a catalogue built like books.toscrape.com',
  args: z.object({
    site: z.url().default('https://books.toscrape.com/'),
    /** Maximum number of listing pages to read. */
    pages: z.number().int().positive().default(Number.MAX_SAFE_INTEGER),
    /** Visit each book's own page, for upc, stock, category and description. */
    details: z.boolean().default(false),
  }),
  item: Book,
  key: 'url',
  routes: {
    listing: { match: '/catalogue/page-:page.html', priority: 1 },
    book: { match: '/catalogue/:slug/index.html' },
  },
  start: ({ args, enqueue }) => enqueue('listing', new URL('catalogue/page-1.html', args.site)),
  handlers: {
    async listing({ $, params, args, url, fetchedAt, enqueue, emit }) {
      if (params.page === '1') {
        // "Page 1 of 50" reveals all pages at once, so they are fetched concurrently instead of one after the other.
        const pages = Math.min(
          args.pages,
          Number(/of (\d+)/.exec($.text('li.current', { optional: true }) ?? '')?.[1] ?? 1),
        )
        await enqueue(
          'listing',
          Array.from({ length: pages - 1 }, (_, i) => new URL(`page-${i + 2}.html`, url)),
        )
      }
      if (args.details) {
        await enqueue.links('book', 'article.product_pod h3 > a')
        return
      }
      for (const pod of $.all('article.product_pod')) {
        await emit({
          title: pod.attr('h3 > a', 'title'),
          price: pod.text('p.price_color'),
          price_numeric: pod.number('p.price_color'),
          ...ratingOf(pod.attr('p.star-rating', 'class')),
          availability: pod.text('p.availability'),
          image_url: pod.attr('img', 'src'),
          url: bookUrl(pod.attr('h3 > a', 'href')),
          scraped_at: fetchedAt.toISOString(),
        })
      }
    },
    async book({ $, url, fetchedAt, emit }) {
      const facts = new Map($.all('table.table-striped tr').map((row) => [row.text('th'), row.text('td')]))
      const availability = $.text('.product_main p.availability')
      await emit({
        title: $.text('.product_main h1'),
        price: $.text('.product_main p.price_color'),
        price_numeric: $.number('.product_main p.price_color'),
        ...ratingOf($.attr('.product_main p.star-rating', 'class')),
        availability,
        image_url: $.attr('#product_gallery img', 'src'),
        url: url.href,
        scraped_at: fetchedAt.toISOString(),
        upc: facts.get('UPC'),
        stock: Number(/\((\d+) available\)/.exec(availability)?.[1] ?? 0),
        category: $.all('ul.breadcrumb li').at(2)?.text(),
        description: $.text('#product_description + p', { optional: true }),
      })
    },
  },
  sinks: [
    jsonl(),
    csv({
      columns: [
        'title',
        'price',
        'rating',
        'rating_numeric',
        'availability',
        'image_url',
        'url',
        'scraped_at',
        'price_numeric',
        'upc',
        'stock',
        'category',
        'description',
      ],
    }),
  ],
  // The first page links to all others: a catalogue of a million books has 50,000.
  limits: { concurrency: 16, perHost: { concurrency: 16, rps: 20 }, linksMax: 1_000_000 },
  expect: { items: { min: 1 }, filled: { title: 1, price: 1, rating: 1 } },
})

/** A book has one URL, however a listing spells its link. */
function bookUrl(href: string): string {
  return href.replace(/[?#].*$/, '')
}

/** The rating is a class beside `star-rating`. */
function ratingOf(className: string) {
  const rating = className.split(/\s+/).find((name) => RATINGS.includes(name)) ?? 'none'
  return { rating, rating_numeric: RATINGS.indexOf(rating) + 1 }
}
