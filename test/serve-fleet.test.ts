/** Servers on one PostgreSQL: they share the work, and none of it is done twice. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '../src/server/api/client.ts'
import { until } from './fleet.ts'
import { childrenOf, startServe } from './serve.ts'
import { postgresForTests } from './services/postgres.ts'
import { startBooksSite } from './site/books.ts'
import { temporaryFolder } from './sluice.ts'

test('two servers share runs and schedules, and replace workers that are killed', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 300, delayMs: 15, misbehave: false })
  using folder = temporaryFolder()
  const more = { cwd: folder.path, env: { SLUICE_FRONTIER: database.url } }
  const flags = ['--rps', '0', '--lease', '2s', '--workers', '1', '--allow-address', new URL(site.url).host]
  await using one = await startServe(flags, more)
  await using other = await startServe(flags, more)
  const [first, second] = [createClient({ url: one.url }), createClient({ url: other.url })]
  const args = { site: site.url, details: true }
  const limits = { perHost: { rps: 60 } } // long enough for a new worker to start
  const body = { name: 'books', scraper: 'books', args, limits, cron: '0 6 * * *' }
  const { id: schedule } = await first.createSchedule({ body })
  const { id } = await second.triggerSchedule({ params: { id: schedule } })
  await until(
    'both work on it',
    async () => (await first.listWorkers({ query: { run: id, alive: 'true' } })).data.length === 2,
  )
  process.kill(childrenOf(one.pid)[0]!, 'SIGKILL')
  await until('the run is finished', async () => (await second.getRun({ params: { id } })).state === 'finished')
  const items = await first.getItems({ params: { id }, query: { format: 'jsonl' } })
  assert.equal((await items.text()).trim().split('\n').length, 300)
  const { data } = await first.listWorkers({ query: { run: id } })
  assert.ok(data.length >= 3, 'the killed one was replaced')
  assert.equal((await second.getSchedule({ params: { id: schedule } })).lastFires.length, 1)
})

test('gives a new run one of the workers of a long run that has them all, and its own limits', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 1000, misbehave: false })
  using folder = temporaryFolder()
  const flags = ['--rps', '0', '--lease', '2s', '--workers', '2', '--allow-address', new URL(site.url).host]
  await using server = await startServe(flags, { cwd: folder.path, env: { SLUICE_FRONTIER: database.url } })
  const client = createClient({ url: server.url })
  const workersOf = async (run: string) =>
    (await client.listWorkers({ query: { run, alive: 'true' } })).data.filter(({ state }) => state === 'working').length
  const args = { site: site.url, details: true }
  const limits = { perHost: { rps: 5 } }
  const { id: long } = await client.startRun({ body: { scraper: 'books', args, limits } })
  await until('it has both', async () => (await workersOf(long)) === 2)
  const { id: late } = await client.startRun({ body: { scraper: 'books', args, limits } })
  assert.equal((await client.getRun({ params: { id: late } })).why, 'waits for a worker')
  await until('each has one', async () => (await workersOf(long)) === 1 && (await workersOf(late)) === 1)
  await until('the late one moves', async () => (await client.getRun({ params: { id: late } })).queue.completed > 3)
  const { queue, durationMs, startedAt } = await client.getRun({ params: { id: long } })
  const secondsPassed = (Date.now() - Date.parse(startedAt)) / 1000
  assert.ok(
    queue.completed <= (secondsPassed + 2) * 5 * 2,
    `${queue.completed} pages in ${secondsPassed} s, ${durationMs}`,
  )
})
