/** Complete runs: pages that two routes claim, files among the links, and pages that may be the wrong page. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import * as z from 'zod'
import { start } from '../src/app/start.ts'
import { defineScraper, type Scraper } from '../src/core/scraper.ts'
import { reply, startHttpServer } from './site/http-server.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const item = z.object({ url: z.url() })
const SUSPECT =
  '<html><head><title>Hello</title></head><body><form>Prove it<div class="g-recaptcha"></div></form></body></html>'

function openSite(pages: Readonly<Record<string, string | Buffer>>) {
  return startHttpServer({
    port: 0,
    handle: (target) => {
      const body = pages[target]
      if (body === undefined) return reply({ status: 404, body: 'not here' })
      return reply({ body, type: typeof body === 'string' ? 'text/html' : 'application/pdf' })
    },
  })
}

async function run(scraper: Scraper, port: number, out: string) {
  const started = await start(scraper, {
    args: { site: `http://127.0.0.1:${port}/` },
    out,
    rps: 0,
    retries: 0,
    allowPrivate: true,
  })
  return { record: await started.result, folder: started.folder }
}

test('reports a page that two routes claim in the result of enqueue, the log and the record', async () => {
  const next = '<a rel="next" href="/?page=2">Next</a>'
  await using site = await openSite({
    '/': `<title>List</title><a href="/a">A thing</a>${next}`,
    '/a': '<h1>A thing</h1>',
    '/?page=2': `<title>List</title>${next.replace('2', '3')}`,
    '/?page=3': '<title>List</title>',
  })
  using folder = temporaryFolder()
  const answers: { added: number; conflicts: number }[] = []
  const scraper = defineScraper({
    name: 'two-routes',
    args: z.object({ site: z.url() }),
    item,
    routes: { list: {}, page: {} },
    start: ({ args, enqueue }) => enqueue('list', args.site),
    handlers: {
      async list({ enqueue }) {
        await enqueue.links('page', 'a')
        const { added, conflicts } = await enqueue.links('list', 'a[rel~="next"]')
        answers.push({ added, conflicts })
      },
      page: ({ url, emit }) => emit({ url: url.href }),
    },
  })
  const { record, folder: place } = await run(scraper, site.port, folder.path)
  assert.deepEqual(answers, [{ added: 0, conflicts: 1 }])
  assert.deepEqual(record.notFetched, { conflict: 1 })
  assert.match(record.warnings.join('\n'), /1 link that another route already has or claims/)
  assert.match(readFileSync(join(place, 'log.jsonl'), 'utf8'), /page=2 is already queued for route page: route list/)
})

test('counts, logs and shows a suspect page, and fails the run if it is a start page', async () => {
  await using site = await openSite({ '/': '<title>Home</title><a href="/odd">Odd</a> Welcome to us', '/odd': SUSPECT })
  using folder = temporaryFolder()
  const make = (first: string) =>
    defineScraper({
      name: 'suspects',
      args: z.object({ site: z.url() }),
      item,
      routes: { page: {} },
      start: ({ args, enqueue }) => enqueue('page', new URL(first, args.site)),
      handlers: {
        async page({ url, emit, enqueue }) {
          await emit({ url: url.href })
          await enqueue.links('page', 'a')
        },
      },
    })
  const { record, folder: place } = await run(make('/'), site.port, folder.path)
  assert.deepEqual([record.exitCode, record.pages.ok, record.pages.suspect], [0, 2, 1])
  assert.match(record.warnings.join('\n'), /1 suspect page: /)
  assert.match(readFileSync(join(place, 'log.jsonl'), 'utf8'), /suspect: widget: g-recaptcha/)
  const { record: failed } = await run(make('/odd'), site.port, folder.path)
  assert.deepEqual([failed.exitCode, failed.pages.ok, failed.errors[0]?.code], [1, 0, 'E_SUSPECT'])
})

test('crawl skips and counts files, and fails if the start page is one', async () => {
  const pdf = Buffer.from('%PDF-1.4\n%%EOF\n')
  await using site = await openSite({ '/': '<title>Home</title><a href="/a.pdf">A</a><a href="/b.pdf">B</a>', '/a.pdf': pdf, '/b.pdf': pdf }) // biome-ignore format: one line reads better
  using folder = temporaryFolder()
  const at = (path: string) => ['crawl', `http://127.0.0.1:${site.port}${path}`, '--rps', '0', '--out', folder.path]
  const result = await sluice(at('/'))
  assert.equal(result.code, 0, result.stderr)
  assert.match(result.stdout + result.stderr, /2 pages served as a file/)
  const file = await sluice([...at('/a.pdf'), '--json'])
  assert.deepEqual([file.code, JSON.parse(file.stdout).errors[0].code], [1, 'E_CONTENT_TYPE'])
})

test('try says why a link goes to another route', async () => {
  await using site = await openSite({ '/': '<title>List</title><a rel="next" href="/?page=2">Next</a>' })
  using folder = temporaryFolder()
  const made = await sluice(['new', 'trap', `http://127.0.0.1:${site.port}/`, '--offline'], { cwd: folder.path })
  assert.equal(made.code, 0, made.stderr)
  const file = join(folder.path, 'scrapers/trap/trap.ts')
  const code = readFileSync(file, 'utf8').replace(
    "await enqueue.links('page', 'a')",
    "await enqueue.links('page', 'a')\n      await enqueue.links('list', 'a[rel]')",
  )
  writeFileSync(file, code)
  const tried = await sluice(['try', 'trap', `http://127.0.0.1:${site.port}/`, '--route', 'list'], { cwd: folder.path })
  assert.equal(tried.code, 0, tried.stderr)
  assert.match(tried.stdout, /is already queued for route page {2}1\n.*\?page=2/)
})
