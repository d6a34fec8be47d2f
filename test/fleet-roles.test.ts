/**
 * Workers for many runs: of any scraper, of one region, for pages or files only, with a health endpoint that outlives the runs.
 */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openStore } from '../src/runs/fleet-places.ts'
import { startFileServer } from './files/file-server.ts'
import { placesIn, statsOf, until } from './fleet.ts'
import { freePort } from './services/free-port.ts'
import { postgresForTests } from './services/postgres.ts'
import { type SluiceProcess, sluice, startSluice, temporaryFolder } from './sluice.ts'

const scraperOf = (name: string, body = '', pages = 3) => `
  import { defineScraper } from 'sluice'
  import * as z from 'zod'
  export default defineScraper({
    name: '${name}', item: z.object({ url: z.string() }), routes: { page: {} }, args: z.object({ site: z.url() }),
    start: ({ args, enqueue }) => enqueue('page', Array.from({ length: ${pages} }, (_, i) => new URL('/page/${name}-' + i, args.site))),
    handlers: { async page({ url, emit, file }) { await emit({ url: url.href }); ${body} } },
  })`

async function rig() {
  const database = await postgresForTests()
  const site = await startFileServer({
    '*': (request, response) => {
      if (request.url === '/robots.txt') return response.writeHead(404).end()
      response.setHeader('content-type', request.url!.startsWith('/file') ? 'application/octet-stream' : 'text/html')
      return response.end(request.url)
    },
  })
  const folder = temporaryFolder()
  mkdirSync(join(folder.path, 'scrapers'))
  const write = (name: string, text: string) => writeFileSync(join(folder.path, 'scrapers', `${name}.ts`), text)
  for (const name of ['apples', 'pears']) write(name, scraperOf(name))
  write('gallery', scraperOf('gallery', "await file(new URL('/file/' + url.pathname.slice(6), url))"))
  const more = { cwd: folder.path, env: { SLUICE_FRONTIER: database.url } }
  const started: SluiceProcess[] = []
  const run = async (...args: string[]) => await sluice(args, more)
  return {
    write,
    run,
    openStore: async () => await openStore({ frontier: database.url, store: undefined }),
    work(...args: string[]): SluiceProcess {
      const worker = startSluice(['worker', '--rps', '0', ...args], more)
      started.push(worker)
      return worker
    },
    async start(name: string, ...args: string[]): Promise<string> {
      const { code, stdout, stderr } = await run(
        'start',
        name,
        '--mode',
        'distributed',
        '--site',
        site.url,
        '--json',
        ...args,
      )
      assert.equal(code, 0, stderr)
      return JSON.parse(stdout).run_id
    },
    stats: (id: string) => statsOf(id, placesIn(folder.path, database.url)),
    async [Symbol.asyncDispose]() {
      for (const { child } of started) child.kill('SIGKILL')
      await Promise.all(started.map(({ result }) => result))
      await database[Symbol.asyncDispose]()
      await site[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

async function healthAt(port: number): Promise<{ code: number; body: Record<string, unknown> }> {
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined)
  return answer === undefined
    ? { code: 0, body: {} }
    : { code: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

test('does the runs of all scrapers in a worker without --scraper, skips one it cannot load, and ends', async () => {
  await using fleet = await rig()
  fleet.write('plums', scraperOf('plums'))
  const ids = [await fleet.start('apples'), await fleet.start('plums'), await fleet.start('pears')]
  fleet.write('plums', 'export default defineNothing(')
  const { code, stderr } = await fleet.work().result
  assert.equal(code, 0, stderr)
  const states = await Promise.all(ids.map(async (id) => (await fleet.stats(id)).state))
  assert.deepEqual(states, ['finished', 'running', 'finished'])
  assert.equal(stderr.match(/is left alone for a minute/g)?.length, 1, stderr)
  assert.match(stderr, /plums\.ts does not load/)
})

test('leaves runs that need a browser to others in a worker without one', async () => {
  await using fleet = await rig()
  fleet.write('windows', scraperOf('windows').replace('routes: { page: {} }', "routes: { page: { fetch: 'browser' } }"))
  const ids = [await fleet.start('windows'), await fleet.start('apples')]
  const many = await fleet.work('--chrome', '/nowhere/chromium').result
  assert.equal(many.code, 0, many.stderr)
  const states = await Promise.all(ids.map(async (id) => (await fleet.stats(id)).state))
  assert.deepEqual(states, ['running', 'finished'])
  const one = await fleet.work('--scraper', 'windows', '--chrome', '/nowhere/chromium').result
  assert.equal(one.code, 3, one.stderr)
  assert.match(one.stderr, /E_BROWSER_MISSING/)
  assert.equal((await fleet.stats(ids[0]!)).state, 'running')
})

test('leaves the runs of other scrapers alone in a worker with two --scraper', async () => {
  await using fleet = await rig()
  const [mine, foreign] = [await fleet.start('pears'), await fleet.start('apples')]
  assert.equal((await fleet.work('--scraper', 'pears', '--scraper', 'gallery').result).code, 0)
  assert.equal((await fleet.stats(mine)).state, 'finished')
  assert.equal((await fleet.stats(foreign)).state, 'running')
})

test('moves one of two workers on a run to a run without workers', async () => {
  await using fleet = await rig()
  fleet.write('orchard', scraperOf('orchard', '', 2000))
  const long = await fleet.start('orchard')
  for (let i = 0; i < 2; i++) fleet.work('--forever', '--rps', '5', '--quiet')
  const workersOf = async (id: string) => (await fleet.stats(id)).workers
  await until('both work on it', async () => (await workersOf(long)) === 2)
  const late = await fleet.start('pears')
  await until('the late one is finished', async () => (await fleet.stats(late)).state === 'finished')
})

test('answers health checks before, between and after runs, with continuing counters', async () => {
  await using fleet = await rig()
  const port = await freePort()
  const worker = fleet.work('--forever', '--metrics', `127.0.0.1:${port}`, '--quiet', '--region', 'eu')
  await until('it waits for runs', async () => (await healthAt(port)).code === 200)
  const { body } = await healthAt(port)
  assert.deepEqual([body['status'], body['runId'], body['region']], ['ok', null, 'eu'])
  const pages = async () => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const counts = text.matchAll(/^sluice_pages_total\{[^}]*outcome="ok"[^}]*\} (\d+)/gm)
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
  }
  for (const [round, name] of ['apples', 'apples', 'pears'].entries()) {
    const id = await fleet.start(name)
    await until(`run ${round} is finished`, async () => (await fleet.stats(id)).state === 'finished')
    await until('it is between runs', async () => (await healthAt(port)).body['runId'] === null)
    assert.equal(await pages(), (round + 1) * 3)
  }
  worker.child.kill('SIGTERM')
  assert.equal((await worker.result).code, 4)
})

test('lets runs of a region wait for its workers, and says so', async () => {
  await using fleet = await rig()
  const id = await fleet.start('apples', '--region', 'eu')
  assert.equal((await fleet.work().result).code, 0)
  assert.equal((await fleet.work('--region', 'us').result).code, 0)
  const [{ runs }] = [JSON.parse((await fleet.run('ps', '--json')).stdout)]
  assert.deepEqual(
    runs.map((run: Record<string, unknown>) => [run['id'], run['region'], run['why']]),
    [[id, 'eu', 'no worker of region eu']],
  )
  assert.equal((await fleet.stats(id)).waitsFor, 'no worker of region eu')
  const refused = await fleet.work('--scraper', 'apples', '--run-id', id, '--region', 'us').result
  assert.equal(refused.code, 2)
  assert.match(refused.stderr, /is for workers of region eu; this one is of region us/)
  assert.equal((await fleet.work('--scraper', 'apples').result).code, 2, 'no run it may take')
  const anywhere = await fleet.start('pears')
  assert.equal((await fleet.work('--region', 'eu').result).code, 0)
  assert.equal((await fleet.stats(id)).state, 'finished')
  assert.equal((await fleet.stats(anywhere)).state, 'finished')
})

test('lets a run with only page workers wait for a file worker, and ends it when one came', async () => {
  await using fleet = await rig()
  const id = await fleet.start('gallery')
  const reader = fleet.work('--scraper', 'gallery', '--run-id', id, '--only', 'pages', '--quiet')
  await until('files wait', async () => (await fleet.stats(id)).waitsFor === 'files wait: no file worker')
  const { completed, files, fleet: workers } = await fleet.stats(id)
  assert.deepEqual([completed, files.pending, workers?.[0]?.only], [3, 3, 'pages'])
  const storer = fleet.work('--scraper', 'gallery', '--run-id', id, '--only', 'files', '--json')
  const [read, stored] = await Promise.all([reader.result, storer.result])
  assert.equal(read.code, 0, read.stderr)
  assert.equal(stored.code, 0, stored.stderr)
  assert.equal(JSON.parse(stored.stdout).pages, 0)
  const after = await fleet.stats(id)
  assert.deepEqual([after.state, after.files.stored, after.items], ['finished', 3, 3])
})

test('does not keep a page worker on a run where only files are left', async () => {
  await using fleet = await rig()
  const id = await fleet.start('gallery')
  assert.equal((await fleet.work('--only', 'pages').result).code, 0)
  assert.equal((await fleet.stats(id)).waitsFor, 'files wait: no file worker')
  assert.equal((await fleet.work('--only', 'files').result).code, 0)
  assert.equal((await fleet.stats(id)).state, 'finished')
})

test('does not hold up others because of a run with an unreachable queue', async () => {
  await using fleet = await rig()
  const [lost, other] = [await fleet.start('apples'), await fleet.start('pears')]
  await using store = await fleet.openStore()
  const { record } = (await store.findRun(lost))!
  await store.saveRun({ ...record, frontier: 'redis://127.0.0.1:1/0' }, ['running'])
  const { code, stderr } = await fleet.work().result
  assert.equal(code, 0, stderr)
  assert.equal((await fleet.stats(other)).state, 'finished')
  assert.match(stderr, new RegExp(`run ${lost} is left alone for a while: .*127\\.0\\.0\\.1:1`))
})

test('does older runs, too, in a persistent worker of one scraper, and ends when drained', async () => {
  await using fleet = await rig()
  fleet.write('orchard', scraperOf('orchard', '', 2000))
  const ids = [await fleet.start('apples'), await fleet.start('apples')]
  const worker = fleet.work('--scraper', 'apples', '--forever', '--quiet')
  for (const id of ids) await until('it is finished', async () => (await fleet.stats(id)).state === 'finished')
  worker.child.kill('SIGTERM')
  assert.equal((await worker.result).code, 4)

  const long = await fleet.start('orchard')
  const drained = fleet.work('--scraper', 'orchard', '--forever', '--rps', '5', '--quiet')
  await using store = await fleet.openStore()
  await until('it works', async () => (await store.listWorkers({ runId: long })).length === 1)
  const [{ id } = { id: '' }] = await store.listWorkers({ runId: long })
  await store.askDrain(id)
  assert.equal((await drained.result).code, 4)
  assert.equal((await store.listWorkers({ runId: long })).length, 1, 'it did not come back under another name')
})
