/** The books scraper on its saved pages: it reads them as recorded, and what was recorded matches the demo shop. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { replay } from '../../src/app/tools/replay.ts'
import { type Book, bookOf, PAGE_SIZE, type Pod, podOf } from '../../test/site/books.ts'
import books from './books.ts'

const FOLDER = fileURLToPath(new URL('./pages', import.meta.url))

interface Recorded {
  url: string
  route: string
  fetchedAt: string
  args: { site: string; details: boolean }
  items: Record<string, unknown>[]
  links: { route: string; url: string }[]
}
const recorded = readFileSync(`${FOLDER}/pages.jsonl`, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Recorded)

const numberIn = (url: string, pattern: RegExp) => Number(pattern.exec(url)?.[1])
const idsOf = (page: number) => Array.from({ length: PAGE_SIZE }, (_, i) => (page - 1) * PAGE_SIZE + i + 1)

/** The part of a book that a listing shows. */
function listed(pod: Pod, { args, fetchedAt }: Recorded) {
  return {
    title: pod.title,
    price: pod.price,
    price_numeric: pod.priceNumeric,
    rating: pod.rating,
    rating_numeric: pod.ratingNumeric,
    availability: pod.availability,
    image_url: new URL(pod.imagePath, args.site).href,
    url: new URL(pod.path, args.site).href,
    scraped_at: fetchedAt,
  }
}

function detailed(book: Book, page: Recorded) {
  return {
    ...listed(book, page),
    availability: `In stock (${book.stock} available)`,
    upc: book.upc,
    stock: book.stock,
    category: book.category,
    ...(book.description === null ? {} : { description: book.description }),
  }
}

test('reads every saved page as it was recorded', async () => {
  const pages = await replay(books, FOLDER)
  assert.deepEqual(
    pages.flatMap(({ url, problems }) => problems.map((problem) => `${url}: ${problem}`)),
    [],
  )
  assert.deepEqual(pages.map(({ route }) => route).sort(), [
    'book',
    'book',
    'book',
    'book',
    'listing',
    'listing',
    'listing',
  ])
})

test('listings yield every book they show, with all fields correct', () => {
  for (const page of recorded.filter(({ route, args }) => route === 'listing' && !args.details)) {
    const number = numberIn(page.url, /page-(\d+)/)
    assert.deepEqual(
      page.items,
      idsOf(number).map((id) => listed(podOf(id), page)),
    )
  }
})

test('listings lead to every book with details, and from the first page to all others', () => {
  const [first] = recorded.filter(({ route, args }) => route === 'listing' && args.details)
  assert.deepEqual(
    first!.links.filter(({ route }) => route === 'book').map(({ url }) => url),
    idsOf(1).map((id) => new URL(podOf(id).path, first!.args.site).href),
  )
  const plain = recorded.find(({ url, args }) => url.endsWith('/page-1.html') && !args.details)
  assert.equal(plain!.links.length, 49)
})

test('product pages yield the whole book, even without a description', () => {
  const pages = recorded.filter(({ route }) => route === 'book')
  for (const page of pages) assert.deepEqual(page.items, [detailed(bookOf(numberIn(page.url, /_(\d+)\/index/)), page)])
  assert.ok(pages.some(({ items }) => !('description' in items[0]!)))
})
