/** `sluice produce`: from what a site lists itself to a queue that workers empty. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { Client } from 'pg'
import { Fleet } from './fleet.ts'
import { postgresForTests } from './services/postgres.ts'
import { temporaryFolder } from './sluice.ts'

const RULES = fileURLToPath(new URL('../docs/examples/rules.json', import.meta.url))

/** A site that lists its pages in every way there is, and leads in a circle. */
async function startListedSite() {
  const files = new Map<string, (base: string) => string | Buffer>([
    [
      '/robots.txt',
      (base) => `User-agent: *\nDisallow: /secret\nSitemap: ${base}index.xml\nSitemap: ${base}feed.rss\n`,
    ],
    [
      '/index.xml',
      (base) =>
        `<sitemapindex><sitemap><loc>${base}index.xml</loc></sitemap><sitemap><loc>${base}a.xml.gz</loc></sitemap></sitemapindex>`,
    ],
    [
      '/a.xml.gz',
      (base) =>
        gzipSync(`<urlset xmlns:image="i" xmlns:news="n">
          <url><loc>${base}page/1</loc><priority>0.9</priority><image:image><image:loc>${base}1.png</image:loc></image:image></url>
          <url><loc>${base}page/2</loc><lastmod>2020-01-01</lastmod></url>
          <url><loc>${base}news/3</loc><news:news><news:publication_date>2026-11-01</news:publication_date></news:news></url>
          <url><loc>ftp://elsewhere.example/x</loc></url>
          <url><loc>http://[broken</loc></url>
        </urlset>`),
    ],
    ['/feed.rss', (base) => `<rss><channel><item><link>${base}page/4</link></item></channel></rss>`],
  ])
  const server = createServer((request, response) => {
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const file = files.get(request.url!)
    if (file !== undefined) return response.end(file(base))
    response.setHeader('content-type', 'text/html')
    response.end(`<title>${request.url}</title>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function queueOf(url: string) {
  const client = new Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(
    `select regexp_replace(q.url, '^http://[^/]+', '') as path, q.priority::float8 as priority, q.status from sluice.url_work_queue q order by 1`,
  )
  await client.end()
  return rows
}

test('sitemaps that robots.txt names are followed once each, with priorities, and bad entries become dead letters', async () => {
  await using database = await postgresForTests()
  await using site = await startListedSite()
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path, scraper: 'pages' })
  const result = await fleet.run('produce', '--site', site.url, '--rules', RULES, '--json')
  assert.equal(result.code, 0, result.stderr)
  const { run_id: runId, enqueued, refused } = JSON.parse(result.stdout)
  assert.deepEqual({ enqueued, refused }, { enqueued: 4, refused: 2 })
  const rows = await queueOf(database.url)
  assert.deepEqual(
    rows.filter(({ status }) => status === 'pending').map(({ path, priority }) => [path, priority]),
    [
      ['/news/3', 0],
      ['/page/1', 4],
      ['/page/2', 0],
      ['/page/4', 0],
    ],
  )
  const { stdout } = await fleet.run('dlq', 'groups', runId, '--json')
  assert.deepEqual(
    JSON.parse(stdout)
      .groups.map(({ code, count }: { code: string; count: number }) => [code, count])
      .sort(),
    [
      ['E_URL_INVALID', 1],
      ['E_URL_SCHEME', 1],
    ],
  )
  const worked = await fleet.worker(runId).result
  assert.ok(worked.code === 0 || worked.code === 1, worked.stderr)
  const items = await fleet.items(runId)
  assert.deepEqual(items.map(({ title }) => title).sort(), ['/news/3', '/page/1', '/page/2', '/page/4'])
})

test('pages that say they are older are left out, and a run is fed again without repeating any', async () => {
  await using database = await postgresForTests()
  await using site = await startListedSite()
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const first = JSON.parse(
    (await fleet.run('produce', '--sitemap', `${site.url}a.xml.gz`, '--since', '2026-01-01', '--json')).stdout,
  )
  assert.equal(first.enqueued, 2)
  const again = await fleet.run(
    'produce',
    '--site',
    site.url,
    '--run-id',
    first.run_id,
    '--url',
    `${site.url}page/9`,
    '--json',
  )
  assert.equal(again.code, 0, again.stderr)
  assert.deepEqual(JSON.parse(again.stdout).enqueued, 3)
})

test('wrong words are told, and nothing is queued', async () => {
  await using database = await postgresForTests()
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  for (const [args, said] of [
    [['produce'], /nothing to queue/],
    [['produce', '--url', 'http://a.example/', '--since', 'soon'], /--since takes a date/],
    [
      ['produce', '--url', 'http://a.example/', '--rules', join(folder.path, 'none.json')],
      /rules in .*none\.json cannot be read/,
    ],
    [['produce', '--sitemap', 'http://127.0.0.1:9/sitemap.xml'], /E_CONNECTION/],
  ] as const) {
    const { code, stderr } = await fleet.run(...args)
    assert.notEqual(code, 0)
    assert.match(stderr, said)
  }
})
