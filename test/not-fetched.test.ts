/** Links and pages that a run finds but does not fetch are counted by reason, and shown wherever a run is displayed. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { summaryText } from '../src/observe/summary.ts'
import { sluice, startSluice, temporaryFolder } from './sluice.ts'

const FRAGMENTS = Array.from({ length: 10_001 }, (_, i) => `<a href="#part-${i}">${i}</a>`).join('')
const ROBOTS = 'User-agent: *\nDisallow: /private/\n'

/** The page is not answered. */
const HELD = 'held'

type Pages = Record<string, string | { to: string }>

async function startSite(pages: Pages, robots = ROBOTS) {
  const asked: string[] = []
  const held = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    const path = request.url!
    if (path === '/robots.txt') return void response.end(robots)
    asked.push(path)
    const page = pages[path]
    if (page === HELD) return held.resolve()
    if (page === undefined) return void response.writeHead(404).end()
    if (typeof page === 'object') return void response.writeHead(302, { location: page.to }).end()
    response
      .writeHead(200, { 'content-type': 'text/html' })
      .end(`<!doctype html><title>${path}</title><h1>${path}</h1>${page}`)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}/`,
    asked,
    /** A page that is never answered was requested. */
    held: held.promise,
    [Symbol.dispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** A scraper that follows every link, with the given start pages and limits. */
function scraperIn(folder: string, { start = '[args.site]', limits = '{}', handler = '' } = {}): string {
  const file = join(folder, 'walk.ts')
  const text = `import { defineScraper } from '${join(import.meta.dirname, '..', 'src', 'index.ts')}'
