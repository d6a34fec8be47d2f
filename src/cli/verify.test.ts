/** test and check: a scraper against its saved pages, and against a live site. */
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type BooksSite, startBooksSite } from '../../test/site/books.ts'
import { sluice, temporaryFolder } from '../../test/sluice.ts'

const BOOKS = fileURLToPath(new URL('../../scrapers/books', import.meta.url))
const folder = temporaryFolder()
const own = join(folder.path, 'scrapers/books')
const cwd = folder.path
let site: BooksSite

before(async () => {
  site = await startBooksSite({ products: 400 })
  cpSync(BOOKS, own, { recursive: true })
  writeFileSync(join(folder.path, 'package.json'), '{"type":"module"}')
})

after(async () => {
  await site[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

test('test passes on the bundled scraper’s saved pages', async () => {
  const { code, stdout } = await sluice(['test', 'books', '--json'])
  assert.equal(code, 0, stdout)
  const { passed, failed } = JSON.parse(stdout)
  assert.deepEqual([passed, failed], [7, 0])
})

test('test names every difference, and --update makes it the expectation', async () => {
  const file = join(own, 'books.ts')
  writeFileSync(file, readFileSync(file, 'utf8').replace("facts.get('UPC')", "facts.get('Tax')"))
  const differs = await sluice(['test', 'books'], { cwd })
  assert.equal(differs.code, 1)
  assert.match(differs.stdout, /item 1, upc: "£0\.00", recorded was "8a65ca288c2270a2"/)
  assert.match(differs.stdout, /4 of 7 pages of books read differently/)
  assert.equal((await sluice(['test', 'books', '--update'], { cwd })).code, 0)
  assert.equal((await sluice(['test', 'books'], { cwd })).code, 0)
})

test('test does not accept a handler that fails as the new expectation', async () => {
  const file = join(own, 'books.ts')
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace(".text('.product_main h1')", ".text('.product_main h7')"))
  const { code, stdout } = await sluice(['test', 'books', '--update'], { cwd })
  assert.equal(code, 1)
  assert.match(stdout, /E_SELECTOR_EMPTY/)
  writeFileSync(file, text)
  assert.equal((await sluice(['test', 'books'], { cwd })).code, 0)
})

test('test without saved pages is an error, and says how to save some', async () => {
  writeFileSync(join(folder.path, 'scrapers/bare.ts'), readFileSync(join(BOOKS, 'books.ts'), 'utf8'))
  const { code, stderr } = await sluice(['test', 'bare'], { cwd })
  assert.equal(code, 2)
  assert.match(stderr, /--record/)
})

const LIVE = `
import { defineScraper } from 'sluice'
import * as z from 'zod'
export default defineScraper({
  name: 'live',
  item: z.object({ n: z.number() }),
  key: 'n',
  routes: { app: { fetch: 'browser' }, shown: { fetch: 'browser' } },
  start: () => {},
  handlers: {
    async app({ page }) {
      await page.click('button')
    },
    async shown({ emit, $ }) {
      await emit({ n: Number($.text('b')) })
    },
  },
})
`

test('test says which pages need a browser and cannot be replayed, and does not fail for them alone', async () => {
  const file = join(folder.path, 'scrapers/live/live.ts')
  const pages = join(folder.path, 'scrapers/live/pages')
  mkdirSync(pages, { recursive: true })
  writeFileSync(file, LIVE)
  const recorded = (route: string, more: object) => {
    writeFileSync(join(pages, `${route}.html`), '<b>7</b>')
    return JSON.stringify({
      url: `https://app.test/${route}`,
      finalUrl: `https://app.test/${route}`,
      route,
      data: null,
      depth: 0,
      status: 200,
      contentType: 'text/html',
      charset: 'utf-8',
      fetchedAt: '2026-11-15T11:35:01.000Z',
      args: {},
      file: `${route}.html`,
      ...more,
    })
  }
  const download = { route: '$file', url: 'https://app.test/made-in-the-browser.csv' }
  const index = [recorded('app', { items: [], links: [] }), recorded('shown', { items: [{ n: 7 }], links: [download] })]
  writeFileSync(join(pages, 'pages.jsonl'), `${index.join('\n')}\n`)
  const { code, stdout, stderr } = await sluice(['test', file], { cwd })
  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /handler of route app uses the browser's page; it cannot be replayed offline/)
  assert.match(stdout, /1 page of live read as recorded\n1 page not replayable/)
  const { passed, failed, notReplayable } = JSON.parse((await sluice(['test', file, '--json'], { cwd })).stdout)
  assert.deepEqual([passed, failed, notReplayable], [1, 0, 1])
  // A bug in a handler that does not touch the page is still a failure.
  writeFileSync(file, LIVE.replace("$.text('b')", 'undefined.x'))
  const broken = await sluice(['test', file], { cwd })
  assert.equal(broken.code, 1)
  assert.match(broken.stdout, /1 of 1 page of live read differently\n1 page not replayable/)
})

test('check reads a few live pages of every route and keeps nothing', async () => {
  const before = readdirSync(tmpdir()).filter((name) => name.startsWith('sluice-check-'))
  const args = ['check', 'books', '--site', site.url, '--arg', 'details=true', '--rps', '0', '--json']
  const { code, stdout, stderr } = await sluice(args, { cwd })
  assert.equal(code, 0, stderr)
  const { pages, routes, isOk } = JSON.parse(stdout)
  assert.deepEqual([pages, isOk], [{ ok: 5, failed: 0 }, true])
  for (const { route, ok } of routes) assert.ok(ok > 0, `${route} was not reached`)
  assert.deepEqual(
    readdirSync(tmpdir()).filter((name) => name.startsWith('sluice-check-') && !before.includes(name)),
    [],
  )
  assert.equal(readdirSync(folder.path).includes('runs'), false)
})

test('check fails below what the scraper expects of its fields and routes', async () => {
  const text = readFileSync(join(BOOKS, 'books.ts'), 'utf8')
  const strict = 'expect: { filled: { upc: 1 }, perRoute: { listing: { items: [21, 50], links: [0, 10] } },'
  writeFileSync(
    join(folder.path, 'scrapers/strict.ts'),
    text.replace(/expect: \{ items: \{ min: 1 \}, filled: .*\},?\n/, `${strict} },\n`),
  )
  const { code, stdout, stderr } = await sluice(['check', 'scrapers/strict.ts', '--site', site.url, '--rps', '0'], {
    cwd,
  })
  assert.equal(code, 1, stderr)
  assert.match(stdout, /items on a page of route "listing": 20, expected 21–50/)
  assert.match(stdout, /field "upc" is filled in 0 %, expected 100 %/)
})

test('check fails when no page can be read', async () => {
  const { code, stdout } = await sluice(['check', 'books', '--site', 'http://127.0.0.1:1/', '--retries', '0'], { cwd })
  assert.equal(code, 1)
  assert.match(stdout, /no page could be read/)
})
