/** A server in parts, as separate processes on one PostgreSQL: API, scheduler, worker. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createClient } from '../src/server/api/client.ts'
import { until } from './fleet.ts'
import { startServe } from './serve.ts'
import { postgresForTests } from './services/postgres.ts'
import { startBooksSite } from './site/books.ts'
import { sluice, startSluice, temporaryFolder } from './sluice.ts'

async function startScheduler(options: Parameters<typeof startSluice>[1], flags: readonly string[]) {
  const { child, result } = startSluice(['serve', '--role', 'scheduler', '--port', '0', ...flags], options)
  let printed = ''
  child.stdout!.on('data', (text) => {
    printed += text
  })
  const pattern = /health at (http:\S+)\/healthz/
  await until('it schedules', () => child.exitCode !== null || pattern.test(printed))
  return {
    url: pattern.exec(printed)![1]!,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    result,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await result
    },
  }
}

/** A scheduler looks once a second: by then a working one would have fired. */
const THREE_LOOKS_MS = 3_000

/** Remembers which runs it was notified of. */
async function startReceiver() {
  const told: string[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    told.push(JSON.parse(body).data.runId)
    response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    told,
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

test('runs API, scheduler and worker as three processes; a second scheduler takes over when the first is killed', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 20, misbehave: false })
  using folder = temporaryFolder()
  using receiver = await startReceiver()
  const { told, host: hook } = receiver
  const more = { cwd: folder.path, env: { SLUICE_FRONTIER: database.url } }
  const flags = ['--rps', '0', '--allow-address', new URL(site.url).host, '--allow-address', hook]
  await using api = await startServe(['--role', 'api', ...flags], more)
  const client = createClient({ url: api.url })
  await client.createWebhook({ body: { name: 'test', url: `http://${hook}/`, events: ['run.finished'] } })
  const schedule = { scraper: 'books', args: { site: site.url }, limits: {}, cron: '0 6 1 1 *' }
  const { id } = await client.createSchedule({ body: { name: 'books', ...schedule } })
  const ask = async () => assert.equal((await sluice(['schedule', 'run-now', 'books'], more)).code, 0)
  const fires = async () => (await client.getSchedule({ params: { id } })).lastFires
  const runOf = async (fire: number) => (await fires()).reverse()[fire]?.runId ?? undefined
  await ask()
  const askedAtMs = Date.now()
  await until('a scheduler would have looked three times', () => Date.now() - askedAtMs > THREE_LOOKS_MS)
  const outcomes = (await fires()).map(({ outcome }) => outcome)
  assert.deepEqual(outcomes, ['queued'], 'an API server fires nothing by itself')
  const scheduler = async () => (await client.health()).scheduler
  assert.deepEqual(await scheduler(), { isThere: false, seenAt: null })
  const seen = async () =>
    Number(
      /^sluice_scheduler_seen_timestamp_seconds (\S+)$/m.exec(await (await fetch(`${api.url}/metrics`)).text())?.[1],
    )
  assert.equal(await seen(), 0)

  await using one = await startScheduler(more, flags)
  await using other = await startScheduler(more, flags)
  const worker = startSluice(['worker', '--forever', '--quiet', ...flags], more)
  try {
    await until('it fired', async () => (await runOf(0)) !== undefined)
    assert.equal((await scheduler()).isThere, true)
    assert.ok((await seen()) > askedAtMs / 1000 - 60)
    const runId = (await runOf(0))!
    await until('its end is told', () => told.includes(runId))
    assert.equal((await client.getRun({ params: { id: runId } })).state, 'finished')
    const refused = await fetch(`${one.url}/v1/runs`)
    assert.equal(refused.status, 404)
    assert.equal(refused.headers.get('content-type')?.split(';')[0], 'application/problem+json')
    assert.match(((await refused.json()) as { detail: string }).detail, /role scheduler/)
    for (const path of ['/livez', '/healthz', '/readyz', '/metrics'])
      assert.equal((await fetch(`${one.url}${path}`)).status, 200, path)

    one.kill('SIGKILL')
    await one.result
    await ask()
    await until('it fired again', async () => (await runOf(1)) !== undefined)
    const later = (await runOf(1))!
    await until('the second scheduler told of it', () => told.includes(later))
    assert.equal((await fetch(`${other.url}/healthz`)).status, 200)
    api.kill('SIGTERM')
    assert.match((await api.result).stderr, /no scheduler is there yet: .*--role scheduler/)
  } finally {
    worker.child.kill('SIGTERM')
    await worker.result
  }
})

test('requires a queue that the other parts of the server can reach', async () => {
  using folder = temporaryFolder()
  for (const role of ['api', 'scheduler']) {
    const { code, stderr } = await sluice(['serve', '--role', role, '--port', '0'], { cwd: folder.path })
    assert.equal(code, 2)
    assert.match(stderr, /--role .* there is no other process for the rest/)
  }
})
