/**
 * An end-to-end job for a running stack: books with details through the API, while workers come and go, and the checks
 * afterwards.
 */
import assert from 'node:assert/strict'
import { Client as Database } from 'pg'
import { type Client, createClient } from '../../src/server/api/client.ts'
import type { FileServer } from '../../test/files/file-server.ts'
import { until } from '../../test/fleet.ts'
import { type BooksSite, podOf } from '../../test/site/books.ts'
import { checkGallery, startGalleryRun } from './gallery.ts'
import type { Stack } from './stack.ts'

export interface JobOptions {
  site: BooksSite
  gallery: FileServer
  books: number
  /** Pages per second, for all workers together: the run must last longer than the scaling half-way. */
  rps: number
  /** Delays every response of the site by this from now on. */
  slowDown(ms: number): void
  /** Number of workers after a third of the run, and after two thirds. */
  scale: readonly [up: number, down: number]
  /** Make the schedule due now instead of waiting for its minute. */
  turnsClock: boolean
  say(line: string): void
  progress(line: string): void
}

export interface JobResult {
  runId: string
  pages: number
  items: number
  retried: number
  /** Stored by the file worker. */
  files: number
  runMs: number
  /** Number of page workers, and from which page on. */
  workers: { fromPage: number; atMs: number; count: number; tookMs: number }[]
  scheduledRunId: string
  targetsUp: number
  rules: number
  pending: string[]
}

const RUN_MS_MAX = 180_000
/** How long a page takes while workers start and stop: the run must not end before they are ready. */
const SCALING_PAGE_MS = 4_000
/** A minute until it is due, and a run of one page. */
const SCHEDULE_MS_MAX = 100_000

export async function runJob(stack: Stack, options: JobOptions): Promise<JobResult> {
  const { site } = options
  const client = createClient({ url: stack.apiUrl, key: stack.apiKey })
  await assert.rejects(
    createClient({ url: stack.apiUrl }).listRuns(),
    /401|E_UNAUTHORIZED|key/i,
    'the API answers without a key',
  )
  const schedule = await createSchedule(client, stack, options)
  const startedAtMs = performance.now()
  const limits = { concurrency: 8, perHost: { concurrency: 16, rps: options.rps } }
  const { id } = await client.startRun({ body: { scraper: 'books', args: { site: site.url, details: true }, limits } })
  options.say(`run ${id}: ${options.books} books with details from ${site.url}, ${options.rps} pages a second`)
  const filesId = await startGalleryRun(client, options.gallery.url)
  const workers = await follow(client, stack, id, options)
  const runMs = performance.now() - startedAtMs
  const record = await checkRun(client, id, site, options.books)
  const files = await checkGallery(client, filesId, stack.filesFolder)
  const scheduledRunId = await scheduledRun(client, schedule, stack)
  const observed = await checkPrometheus(stack)
  return { runId: id, ...record, files, runMs, workers, scheduledRunId, ...observed }
}

/** Follows the run to its end, and scales half-way. Throws if a process of the stack ends unexpectedly. */
async function follow(client: Client, stack: Stack, id: string, { books, scale, progress, say, slowDown }: JobOptions) {
  const startedAtMs = performance.now()
  const workers = [{ fromPage: 0, atMs: 0, count: stack.count('worker'), tookMs: 0 }]
  const steps = scale.map((count, i) => ({ count, fromPage: Math.floor((books * (i + 1)) / 3) }))
  await until(
    `run ${id} is finished`,
    async () => {
      checkAlive(stack)
      const { state, queue, pages } = await client.getRun({ params: { id } })
      progress(`${state}: ${queue.completed} pages done, ${queue.remaining} left, ${stack.count('worker')} workers`)
      const step = steps[0]
      if (step !== undefined && queue.completed >= step.fromPage) {
        assert.equal(state, 'running', `the run was over before the ${step.count} workers came: take more books`)
        steps.shift()
        const atMs = performance.now()
        slowDown(SCALING_PAGE_MS)
        for (const log of await stack.scale('worker', step.count)) checkDrained(log)
        const tookMs = performance.now() - atMs
        await until('every worker has begun', () =>
          stack.ours().every(({ name, log }) => name !== 'worker' || hasBegun(log)),
        )
        slowDown(0)
        say(`scaled to ${step.count} workers at page ${queue.completed}, ready after ${Math.round(tookMs)} ms`)
        workers.push({ fromPage: queue.completed, atMs: atMs - startedAtMs, count: step.count, tookMs })
      }
      assert.ok(state === 'running' || state === 'finished', `the run is ${state}, with ${pages.dead} dead pages`)
      return state === 'finished'
    },
    RUN_MS_MAX,
  )
  assert.equal(steps.length, 0, 'the run ended before all scaling was done')
  return workers
}

