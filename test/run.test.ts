/** Complete runs of the real command against the demo shop. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { booksRun, DETAILS, itemsIn, recordIn, startHeldBooksSite } from './books-run.ts'
import { expectedTotals, startBooksSite, truth } from './site/books.ts'
import { sluice, startSluice, temporaryFolder } from './sluice.ts'

const ORIGINAL_JSONL = [
  'title',
  'price',
  'price_numeric',
  'rating',
  'rating_numeric',
  'availability',
  'image_url',
  'url',
  'scraped_at',
]
const ORIGINAL_CSV = 'title,price,rating,rating_numeric,availability,image_url,url,scraped_at,price_numeric'

test('reads all books from the listing pages, with the original fields first and in their order', async () => {
  await using site = await startBooksSite({ products: 200, delayMs: 10 })
  using folder = temporaryFolder()
  const { code, stdout, stderr } = await sluice(booksRun(site, folder.path))
  assert.equal(code, 0, stderr)
  const items = itemsIn(folder.path)
  assert.equal(items.length, 200)
  assert.deepEqual(Object.keys(items[0]!), ORIGINAL_JSONL)
  const books = new Map([...truth(200)].map((book) => [new URL(book.path, site.url).href, book]))
  for (const item of items) {
    const book = books.get(String(item.url))!
    assert.deepEqual(
      [item.title, item.price, item.price_numeric, item.rating, item.rating_numeric, item.availability, item.image_url],
      [
        book.title,
        book.price,
        book.priceNumeric,
        book.rating,
        book.ratingNumeric,
        'In stock',
        new URL(book.imagePath, site.url).href,
      ],
    )
  }
  assert.ok(readFileSync(join(folder.path, 'books/latest/items.csv'), 'utf8').startsWith(ORIGINAL_CSV))
  assert.match(stdout, /200 new/)
  assert.ok(site.stats().maxInFlight > 1, 'listing pages are fetched side by side')
})

test('reads as many listing pages as --arg pages says', async () => {
  await using site = await startBooksSite({ products: 200 })
  using folder = temporaryFolder()
  const { code, stderr } = await sluice([
    'run',
    'books',
    '--site',
    site.url,
    '--arg',
    'pages=3',
    '--rps',
    '0',
    '--out',
    folder.path,
    '--quiet',
  ])
  assert.equal(code, 0, stderr)
  assert.equal(itemsIn(folder.path).length, 60)
})

test('retries, waits and gives up on the misbehaving pages of the demo shop as documented', async () => {
  await using site = await startBooksSite({ products: 1000, misbehave: true })
  using folder = temporaryFolder()
  const args = booksRun(site, folder.path, ...DETAILS, '--json')
  const { code, stdout, stderr } = await sluice(args)
  assert.equal(code, 0, stderr)
  const record = JSON.parse(stdout)
  const expected = expectedTotals(1000, 50, true)
  assert.equal(record.items.new, expected.items)
  assert.equal(record.pages.dead, expected.notFound + expected.softErrors)
  assert.deepEqual(record, recordIn(folder.path))
  assert.equal(new Set(itemsIn(folder.path).map(({ url }) => url)).size, expected.items)
  assert.deepEqual(record.errors.map((error: { class: string }) => error.class).sort(), ['not-found', 'selector'])
  const errors = readFileSync(join(folder.path, 'books/latest/errors.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const softError = errors.find((error) => error.code === 'E_SELECTOR_EMPTY')
  assert.ok(existsSync(join(folder.path, 'books/latest', softError.snapshot)), 'a snapshot of the page is kept')
})

test('exits with 4 on SIGTERM, hands its tasks back, and continues with --resume', async () => {
  await using site = await startHeldBooksSite({ products: 400, fromRequest: 60 })
  using folder = temporaryFolder()
  const args = booksRun(site, folder.path, ...DETAILS)
  const { child, result } = startSluice(args)
  await until(() => site.stats().requests > 60)
  child.kill('SIGTERM')
  const stopped = await result
  assert.equal(stopped.code, 4, stopped.stderr)
  const record = recordIn(folder.path)
  assert.equal(record.state, 'stopped')
  assert.ok(record.pages.remaining > 0)
  site.letGo()
  const resumed = await sluice([...args, '--resume', '--quiet'])
  assert.equal(resumed.code, 0, resumed.stderr)
  const urls = itemsIn(folder.path).map(({ url }) => url)
  assert.equal(urls.length, 400)
  assert.equal(new Set(urls).size, 400)
})

test('stops a run with exit 4 exactly at the page limit, and continues with --resume and a higher one', async () => {
  await using site = await startBooksSite({ products: 200 })
  using folder = temporaryFolder()
  const args = booksRun(site, folder.path, ...DETAILS, '--quiet')
  assert.equal((await sluice([...args, '--pages', '50'])).code, 4)
  const { pages } = recordIn(folder.path)
  assert.equal(pages.ok, 50)
  assert.equal((await sluice([...args, '--resume', '--pages', '500'])).code, 0)
  assert.equal(itemsIn(folder.path).length, 200)
})

test('several processes share a run, its concurrency and its output', async () => {
  await using site = await startBooksSite({ products: 400, delayMs: 5 })
  using folder = temporaryFolder()
  const args = booksRun(site, folder.path, ...DETAILS, '--concurrency', '8', '--processes', '2', '--quiet')
  const { code, stderr } = await sluice(args)
  assert.equal(code, 0, stderr)
  const urls = itemsIn(folder.path).map(({ url }) => url)
  assert.equal(urls.length, 400)
  assert.equal(new Set(urls).size, 400)
  assert.ok(site.stats().maxInFlight <= 8, `${site.stats().maxInFlight} requests were in flight`)
})

test('rejects a second run in the same folder, without losing anything of the first', async () => {
  await using site = await startHeldBooksSite({ products: 300, fromRequest: 20 })
  using folder = temporaryFolder()
  const args = booksRun(site, folder.path, ...DETAILS, '--quiet')
  const first = startSluice(args)
  await until(() => site.stats().requests > 20)
  const second = await sluice([...args, '--resume'])
  assert.equal(second.code, 2)
  assert.match(second.stderr, /E_RUN_LOCKED/)
  site.letGo()
  assert.equal((await first.result).code, 0)
  assert.equal(itemsIn(folder.path).length, 300)
})

test('obeys robots.txt, counts what it forbids, and fails a run that may fetch nothing', async () => {
  await using site = await startBooksSite({ products: 40, robots: 'User-agent: *\nDisallow: /catalogue/\n' })
  using folder = temporaryFolder()
  const { code, stdout } = await sluice(['run', 'books', '--site', site.url, '--out', folder.path, '--json'])
  assert.equal(code, 1)
  assert.equal(JSON.parse(stdout).errors[0].code, 'E_ROBOTS')
  assert.equal(site.stats().requests, 1, 'only robots.txt was asked for')
})

test('counts and sets aside items that break the schema, and fails the run if there are too many', async () => {
  await using site = await startBooksSite({ products: 40 })
  using folder = temporaryFolder()
  const file = join(folder.path, 'picky.ts')
  writeFileSync(file, scraperText('title: z.string().max(20)'))
  const { code, stdout, stderr } = await sluice(['run', file, '--site', site.url, '--out', folder.path, '--json'])
  assert.equal(code, 1, stderr)
  const { items, reason } = JSON.parse(stdout)
  assert.ok(items.invalid > 0 && items.new > 0)
  assert.match(reason, /items are invalid/)
  const errors = readFileSync(join(folder.path, 'picky/latest/errors.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.equal(errors.length, items.invalid)
  assert.match(errors[0].problems[0], /title/)
  assert.match(errors[0].item, /"title"/)
})

const BAD_INPUT: [what: string, args: (folder: string) => string[], code: number, says: RegExp][] = [
  ['an unknown option', () => ['run', 'books', '--concurency', '4'], 2, /concurrency/],
  ['a value out of bounds', () => ['run', 'books', '--processes', '0'], 2, /processes.*flag --processes/],
  ['a limit that is no number', () => ['run', 'books', '--concurrency', 'many'], 2, /concurrency/],
  ['an unknown scraper', () => ['run', 'boks'], 2, /E_SCRAPER_NOT_FOUND.*\n.*books/],
  [
    'an unknown argument',
    () => ['run', 'books', '--arg', 'colour=red'],
    2,
    /colour: no such argument \(known: site, pages, details\)/,
  ],
  ['a site that is no URL', () => ['run', 'books', '--site', 'not a url'], 2, /site/],
  ['an unknown format', () => ['run', 'books', '--format', 'xls'], 2, /xls.*\n.*known: .*parquet/],
  ['an unknown frontier', () => ['run', 'books', '--frontier', 'mysql://x'], 2, /must be sqlite:/],
  [
    'an output folder that cannot be made',
    () => ['run', 'books', '--out', '/proc/nowhere'],
    2,
    /E_OUTPUT.*\/proc\/nowhere/,
  ],
  ['nothing to resume', (folder) => ['run', 'books', '--resume', '--out', folder], 2, /no unfinished run/],
  ['a scraper that does not compile', (folder) => ['run', join(folder, 'broken.ts')], 2, /E_DEFINITION.*broken\.ts/],
  [
    'an enqueue() in start() that fails and is not awaited',
    (folder) => ['run', join(folder, 'hasty.ts'), '--out', folder],
    2,
    /E_DEFINITION.*start\(\) of "picky" failed: not a URL: "nowhere"/,
  ],
  ['a file without a scraper', (folder) => ['run', join(folder, 'empty.ts')], 2, /no scraper as its default export/],
  [
    'an address nobody listens on',
    (folder) => ['run', 'books', '--site', 'http://127.0.0.1:9/', '--out', folder, '--retries', '0'],
    1,
    /E_CONNECTION/,
  ],
]

for (const [what, args, code, says] of BAD_INPUT) {
  test(`${what} is a clear error with exit ${code}`, async () => {
    using folder = temporaryFolder()
    mkdirSync(folder.path, { recursive: true })
    writeFileSync(join(folder.path, 'broken.ts'), 'export default defineScraper({ name: \n')
    writeFileSync(join(folder.path, 'empty.ts'), 'export const nothing = 1\n')
    writeFileSync(
      join(folder.path, 'hasty.ts'),
      scraperText('')
        .replace(/^ {2}args.*\n/m, '')
        .replace(/start:.*/, "start: ({ enqueue }) => void enqueue('listing', 'nowhere'),"),
    )
    const { code: actual, stdout, stderr } = await sluice(args(folder.path))
    assert.equal(actual, code, stdout + stderr)
    assert.match(stdout + stderr, says)
    assert.doesNotMatch(stderr, /\n\s+at .*node:internal/, 'no stack without -v')
  })
}

/** A scraper for the demo shop's listings with the test's own schema. */
function scraperText(fields: string): string {
  return `
import { defineScraper } from 'sluice'
import * as z from 'zod'
export default defineScraper({
  name: 'picky',
  args: z.object({ site: z.url() }),
  item: z.object({ ${fields} }),
  routes: { listing: { match: '/catalogue/page-:page.html' } },
  start: ({ args, enqueue }) => enqueue('listing', new URL('/catalogue/page-1.html', args.site)),
  handlers: {
    async listing({ $, emit }) {
      for (const pod of $.all('article.product_pod')) await emit({ title: pod.attr('h3 > a', 'title') })
    },
  },
})
`
}

/** Waits for an event of another process, within reason. */
async function until(isSo: () => boolean): Promise<void> {
  const deadlineMs = Date.now() + 20_000
  while (!isSo()) {
    assert.ok(Date.now() < deadlineMs, 'it never happened')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
