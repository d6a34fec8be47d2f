/** A seeded schedule of faults: real workers on a loopback site, hit at random moments, then checked. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fleet, until } from '../../fleet.ts'
import { seeded } from '../../services/garbling-proxy.ts'
import { type BooksSite, startBooksSite, truth } from '../../site/books.ts'
import { type SluiceProcess, temporaryFolder } from '../../sluice.ts'
import { type FaultyServer, FLEET_ENGINES, type FleetEngine } from './engines.ts'

export interface ScheduleResult {
  engine: string
  seed: number
  faults: string[]
  lost: number
  doubled: number
  /** Other problems: counts, states, exit codes. */
  wrong: string[]
}

export const PRODUCTS = 150
const FAULTS = 6
const LEASE_MS = 3_000

export async function runFleetSchedule(engine: FleetEngine, seed: number): Promise<ScheduleResult> {
  const random = seeded(seed)
  await using place = await FLEET_ENGINES[engine]()
  await using site = await startBooksSite({ products: PRODUCTS, delayMs: 120 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: place.frontier, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url, '--arg', 'details=true')
  const start = () => fleet.worker(runId, '--lease', `${LEASE_MS}ms`, '--concurrency', '4', '--batch-size', '8')
  const workers = [start(), start(), start()]
  const faults: string[] = []
  await until('the first pages are asked for', () => site.stats().requests > 3, 60_000)
  for (let i = 0; i < FAULTS; i++) {
    await sleep(200 + random() * 1_000)
    faults.push(await strike({ workers, start, servers: place.servers, random }))
  }
  const ends = await Promise.all(workers.map(({ result }) => result))
  const wrong = ends.flatMap(({ code, signal, stdout, stderr }) =>
    code === 0 || signal === 'SIGKILL' || isStartedInVain(code, stderr)
      ? []
      : [`a worker ended with ${code}: ${(stderr || stdout).slice(-300)}`],
  )
  // All may have been killed before the end.
  const last = await start().result
  if (last.code !== 0) wrong.push(`the last worker ended with ${last.code}: ${last.stderr.slice(-300)}`)
  const { completed, remaining, items, state } = await fleet.stats(runId)
  const urls = (await fleet.items(runId)).map(({ url }) => String(url))
  const counts = { completed, remaining, items, state }
  const expected = { completed: PRODUCTS + Math.ceil(PRODUCTS / 20), remaining: 0, items: PRODUCTS, state: 'finished' }
  if (JSON.stringify(counts) !== JSON.stringify(expected)) wrong.push(`stats ${JSON.stringify(counts)}`)
  return { engine, seed, faults, ...compare(urls, site), wrong }
}

/** Started while a server was down: it reports that and exits with 3, and its supervisor starts it again. */
const isStartedInVain = (code: number | null, stderr: string) => code === 3 && stderr.includes('E_SERVICE')

interface Strike {
  workers: SluiceProcess[]
  start: () => SluiceProcess
  servers: readonly FaultyServer[]
  random: () => number
}

/** One fault, and its recovery: what was killed is started again. */
async function strike({ workers, start, servers, random }: Strike): Promise<string> {
  const victim = workers[Math.floor(random() * workers.length)]!
  const server = servers[Math.floor(random() * servers.length)]!
  const kind = Math.floor(random() * 4)
  if (kind === 0) {
    victim.child.kill('SIGKILL')
    workers.push(start())
    return 'kill worker'
  }
  if (kind === 1) {
    victim.child.kill('SIGSTOP')
    await sleep(LEASE_MS + 1_500)
    victim.child.kill('SIGCONT')
    return 'freeze worker'
  }
  if (kind === 2) {
    await server.crash()
    await sleep(random() * 1_500)
    await server.start()
    return `kill ${server.name}`
  }
  server.cut()
  return `cut ${server.name}`
}

export function compare(urls: readonly string[], site: BooksSite): { lost: number; doubled: number } {
  const found = new Set(urls)
  const expected = [...truth(PRODUCTS)].map(({ path }) => new URL(path, site.url).href)
  return { lost: expected.filter((url) => !found.has(url)).length, doubled: urls.length - found.size }
}
