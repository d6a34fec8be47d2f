/** `sluice produce`: from the URLs that a site lists to a queue that workers empty. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { Client } from 'pg'
import { Fleet } from './fleet.ts'
import { freePort } from './services/free-port.ts'
import { postgresForTests } from './services/postgres.ts'
import { rabbitForTests } from './services/rabbitmq.ts'
import { redisForTests } from './services/redis.ts'
import { temporaryFolder } from './sluice.ts'

const RULES = fileURLToPath(new URL('../docs/examples/rules.json', import.meta.url))

/** A site that lists its pages in every possible way, including a cycle. */
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
  return await startSite((path, base) => files.get(path)?.(base) ?? `<title>${path}</title>`)
}

/** A site that responds with the result of `fileOf`; 404 if undefined. */
async function startSite(fileOf: (path: string, base: string) => string | Buffer | undefined) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url!)
    const file = fileOf(request.url!, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    if (file === undefined) response.statusCode = 404
    if (String(file).startsWith('<title>')) response.setHeader('content-type', 'text/html')
    response.end(file)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    asked,
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

test('follows each sitemap in robots.txt once, with priorities, and turns bad entries into dead letters', async () => {
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

test('omits pages that say they are older, and adds to a run without repeating any', async () => {
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

test('reports invalid arguments, and queues nothing', async () => {
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

test('leads no worker to a private address that the user did not name', async () => {
  await using database = await postgresForTests()
  using folder = temporaryFolder()
  await using inside = await startSite((path) => `<title>${path}</title>`)
  await using outside = await startSite((path, base) =>
    path === '/s.xml'
      ? `<urlset><url><loc>${inside.url}secret</loc></url><url><loc>${base}page</loc></url></urlset>`
      : path === '/page'
        ? `<title>${path}</title><a href="${inside.url}linked">x</a>`
        : undefined,
  )
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path, scraper: 'pages' })
  const own = await fleet.run('produce', '--sitemap', `${outside.url}s.xml`, '--json')
  const { enqueued: ofOwnHost, otherHosts } = JSON.parse(own.stdout)
  assert.deepEqual([ofOwnHost, otherHosts], [1, 1], own.stderr)
  assert.match(
    own.stderr,
    /1 entry for other hosts skipped; to queue them: --host HOST for one host, --any-host for all/,
  )
  const { stdout, stderr } = await fleet.run('produce', '--sitemap', `${outside.url}s.xml`, '--any-host', '--json')
  const { run_id: runId, enqueued, refused } = JSON.parse(stdout)
  assert.deepEqual([enqueued, refused], [1, 1], stderr)
  assert.match(stderr, /s\.xml: 127\.0\.0\.1:\d+ is an address of the private network \(E_PRIVATE_ADDRESS\)/)
  await fleet.worker(runId).result
  assert.equal(inside.asked.join(), '')
  assert.deepEqual((await fleet.items(runId)).map(({ title }) => title), ['/page']) // biome-ignore format: one line reads better
  const { groups } = JSON.parse((await fleet.run('dlq', 'groups', runId, '--json')).stdout)
  assert.deepEqual(groups.map(({ code }: { code: string }) => code), ['E_PRIVATE_ADDRESS']) // biome-ignore format: one line reads better

  // Named by the user, the same host is fetched, even in the same run.
  const again = await fleet.run('produce', '--url', `${inside.url}open`, '--run-id', runId, '--json')
  assert.equal(again.code, 0, again.stderr)
  await fleet.worker(runId).result
  assert.ok(inside.asked.includes('/open'), inside.asked.join())
})

test('refuses private addresses in a list unless they are allowed', async () => {
  await using database = await postgresForTests()
  using folder = temporaryFolder()
  const list = join(folder.path, 'urls.txt')
  writeFileSync(list, 'http://10.0.0.5/a\nhttp://localhost:81/b\nhttps://shop.example/c\n')
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path, scraper: 'pages' })
  const produce = async (...flags: string[]) => {
    const { stdout, stderr } = await fleet.run('produce', '--urls-file', list, '--json', ...flags)
    const { enqueued, refused, run_id: runId } = JSON.parse(stdout)
    return { counts: [enqueued, refused], runId, stderr }
  }
  const { counts, runId, stderr } = await produce()
  assert.deepEqual(counts, [1, 2])
  assert.match(stderr, /line 1: 10\.0\.0\.5:80 is an address of the private network \(E_PRIVATE_ADDRESS\)\n/)
  const { groups } = JSON.parse((await fleet.run('dlq', 'groups', runId, '--json')).stdout)
  assert.deepEqual(new Set(groups.map(({ code }: { code: string }) => code)), new Set(['E_PRIVATE_ADDRESS']))
  assert.deepEqual((await produce('--allow-address', '10.0.0.5')).counts, [2, 1])
  assert.deepEqual((await produce('--url', 'http://localhost:81/')).counts, [3, 1], 'a typed host')
})

test('reports a dead sitemap among others and skips it; fails if there is nothing to read', async () => {
  await using database = await postgresForTests()
  using folder = temporaryFolder()
  await using site = await startSite((path, base) => {
    if (path === '/robots.txt') return `User-agent: *\nSitemap: ${base}gone.xml\nSitemap: ${base}cut.xml\n`
    if (path === '/cut.xml') return `<urlset><url><loc>${base}a</loc></url><url><loc>${base}b`
    return undefined
  })
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const result = await fleet.run('produce', '--site', site.url, '--json')
  assert.equal(result.code, 0, result.stderr)
  const { enqueued, problems } = JSON.parse(result.stdout)
  assert.deepEqual({ enqueued, problems }, { enqueued: 1, problems: 2 })
  assert.match(result.stderr, /gone\.xml cannot be read: .*404.* \(E_NOT_FOUND\)/)
  assert.match(result.stderr, /cut\.xml: it ends inside <loc>/)

  const nothing = await fleet.run('produce', '--sitemap', `${site.url}gone.xml`)
  assert.equal(nothing.code, 1, nothing.stderr)
  assert.match(nothing.stderr, /E_NOT_FOUND/)
})

interface BrokerMessage {
  payload: string
  properties: { expiration?: string; priority?: number }
}

test('feeds a run on a broker, with message lifetimes from the rules, even when fed again', async () => {
  await using broker = await rabbitForTests()
  await using redis = await redisForTests()
  await using site = await startListedSite()
  using folder = temporaryFolder()
  const frontier = `${broker.url}?redis=${encodeURIComponent(redis.url)}`
  const fleet = new Fleet({ frontier, cwd: folder.path, scraper: 'pages' })
  const first = await fleet.run('produce', '--site', site.url, '--json')
  assert.equal(first.code, 0, first.stderr)
  const { run_id: runId, enqueued, refused } = JSON.parse(first.stdout)
  assert.deepEqual({ enqueued, refused }, { enqueued: 4, refused: 2 })

  const rules = join(folder.path, 'rules.json')
  writeFileSync(rules, '[{ "match": "/page/9$", "ttl": "5m" }]')
  const more = ['--url', `${site.url}page/9`, '--rules', rules, '--run-id', runId]
  const second = await fleet.run('produce', ...more, '--json')
  assert.equal(second.code, 0, second.stderr)
  assert.equal(JSON.parse(second.stdout).enqueued, 1)
  const found = (await broker.api('POST', `/queues/${broker.vhost}/url_queue_ttl.${runId}/get`, {
    count: 100,
    ackmode: 'ack_requeue_true',
    encoding: 'auto',
  })) as BrokerMessage[]
  const expirations = found.map(({ payload, properties }) => [new URL(JSON.parse(payload).url).pathname, properties.expiration]) // biome-ignore format: one line reads better
  assert.deepEqual(expirations.sort(), [
    ['/news/3', undefined],
    ['/page/1', undefined],
    ['/page/2', undefined],
    ['/page/4', undefined],
    ['/page/9', '300000'],
  ])

  const worked = await fleet.worker(runId).result
  assert.ok(worked.code === 0 || worked.code === 1, worked.stderr)
  const titles = (await fleet.items(runId)).map(({ title }) => title).sort()
  assert.deepEqual(titles, ['/news/3', '/page/1', '/page/2', '/page/4', '/page/9'])
})

test('reports that it waits for a broker that is down', async () => {
  await using redis = await redisForTests()
  using folder = temporaryFolder()
  const frontier = `amqp://guest:guest@127.0.0.1:${await freePort()}/?redis=${encodeURIComponent(redis.url)}`
  const fleet = new Fleet({ frontier, cwd: folder.path, scraper: 'pages' })
  const { code, stderr } = await fleet.run('produce', '--url', 'http://a.example/')
  assert.equal(code, 3, stderr)
  assert.match(stderr, /^the queue is away \(.*\): waiting for it, try 1$/m)
})