import * as z from '${join(import.meta.dirname, '..', 'node_modules', 'zod', 'index.js')}'
export default defineScraper({
  name: 'walk',
  args: z.object({ site: z.url() }),
  item: z.object({ url: z.string() }),
  key: 'url',
  routes: { page: {} },
  start: ({ args, enqueue }) => enqueue('page', ${start}),
  handlers: {
    async page({ url, emit, enqueue, file }) {
      await emit({ url: url.href })
      await enqueue.links('page', 'a')
      ${handler}
    },
  },
  limits: ${limits},
})
`
  writeFileSync(file, text)
  return file
}

async function run(folder: string, args: readonly string[]) {
  const result = await sluice([...args, '--rps', '0', '--out', folder])
  const name = args[0] === 'crawl' ? '' : 'walk'
  return {
    ...result,
    record: name === '' ? undefined : JSON.parse(readFileSync(join(folder, name, 'latest', 'run.json'), 'utf8')),
  }
}

test('ten thousand fragment links to one page do not use up linksMax', async () => {
  using site = await startSite({ '/': `${FRAGMENTS}<a href="/two.html">two</a>`, '/two.html': 'the end' })
  using folder = temporaryFolder()
  const own = await run(folder.path, ['run', scraperIn(folder.path), '--arg', `site=${site.url}`])
  assert.equal(own.code, 0, own.stderr)
  assert.deepEqual([site.asked, own.record.items.new], [['/', '/two.html'], 2])
  assert.deepEqual([own.record.notFetched, own.record.warnings], [{}, []])
  using other = temporaryFolder()
  const crawled = await sluice(['crawl', site.url, '--rps', '0', '--out', other.path, '--json'])
  assert.equal(crawled.code, 0, crawled.stderr)
  assert.deepEqual(site.asked.slice(2), ['/', '/two.html'])
  const { outputs } = JSON.parse(crawled.stdout)
  const rows = readFileSync(outputs[0].target, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    rows.map(({ links }) => links),
    [2, 0],
  ) // its own address without a fragment is one of them
})

test('the summary, record, warnings and stats show by reason what limits skip', async () => {
  const links = ['/a', '/b#1', '/b#2', '/c', '/d', 'https://other.example/', 'mailto:a@b.example', 'http://[']
  using site = await startSite({
    '/': links.map((to) => `<a href="${to}">x</a>`).join(''),
    '/a': '<a href="/deep/1">x</a><a href="/deep/2">x</a><a href="/">x</a>',
    '/b': '',
  })
  using folder = temporaryFolder()
  const file = scraperIn(folder.path, { limits: '{ linksMax: 2, depth: 1 }' })
  const { code, stdout, stderr, record } = await run(folder.path, ['run', file, '--arg', `site=${site.url}`])
  assert.equal(code, 0, stderr)
  const expected = { host: 1, depth: 3, links: 2, scheme: 1, url: 1 }
  assert.deepEqual(record.notFetched, expected)
  assert.deepEqual(record.warnings, ['not followed: 2 links over linksMax, the limit for one page'])
  assert.match(stdout, /skipped +1 link on other hosts\n +3 links deeper than the depth limit\n +2 links over linksMax/)
  assert.match(stdout, /notes +not followed: 2 links over linksMax/)
  const stats = await sluice(['stats', 'walk', '--out', folder.path, '--json'])
  assert.deepEqual(JSON.parse(stats.stdout).notFetched, expected)
  const shared = await run(folder.path, ['run', file, '--arg', `site=${site.url}`, '--processes', '2'])
  assert.deepEqual(shared.record.notFetched, expected, 'the processes count together')
  const shown = await sluice(['stats', 'walk', '--out', folder.path])
  assert.match(shown.stdout, /skipped +1 link on other hosts/)
})

test('counts links forbidden by robots.txt, files and redirects without treating them as failures', async () => {
  using site = await startSite({
    '/': '<a href="/a">a</a><a href="/private/1">1</a><a href="/private/2">2</a><a href="/moved">moved</a>',
    '/a': '<a href="/private/1">again</a>',
    '/moved': { to: '/private/3' },
  })
  using folder = temporaryFolder()
  const file = scraperIn(folder.path, { handler: "if (url.pathname === '/a') await file('/private/report.pdf')" })
  const { code, stdout, stderr, record } = await run(folder.path, ['run', file, '--arg', `site=${site.url}`])
  assert.equal(code, 0, stderr)
  assert.deepEqual(site.asked.toSorted(), ['/', '/a', '/moved'])
  assert.deepEqual(record.notFetched, { robots: 4 })
  const { ok, failed, dead } = record.pages
  assert.deepEqual([ok, failed, dead, record.files.failed, record.errors, record.warnings], [2, 0, 0, 0, [], []])
  assert.match(stdout, /4 pages forbidden by robots.txt/)
  const limited = ['run', file, '--arg', `site=${site.url}`, '--pages', '2', '--concurrency', '1']
  assert.equal((await run(folder.path, limited)).record.pages.ok, 2, 'they take nothing from a limit on pages')
})

test('fails the run if robots.txt forbids a start page, and names the page', async () => {
  using site = await startSite({ '/': '' })
  using folder = temporaryFolder()
  const file = scraperIn(folder.path, { start: "[args.site, new URL('/private/list', args.site)]" })
  const { code, record } = await run(folder.path, ['run', file, '--arg', `site=${site.url}`])
  assert.equal(code, 1)
  assert.match(record.reason, /^robots\.txt forbids the start page http:\/\/127\.0\.0\.1:\d+\/private\/list$/)
  assert.deepEqual([record.pages.ok, record.pages.failed], [1, 1])
  assert.doesNotMatch(summaryText(record), /dlq retry/)
})

test('counts skipped links once when the process is killed and the run resumed', async () => {
  const pages: Pages = {
    '/': '<a href="/a">a</a><a href="/private/1">1</a><a href="https://other.example/">o</a><a href="mailto:a@b.c">m</a>',
    '/a': HELD,
  }
  using site = await startSite(pages)
  using folder = temporaryFolder()
  const args = ['run', scraperIn(folder.path), '--arg', `site=${site.url}`]
  const { child, result } = startSluice([...args, '--rps', '0', '--out', folder.path])
  await Promise.race([site.held, result]) // the page before it is committed: its links are in the queue
  child.kill('SIGKILL')
  assert.equal((await result).signal, 'SIGKILL')
  pages['/a'] = '<a href="/private/2">2</a><a href="https://other.example/">o</a>'
  const { code, stderr, record } = await run(folder.path, [...args, '--resume'])
  assert.equal(code, 0, stderr)
  assert.deepEqual(record.notFetched, { robots: 2, host: 2, scheme: 1 })
  assert.deepEqual([record.pages.ok, record.items.new], [2, 2])
})
