/** A server whose database goes down and comes back: it reports the outage, and everything continues. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '../../src/server/api/client.ts'
import { until } from '../fleet.ts'
import { startServe } from '../serve.ts'
import { startPostgres } from '../services/postgres.ts'
import { startBooksSite } from '../site/books.ts'
import { temporaryFolder } from '../sluice.ts'

const AWAY_MS = 8_000

test('survives an outage of its database half-way through a run', async () => {
  await using database = await startPostgres({ fsync: true })
  await using site = await startBooksSite({ products: 200, delayMs: 20, misbehave: false })
  using folder = temporaryFolder()
  const flags = ['--rps', '0', '--lease', '5s', '--workers', '1', '--allow-address', new URL(site.url).host]
  await using server = await startServe(flags, { cwd: folder.path, env: { SLUICE_FRONTIER: database.url } })
  const client = createClient({ url: server.url })
  const statusOf = async (path: string) => (await fetch(server.url + path)).status
  const { id } = await client.startRun({ body: { scraper: 'books', args: { site: site.url, details: true } } })
  const schedule = { name: 'minutely', scraper: 'books', args: { site: site.url, pages: 1 }, cron: '* * * * *' }
  await client.createSchedule({ body: schedule })
  await until('it works', () => site.stats().requests > 40)

  await database.stop('immediate')
  const [ready, alive] = [await fetch(`${server.url}/readyz`), await statusOf('/healthz')]
  assert.deepEqual([ready.status, alive], [503, 200])
  assert.match(((await ready.json()) as { detail: string }).detail, /the store/)
  await sleep(AWAY_MS)
  await database.start()

  await until('it is ready again', async () => (await statusOf('/readyz')) === 200)
  await until('the run is finished', async () => (await client.getRun({ params: { id } })).state === 'finished')
  const items = await client.getItems({ params: { id }, query: { format: 'jsonl' } })
  assert.equal((await items.text()).trim().split('\n').length, 200)
  const { lastFires } = await client.getSchedule({ params: { id: 'minutely' } })
  assert.ok(lastFires.every(({ outcome }) => outcome !== 'failed'))
})