function checkAlive(stack: Stack): void {
  const [fallen] = stack.fallen()
  if (fallen === undefined) return
  throw new Error(`${fallen.name} (port ${fallen.port}) has ended, and nobody asked it to`)
}

const hasBegun = (log: string) => /^worker \S+ on run /m.test(log)

/** The worker reported how it ended for every run it was on; a killed worker does not. */
function checkDrained(log: string): void {
  const [begun, ended] = [/^worker \S+ on run /gm, /^ {2}this worker /gm].map((line) => log.match(line)?.length)
  assert.ok(begun !== undefined, `a worker that was stopped had done nothing:\n${log}`)
  assert.equal(ended, begun, `a worker did not drain:\n${log}`)
}

export const lastLines = (log: string): string => log.trimEnd().split('\n').slice(-15).join('\n')

async function checkRun(client: Client, id: string, site: BooksSite, books: number) {
  const { pages } = await client.getRun({ params: { id } })
  assert.deepEqual([pages.failed, pages.dead, pages.remaining], [0, 0, 0], 'failed, dead and remaining pages')
  const { data: dead } = await client.listDead({ query: { run: id } })
  assert.deepEqual(dead, [], 'dead letters')
  const items = await client.getItems({ params: { id }, query: { format: 'jsonl' } })
  const found = (await items.text()).split('\n').filter(Boolean).map((line) => JSON.parse(line).url as string) // biome-ignore format: one chain
  const wanted = Array.from({ length: books }, (_, i) => new URL(podOf(i + 1).path, site.url).href)
  assert.deepEqual(found.sort(), wanted.sort(), 'every book once')
  return { pages: pages.ok, items: found.length, retried: pages.retried }
}

/** Fires every minute from now on; created before the run, so that its minute passes in the meantime. */
async function createSchedule(client: Client, stack: Stack, { site, turnsClock }: JobOptions) {
  const args = { site: site.url, pages: 1 }
  const body = { name: 'every minute', scraper: 'books', args, limits: {}, cron: '* * * * *', overlap: 'skip' as const }
  const { id } = await client.createSchedule({ body })
  if (!turnsClock) return id
  const database = new Database({ connectionString: new Map(stack.links()).get('store') })
  await database.connect()
  try {
    const { rows } = await database.query("select schemaname from pg_tables where tablename = 'schedule'")
    const table = `${rows[0].schemaname}.schedule`
    await database.query(`update ${table} set next_ms = extract(epoch from now()) * 1000 where id = $1`, [id])
  } finally {
    await database.end()
  }
  return id
}

async function scheduledRun(client: Client, id: string, stack: Stack): Promise<string> {
  let runId: string | null | undefined
  const hasFired = async () => {
    checkAlive(stack)
    const { lastFires } = await client.getSchedule({ params: { id } })
    runId = lastFires.find(({ outcome }) => outcome === 'started')?.runId
    return runId != null && (await client.getRun({ params: { id: runId } })).state === 'finished'
  }
  await until('the scheduler has started a run, and it is finished', hasFired, SCHEDULE_MS_MAX)
  await client.deleteSchedule({ params: { id } })
  return runId!
}

/** Every process with metrics is scraped and up; no alert is firing. */
async function checkPrometheus({ prometheus, services }: Stack) {
  const names = ['api', 'scheduler', 'worker', 'file-worker', 'browser-worker', 'prometheus']
  const wanted = names.flatMap((name) => services.get(name) ?? []).map(({ port }) => `127.0.0.1:${port}`).sort() // biome-ignore format: one chain
  let seen = ''
  const isAllUp = async () => {
    const targets = await prometheus.targets()
    seen = targets.map(({ instance, health, lastError }) => `${instance} ${health} ${lastError}`).join('\n')
    const up = targets.filter(({ health }) => health === 'up').map(({ instance }) => instance)
    if (targets.length !== up.length || up.sort().join() !== wanted.join()) return false
    return (await prometheus.alerts()).every(({ name }) => name !== 'SluiceTargetDown') // for workers that were stopped
  }
  await until('all targets are up', isAllUp, 20_000).catch((error: Error) => {
    throw new Error(`${error.message}\n${seen}`)
  })
  const alerts = await prometheus.alerts()
  assert.deepEqual(alerts.filter(({ state }) => state === 'firing').map(({ name }) => name), [], 'alerts that fire') // biome-ignore format: one line reads better
  return { targetsUp: wanted.length, rules: await prometheus.rules(), pending: alerts.map(({ name }) => name) }
}
