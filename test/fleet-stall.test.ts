/** A fleet run on a site that asks to wait for an hour: workers stop it, resumable, and lose no page. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { Fleet } from './fleet.ts'
import { postgresForTests } from './services/postgres.ts'
import { redisForTests } from './services/redis.ts'
import { temporaryFolder } from './sluice.ts'

const PAGES = 60

/** robots.txt first, then every page answers: come back in an hour. */
async function openBusySite() {
  const asked = { pages: 0 }
  const server = createServer((request, response) => {
    if (request.url === '/robots.txt') return void response.writeHead(404).end()
    asked.pages++
    response.writeHead(503, { 'retry-after': '3600' }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => new Promise<void>((resolve) => void server.close(() => resolve()).closeAllConnections())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, [Symbol.asyncDispose]: close }
}

const engines = {
  PostgreSQL: postgresForTests,
  'Redis Streams': redisForTests,
}

for (const [engine, open] of Object.entries(engines)) {
  test(`stops a run on ${engine} in which everything has to wait, and says until when`, async () => {
    await using database = await open()
    await using site = await openBusySite()
    using folder = temporaryFolder()
    writeFileSync(
      join(folder.path, 'urls.txt'),
      Array.from({ length: PAGES }, (_, n) => `${site.url}/catalogue/book-${n}_${n}/index.html`).join('\n'),
    )
    const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
    const { run_id: runId } = await fleet.start('--urls-file', 'urls.txt', '--allow-private')
    const ends = await Promise.all([fleet.worker(runId).result, fleet.worker(runId).result])
    for (const { code, stderr } of ends) assert.equal(code, 4, stderr)
    const { state, reason, dead, remaining } = await fleet.stats(runId)
    assert.deepEqual([state, dead, remaining], ['stopped', 0, PAGES])
    // Either worker may be the one that stops the run.
    assert.match(
      String(reason),
      /^E_STALLED: all 60 pages left must wait until \S+Z: 127\.0\.0\.1:\d+: (?:503 with Retry-After|paused by another worker)/,
    )
    assert.ok(site.asked.pages < PAGES / 2, `${site.asked.pages} requests`)
  })
}
