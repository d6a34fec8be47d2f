/** Sites where some pages always fail: every healthy page is delivered in one run, and none fails because of its neighbours. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { RunRecord } from '../src/core/run.ts'
import { start } from '../src/index.ts'
import patchy, { PAGES } from './site/patchy.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const SCRAPER = fileURLToPath(new URL('site/patchy.ts', import.meta.url))

type Fate = 'ok' | 'fails' | 'reset' | 'forbidden'

async function openPatchySite(fateOf: (n: number) => Fate, robots = 404) {
  const asked = new Set<number>()
  const server = createServer((request, response) => {
    if (request.url === '/robots.txt') return void response.writeHead(robots, { 'retry-after': '3600' }).end()
    if (request.url === '/') return void response.setHeader('content-type', 'text/html').end(linksToAll())
    const n = Number(request.url!.split('/').pop())
    asked.add(n)
    const fate = fateOf(n)
    if (fate === 'reset') return void request.socket.resetAndDestroy()
    response.statusCode = { ok: 200, fails: 500, forbidden: 403 }[fate]
    response.setHeader('content-type', 'text/html').end(`<title>${n}</title><p>A page about number ${n}.</p>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return { url, asked, [Symbol.asyncDispose]: close }
}

const linksToAll = () => Array.from({ length: PAGES }, (_, n) => `<a href="/page/${n}">${n}</a>`).join(' ')

/** All defaults except for the pace, so that the test is fast. */
const QUICK = ['--rps', '0', '--circuit-cool-down', '50ms', '--allow-private', '--json']

async function runOver(site: { url: string }, folder: string, ...more: string[]) {
  const args = ['run', SCRAPER, '--arg', `base=${site.url}`, '--out', join(folder, 'out'), ...QUICK, ...more]
  const { code, stdout, stderr } = await sluice(args)
  assert.ok(stdout.startsWith('{'), stdout + stderr)
  return { code, record: JSON.parse(stdout), stderr }
}

function assertDelivered(
  { pages, items, exitCode, errors }: RunRecord,
  fate: Fate,
  isBad: (n: number) => boolean,
): void {
  const bad = Array.from({ length: PAGES }, (_, n) => n).filter(isBad).length
  assert.deepEqual([items.new, pages.dead, pages.remaining], [PAGES - bad, bad, 0])
  assert.equal(exitCode, bad / PAGES > 0.05 ? 1 : 0)
  assert.deepEqual(new Set(errors.map(({ code }) => code)), new Set([fate === 'reset' ? 'E_CONNECTION' : 'E_SERVER']))
}

const isScattered = (n: number) => (n * 7919) % 100 < 85
const scenarios: [title: string, fate: Fate, isBad: (n: number) => boolean][] = [
  ['the first 10 pages', 'fails', (n) => n < 10],
  ['the first 12 pages', 'fails', (n) => n < 12],
  ['the first 40 pages', 'fails', (n) => n < 40],
  ['12 pages in a row in the middle', 'fails', (n) => n >= 100 && n < 112],
  ['60 pages in a row in the middle', 'fails', (n) => n >= 100 && n < 160],
  ['85 % of the pages, scattered', 'fails', isScattered],
  ['every tenth page', 'fails', (n) => n % 10 === 0],
  ['the first 40 pages, with a reset', 'reset', (n) => n < 40],
  ['the first 150 pages', 'fails', (n) => n < 150],
]

describe('a site where some pages always fail', { concurrency: 2 }, () => {
  for (const [title, fate, isBad] of scenarios) {
    it(`loses no healthy page when it is ${title}`, { timeout: 600_000 }, async () => {
      await using site = await openPatchySite((n) => (isBad(n) ? fate : 'ok'))
      using folder = temporaryFolder()
      const pace = { rps: 0, circuitCoolDown: '50ms', allowPrivate: true, out: folder.path }
      const run = await start(patchy, { args: { base: site.url }, ...pace })
      const record = await run.result
      assertDelivered(record, fate, isBad)
    })
  }

  it('loses none with several processes either', { timeout: 600_000 }, async () => {
    const isBad = (n: number) => n < 40
    await using site = await openPatchySite((n) => (isBad(n) ? 'fails' : 'ok'))
    using folder = temporaryFolder()
    assertDelivered((await runOver(site, folder.path, '--processes', '2')).record, 'fails', isBad)
  })

  it('loses none in sluice crawl either', { timeout: 600_000 }, async () => {
    await using site = await openPatchySite((n) => (n < 40 ? 'fails' : 'ok'))
    using folder = temporaryFolder()
    const { stdout, stderr } = await sluice(['crawl', site.url, '--out', folder.path, ...QUICK])
    const { pages, items } = JSON.parse(stdout)
    assert.deepEqual([items.new, pages.dead, pages.remaining], [PAGES - 40 + 1, 40, 0], stderr)
  })

  it('is crawled without a pause when the circuit breaker is off', async () => {
    await using site = await openPatchySite((n) => (n < 40 ? 'fails' : 'ok'))
    using folder = temporaryFolder()
    const { record } = await runOver(site, folder.path, '--circuit', 'off', '--retries', '0')
    assert.deepEqual([record.items.new, record.pages.dead, record.pages.postponed], [260, 40, 0])
  })
})

describe('a site that is down', { concurrency: 2 }, () => {
  it('stops the run, resumable, with every page that was not requested still in the queue', {
    timeout: 600_000,
  }, async () => {
    let isDown = true
    await using site = await openPatchySite(() => (isDown ? 'fails' : 'ok'))
    using folder = temporaryFolder()
    // Probes come so seldom that the run stalls long before it has asked for every page.
    const pace = ['--circuit-cool-down', '300ms', '--wait', '500ms']
    const { code, record } = await runOver(site, folder.path, ...pace)
    assert.deepEqual([code, record.state], [4, 'stopped'])
    assert.match(
      record.reason,
      /^E_STALLED: all \d+ pages left must wait, and none has succeeded for \d+ s: 127\.0\.0\.1:\d+: circuit open/,
    )
    assert.ok(site.asked.size < PAGES, 'the run did not ask for every page of a dead site')
    assert.equal(record.pages.dead + record.pages.remaining, PAGES)
    assert.ok(record.pages.remaining >= PAGES - site.asked.size, 'no page died unasked')
    isDown = false
    await sluice(['dlq', 'retry', record.id, '--out', join(folder.path, 'out')])
    const again = await runOver(site, folder.path, '--resume', record.id)
    assert.deepEqual([again.code, again.record.items.new], [0, PAGES])
  })

  it('costs pages that were not requested no try, even if robots.txt cannot be read', {
    timeout: 600_000,
  }, async () => {
    await using site = await openPatchySite(() => 'ok', 503)
    using folder = temporaryFolder()
    const { code, record, stderr } = await runOver(site, folder.path)
    assert.deepEqual([code, record.pages.dead, record.pages.remaining], [4, 0, PAGES], stderr)
    assert.match(
      record.reason,
      /^E_STALLED: all 300 pages left must wait until \S+Z: 127\.0\.0\.1:\d+: (?:robots\.txt|503)/,
    )
    assert.equal(site.asked.size, 0)
    const again = await runOver(site, folder.path, '--resume', record.id)
    assert.deepEqual([again.code, site.asked.size], [4, 0], 'a resumed run keeps to what the site asked for')
  })
})
