/** A real Prometheus watches a real fleet: which alerts a healthy run, a frozen worker and a failing site raise. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client } from 'pg'
import { DASHBOARDS } from '../scripts/dashboards/panels.ts'
import { Fleet, until } from '../test/fleet.ts'
import { startServe } from '../test/serve.ts'
import { freePort } from '../test/services/free-port.ts'
import { postgresForTests } from '../test/services/postgres.ts'
import { type Alert, type PrometheusServer, startPrometheus } from '../test/services/prometheus.ts'
import { startBooksSite } from '../test/site/books.ts'
import { type SluiceProcess, temporaryFolder } from '../test/sluice.ts'
import { hurriedRules } from './alerts.ts'

/** What the machine of the test does is not the fleet's: a full disk, a busy core, a late scrape or idle second are no failure here. */
const OF_MACHINE = /Disk|EventLoop|TargetDown|WhileWorkersIdle/
/** Slow enough that 30 pages outlast the start of Prometheus. */
const FAILS_AFTER_MS = 1_000
/** Metrics of what this fleet has none of: proxies, browsers, files, blocks, webhooks, schedules, sinks (PostgreSQL keeps the items). */
const NOT_HERE = /sluice_(proxy|browser|file|files|throttled|webhook|schedule|run_last_success)_|stage="sink"/

const FAILING = `
  import { defineScraper } from 'sluice'
  import * as z from 'zod'
  export default defineScraper({
    name: 'failing', item: z.object({ url: z.string() }), routes: { page: {} }, args: z.object({ site: z.url() }),
    start: ({ args, enqueue }) => enqueue('page', Array.from({ length: 30 }, (_, i) => new URL('/' + i, args.site))),
    handlers: { page() {} },
  })`

/** Of the fleet that works on a healthy site. */
async function firing(prometheus: PrometheusServer): Promise<string[]> {
  const alerts = await prometheus.alerts()
  const isHere = ({ name, state, labels }: Alert) =>
    state === 'firing' && !OF_MACHINE.test(name) && labels['scraper'] !== 'failing'
  return alerts.filter(isHere).map(({ name }) => name)
}

async function silenceInStore(url: string, pid: number): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('update sluice.worker set beat_ms = beat_ms - 60000 where pid = $1', [pid])
  } finally {
    await client.end()
  }
}

async function failingSite(): Promise<AsyncDisposable & { url: string }> {
  const refuse = (response: ServerResponse) => setTimeout(() => response.writeHead(500).end(), FAILS_AFTER_MS)
  // Without a readable robots.txt no page would be tried.
  const server = createServer(({ url }, response) =>
    url === '/robots.txt' ? response.writeHead(404).end() : void refuse(response),
  ).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function end(worker: SluiceProcess): Promise<void> {
  worker.child.kill('SIGKILL')
  await worker.result
}

test('a healthy run raises no alert, a frozen worker and a failing site do, and every panel has an answer', async () => {
  await using parts = new AsyncDisposableStack()
  const database = parts.use(await postgresForTests())
  const site = parts.use(await startBooksSite({ products: 20_000, delayMs: 40 }))
  const folder = parts.use(temporaryFolder())
  mkdirSync(join(folder.path, 'scrapers'))
  writeFileSync(join(folder.path, 'scrapers', 'failing.ts'), FAILING)
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const served = parts.use(await startServe(['--workers', '0'], { cwd: folder.path, env: { SLUICE_FRONTIER: database.url } })) // biome-ignore format: one line reads better
  const ports = [await freePort(), await freePort(), await freePort()] as const
  const { run_id: runId } = await fleet.start('--site', site.url, '--arg', 'details=true')
  const workers = [ports[0], ports[1]].map((port) =>
    fleet.worker(runId, '--metrics', `127.0.0.1:${port}`, '--concurrency', '4'),
  )
  for (const worker of workers) parts.defer(() => end(worker))
  for (const { result } of workers) void result.then(({ signal, stderr }) => signal ?? console.error(stderr)) // it says why
  const broken = parts.use(await failingSite())
  const others = new Fleet({ frontier: database.url, cwd: folder.path, scraper: 'failing' })
  const { run_id: brokenId } = await others.start('--site', broken.url)
  const failing = others.worker(brokenId, '--metrics', `127.0.0.1:${ports[2]}`, '--concurrency', '2')
  parts.defer(() => end(failing))
  const up = async (port: number) =>
    (await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined))?.ok === true
  await until('the workers have metrics', async () => (await Promise.all(ports.map(up))).every(Boolean))
  const prometheus = parts.use(
    await startPrometheus({
      intervalMs: 1000,
      rules: { 'sluice.yml': hurriedRules() },
      targets: [
        { job: 'sluice-server', address: new URL(served.url).host },
        { job: 'sluice-worker', address: `127.0.0.1:${ports[0]}` },
        { job: 'sluice-worker', address: `127.0.0.1:${ports[1]}` },
        { job: 'failing', address: `127.0.0.1:${ports[2]}` }, // may end before the others do
      ],
    }),
  )
  const isTrue = async (expression: string) => (await prometheus.query(expression)).length > 0
  // One late scrape, and an instant query finds nothing.
  const becomesTrue = (expression: string) => until(expression, () => isTrue(expression))
  await until('the rules have seen pages for longer than an alert waits', () =>
    isTrue('count_over_time(sluice:error_ratio:rate5m{scraper="books"}[30s]) > 7'),
  )
  assert.deepEqual(await firing(prometheus), [])
  await becomesTrue('sluice_workers{job="sluice-server",scraper="books",state="working"} == 2')
  await becomesTrue('sluice_queue_tasks{job="sluice-server",scraper="books",state="claimed"} > 0')
  await becomesTrue('sluice_queue_oldest_age_seconds{job="sluice-server",scraper="books"} > 0')

  const frozen = workers[0]!.child
  frozen.kill('SIGSTOP')
  await silenceInStore(database.url, frozen.pid!) // as after a minute
  const isStuck = async () => {
    const stuck = (await prometheus.alerts()).find(
      ({ name, state }) => name === 'SluiceWorkersStuck' && state === 'firing',
    )
    return /^1 workers of books have sent no heartbeat/.test(stuck?.annotations['description'] ?? '')
  }
  await until('the frozen worker is an alert that says so', isStuck)
  frozen.kill('SIGCONT')
  await until('it is none any more', async () => !(await firing(prometheus)).includes('SluiceWorkersStuck'))

  // As it was at any time: its tries may all be used up by now.
  const isRefused = 'ALERTS{alertname="SluiceErrorRatioHigh",scraper="failing",alertstate="firing"}'
  await becomesTrue(`count_over_time(${isRefused}[5m]) > 0`)
  for (const { name, panels } of DASHBOARDS)
    for (const { title, queries } of panels)
      for (const [expression] of queries) {
        if (NOT_HERE.test(expression)) continue
        const asked = expression.replaceAll(/\$\w+/g, '.*').replaceAll(/\[\d+[mh]\]/g, '[1m]')
        await until(`${name}: ${title}: ${expression} has an answer`, () => isTrue(asked))
      }
})
