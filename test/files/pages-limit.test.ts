/** A page limit on a fleet with separate workers for pages and files. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { placesIn, statsOf, until } from '../fleet.ts'
import { postgresForTests } from '../services/postgres.ts'
import { sluice, startSluice, temporaryFolder } from '../sluice.ts'
import { startFileServer } from './file-server.ts'

const SCRAPER = `
  import { defineScraper } from 'sluice'
  import * as z from 'zod'
  export default defineScraper({
    name: 'gallery', item: z.object({ url: z.string() }), routes: { page: {} }, args: z.object({ site: z.url() }),
    start: ({ args, enqueue }) => enqueue('page', [1, 2, 3, 4, 5].map((i) => new URL('/page/' + i, args.site))),
    handlers: { async page({ url, emit, file }) { await emit({ url: url.href }); await file(new URL('/file' + url.pathname, url)) } },
  })`

async function rig(held: Promise<unknown>) {
  await using opening = new AsyncDisposableStack()
  const database = opening.use(await postgresForTests())
  const site = opening.use(
    await startFileServer({
      '*': async (request, response) => {
        if (request.url === '/robots.txt') return response.writeHead(404).end()
        const isFile = request.url!.startsWith('/file')
        if (isFile) await held
        response.setHeader('content-type', isFile ? 'application/octet-stream' : 'text/html')
        return response.end(request.url)
      },
    }),
  )
  const folder = opening.use(temporaryFolder())
  mkdirSync(join(folder.path, 'scrapers'))
  writeFileSync(join(folder.path, 'scrapers', 'gallery.ts'), SCRAPER)
  const more = { cwd: folder.path, env: { SLUICE_FRONTIER: database.url } }
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await sluice([...args, '--json'], more)
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout)
  }
  const { run_id: id } = await run('start', 'gallery', '--mode', 'distributed', '--site', site.url, '--pages', '2')
  const parts = opening.move()
  return {
    stats: () => statsOf(id, placesIn(folder.path, database.url)),
    resume: () => run('start', 'gallery', '--mode', 'distributed', '--resume', id, '--pages', '5'),
    work(...flags: string[]) {
      const name = ['--scraper', 'gallery', '--run-id', id]
      // One page at a time: pages in flight when the limit is reached are finished, too.
      const worker = startSluice(['worker', ...name, ...flags, '--rps', '0', '--concurrency', '1', '--quiet'], more)
      parts.defer(async () => {
        worker.child.kill('SIGKILL')
        await worker.result
      })
      return worker
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}

test('ends a run at its page limit once the file workers have stored the files of these pages', async () => {
  const held = Promise.withResolvers<void>()
  await using fleet = await rig(held.promise)
  const storer = fleet.work('--only', 'files')
  const reader = await fleet.work('--only', 'pages').result
  assert.equal((await fleet.stats()).state, 'running', reader.stderr)
  held.resolve()
  await storer.result
  const { state, files, reason } = await fleet.stats()
  assert.deepEqual([state, files.stored, files.pending], ['stopped', 2, 0])
  assert.match(reason ?? '', /limit of 2 pages/)
})

test('keeps files that wait for the first file worker beyond the page limit, and the run can be resumed', async () => {
  await using fleet = await rig(Promise.resolve())
  await fleet.work('--only', 'pages').result
  const before = await fleet.stats()
  assert.deepEqual([before.state, before.files.pending], ['running', 2])
  await fleet.work('--only', 'files').result
  const { state, files } = await fleet.stats()
  assert.deepEqual([state, files.stored], ['stopped', 2])
  await fleet.resume()
  const storer = fleet.work('--only', 'files')
  await until('a file worker is there', async () => (await fleet.stats()).workers === 1)
  await fleet.work('--only', 'pages').result
  await storer.result
  const after = await fleet.stats()
  assert.deepEqual([after.state, after.files.stored, after.items], ['finished', 5, 5])
})

test('leaves the files of a worker for both that stops at the page limit to the next, which ends the run', async () => {
  const held = Promise.withResolvers<void>()
  await using fleet = await rig(held.promise)
  const first = fleet.work('--drain-timeout', '100ms')
  await until('its pages are fetched', async () => (await fleet.stats()).items === 2)
  first.child.kill('SIGTERM')
  await first.result
  assert.equal((await fleet.stats()).state, 'running')
  held.resolve()
  await fleet.work().result
  const { state, files } = await fleet.stats()
  assert.deepEqual([state, files.stored, files.pending], ['stopped', 2, 0])
})
