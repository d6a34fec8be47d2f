/** What a fleet must survive: workers killed and frozen, its database restarted, a page that kills every worker that reads it. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { assertAllBooks, Fleet, until } from '../fleet.ts'
import { postgresForTests, startPostgres } from '../services/postgres.ts'
import { type BooksSite, startBooksSite } from '../site/books.ts'
import type { SluiceProcess } from '../sluice.ts'
import { temporaryFolder } from '../sluice.ts'
import { killMoment } from './kill-moment.ts'

const DETAILS = ['--arg', 'details=true']

test('loses and repeats nothing when workers are killed at random moments, again and again', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 1000, delayMs: 12 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url, ...DETAILS)
  const kills = await killWorkers(fleet, runId, site, { workers: 3, killsMax: 14 })
  assert.ok(kills >= 8, `only ${kills} kills hit the run`)
  await assertAllBooks(fleet, runId, site, 1000)
})

/** Keeps `workers` processes running and kills one of them every now and then, until the run is finished. */
async function killWorkers(
  fleet: Fleet,
  runId: string,
  site: BooksSite,
  { workers, killsMax }: { workers: number; killsMax: number },
) {
  const start = () => fleet.worker(runId, '--lease', '1500ms', '--concurrency', '8')
  const alive = Array.from({ length: workers }, start)
  let kills = 0
  while (alive.length > 0) {
    const ends = alive.map(({ result }) => result)
    await (kills === killsMax ? Promise.race(ends) : killMoment(site, 60, ends))
    const ended = alive.findIndex(({ child }) => child.exitCode !== null)
    if (ended !== -1) {
      const { code, stderr } = await alive.splice(ended, 1)[0]!.result
      assert.equal(code, 0, stderr)
      continue
    }
    const victim = alive.splice(Math.floor(Math.random() * alive.length), 1)[0]!
    victim.child.kill('SIGKILL')
    await victim.result
    kills++
    alive.push(start())
  }
  return kills
}

test('ignores a worker frozen past its lease when it wakes up', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 400, delayMs: 25 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url, ...DETAILS)
  const start = () => fleet.worker(runId, '--lease', '1500ms', '--concurrency', '8', '--log-level', 'debug')
  const [frozen, other] = [start(), start()]
  await until('both work', () => site.stats().requests > 80)
  for (let i = 0; i < 2 && frozen.child.exitCode === null; i++) {
    frozen.child.kill('SIGSTOP')
    await sleep(4000) // well past the lease
    frozen.child.kill('SIGCONT')
    await sleep(300)
  }
  for (const { result } of [frozen, other]) assert.equal((await result).code, 0, (await result).stderr)
  await assertAllBooks(fleet, runId, site, 400)
  const logs = await fleet.run('logs', runId, '--json')
  assert.match(logs.stdout, /"outcome":"stale"|lease lost/, 'what it did too late was refused, and the log says so')
})

test('continues the run after the database is restarted half-way', async () => {
  await using server = await startPostgres({ fsync: true })
  await using database = await server.createDatabase()
  await using site = await startBooksSite({ products: 500, delayMs: 15 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url, ...DETAILS)
  const workers = [1, 2].map(() => fleet.worker(runId, '--concurrency', '8', '--lease', '5s'))
  for (const [requests, how] of [
    [100, 'fast'],
    [250, 'immediate'],
  ] as const) {
    await until(`${requests} requests`, () => site.stats().requests > requests)
    await server.stop(how)
    await sleep(1500)
    await server.start()
  }
  for (const { result } of workers) assert.equal((await result).code, 0, (await result).stderr)
  await assertAllBooks(fleet, runId, site, 500)
})

test('turns a page that kills its worker every time into a dead letter, without losing others', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 60 })
  using folder = temporaryFolder()
  mkdirSync(join(folder.path, 'scrapers'))
  writeFileSync(
    join(folder.path, 'scrapers', 'poison.ts'),
    `import { defineScraper } from 'sluice'
     import * as z from 'zod'
     export default defineScraper({
       name: 'poison', item: z.object({ url: z.string() }), key: 'url', routes: { page: {} },
       args: z.object({ site: z.url() }),
       start: ({ args, enqueue }) => enqueue('page', Array.from({ length: 60 }, (_, i) => new URL('catalogue/page-1.html?n=' + i, args.site))),
       handlers: { page({ url, emit }) {
         if (url.searchParams.get('n') === '17') process.kill(process.pid, 'SIGKILL')
         return emit({ url: url.href })
       } },
     })`,
  )
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path, scraper: 'poison' })
  const { run_id: runId } = await fleet.start('--site', site.url)
  const start = () => fleet.worker(runId, '--lease', '1500ms', '--batch-size', '10', '--concurrency', '2')
  let deaths = 0
  const replaced = async (worker: SluiceProcess): Promise<void> => {
    const { signal, code, stderr } = await worker.result
    if (signal !== 'SIGKILL') return assert.ok(code === 0 || code === 1, stderr)
    assert.ok(++deaths < 20, 'the poison is given out without end')
    return await replaced(start())
  }
  await Promise.all([replaced(start()), replaced(start())])
  const { completed, dead, remaining } = await fleet.stats(runId)
  assert.deepEqual({ completed, dead, remaining }, { completed: 59, dead: 1, remaining: 0 })
  const { stdout } = await fleet.run('dlq', 'list', runId, '--json')
  assert.match(JSON.parse(stdout).letters[0].url, /n=17$/)
})

/** In its own mount namespace: the full disk is invisible to others and disappears with the script. */
const FULL_DISK = `
  mount -t tmpfs -o size=256k tmpfs "$DISK" || exit 77
  head -c 1000000 /dev/zero > "$DISK/ballast" 2> /dev/null
  cd "$DISK" && TMPDIR="$DISK" "$SLUICE" worker --scraper books --run-id "$RUN" --rps 0 --json`

test('a worker on a full disk does its work: everything that counts is in the database', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 100, misbehave: false })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url, ...DETAILS)
  const disk = join(folder.path, 'disk')
  mkdirSync(disk)
  const SLUICE = fileURLToPath(new URL('../../bin/sluice', import.meta.url))
  const env = {
    ...process.env,
    NODE_TEST_CONTEXT: undefined,
    SLUICE,
    DISK: disk,
    RUN: runId,
    SLUICE_FRONTIER: database.url,
  }
  const namespace = process.getuid?.() === 0 ? ['-m'] : ['-Urm']
  const script = spawn('unshare', [...namespace, 'sh', '-c', FULL_DISK], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const code = await new Promise((resolve) => script.once('exit', resolve))
  assert.notEqual(code, 77, 'this test mounts a small tmpfs: it needs root, or user namespaces')
  assert.equal(code, 0)
  await assertAllBooks(fleet, runId, site, 100)
})
