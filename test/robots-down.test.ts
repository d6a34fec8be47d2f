/** One page on a site whose robots.txt cannot be read: it was never requested, so it waits and is not given up. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import * as z from 'zod'
import { defineScraper, start } from '../src/index.ts'
import { sluice, temporaryFolder } from './sluice.ts'

/** Answers 503 to the first `failures` requests for robots.txt. */
async function openSite(failures: number) {
  const site = { url: '', failures, asked: [] as string[] }
  const server = createServer(({ url }, response) => {
    site.asked.push(url!)
    if (url === '/robots.txt') return void response.writeHead(site.failures-- > 0 ? 503 : 404).end()
    if (url!.endsWith('.bin')) return void response.setHeader('content-type', 'application/octet-stream').end('bytes')
    response.setHeader('content-type', 'text/html').end('<title>One</title><p>A page with a few words on it.</p>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  site.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return Object.assign(site, { [Symbol.asyncDispose]: close })
}

const pageOf = (site: { asked: string[] }) => site.asked.filter((path) => path !== '/robots.txt')

test('stops a crawl of a site that is down, resumable, and delivers its page once the site is back', async () => {
  await using site = await openSite(Number.POSITIVE_INFINITY)
  using folder = temporaryFolder()
  const crawl = async (...more: string[]) => {
    const flags = ['--out', folder.path, '--allow-private', '--retries', '0', '--rps', '0', '--json', '--quiet']
    const { code, stdout, stderr } = await sluice(['crawl', site.url, ...flags, ...more])
    assert.ok(stdout.startsWith('{'), stdout + stderr)
    return { code, record: JSON.parse(stdout) }
  }
  const down = await crawl('--wait', '500ms')
  assert.deepEqual([down.code, down.record.state, down.record.pages.remaining, pageOf(site)], [4, 'stopped', 1, []])
  assert.match(down.record.reason, /^E_STALLED: the 1 page left must wait.*: 127\.0\.0\.1:\d+: robots\.txt: E_SERVER/)
  site.failures = 0
  const { code, record } = await crawl('--resume')
  assert.deepEqual([code, record.id, record.items.new, pageOf(site)], [0, down.record.id, 1, ['/']])
})

/** One page of `site`, with a file of `files`. */
const gallery = defineScraper({
  name: 'gallery',
  args: z.object({ site: z.url(), files: z.url() }),
  item: z.object({ url: z.string() }),
  limits: { retries: 0 },
  routes: { page: {} },
  start: ({ args, enqueue }) => enqueue('page', new URL('/page', args.site)),
  handlers: {
    async page({ url, emit, file, args }) {
      await emit({ url: url.href })
      await file(new URL('/one.bin', args.files))
    },
  },
})

test('outlasts a robots.txt that fails for a while, for a page and a file, without spending a retry', async () => {
  await using site = await openSite(1)
  await using files = await openSite(1)
  using folder = temporaryFolder()
  const options = { args: { site: site.url, files: files.url }, rps: 0, allowPrivate: true, out: folder.path }
  const record = await (await start(gallery, options)).result
  assert.deepEqual([record.exitCode, record.items.new, record.files.stored], [0, 1, 1])
  assert.deepEqual([record.pages.retried, pageOf(site), pageOf(files)], [0, ['/page'], ['/one.bin']])
})

test('stops the run, resumable, if the host of a file is down', async () => {
  await using site = await openSite(0)
  await using files = await openSite(Number.POSITIVE_INFINITY)
  using folder = temporaryFolder()
  const options = { args: { site: site.url, files: files.url }, rps: 0, allowPrivate: true, out: folder.path }
  const record = await (await start(gallery, { ...options, wait: '500ms' })).result
  assert.deepEqual([record.exitCode, record.state, record.items.new, record.pages.remaining], [4, 'stopped', 1, 1])
  assert.equal(record.files.failed, 0)
  assert.match(record.reason ?? '', /robots\.txt: E_SERVER/)
  assert.deepEqual(pageOf(files), [])
})
