/** The same for a local run: `--processes 2` on SQLite, its processes killed and frozen, then resumed. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunRecord } from '../../../src/core/run.ts'
import { seeded } from '../../services/garbling-proxy.ts'
import { startBooksSite } from '../../site/books.ts'
import { type SluiceProcess, startSluice, temporaryFolder } from '../../sluice.ts'
import { compare, PRODUCTS, type ScheduleResult } from './schedule.ts'

const FAULTS = 6
const RESUMES_MAX = 20

export async function runSingleSchedule(seed: number): Promise<ScheduleResult> {
  const random = seeded(seed)
  await using site = await startBooksSite({ products: PRODUCTS, delayMs: 120 })
  using folder = temporaryFolder()
  const faults: string[] = []
  const wrong: string[] = []
  const args = ['run', 'books', '--site', site.url, '--arg', 'details=true', '--rps', '0', '--processes', '2']
  const all = [...args, '--lease', '3s', '--concurrency', '8', '--out', folder.path, '--quiet']
  let code: number | null = null
  for (let starts = 0; code === null && starts < RESUMES_MAX; starts++) {
    const isBegun = existsSync(join(folder.path, 'books'))
    const run = startSluice(isBegun ? [...all, '--resume'] : all)
    const ended = run.result.then((end) => end)
    while (faults.length < FAULTS && run.child.exitCode === null && run.child.signalCode === null) {
      const before = site.stats().requests
      for (let polls = 0; site.stats().requests === before && polls < 400 && run.child.exitCode === null; polls++)
        await sleep(25)
      await sleep(200 + random() * 800)
      if (run.child.exitCode === null) faults.push(await strike(run, random))
    }
    const end = await ended
    if (end.signal !== 'SIGKILL') {
      code = end.code
      if (code !== 0) wrong.push(`the run ended with ${code}: ${end.stderr.slice(-300)}`)
    }
  }
  const path = join(folder.path, 'books', 'latest')
  const record = JSON.parse(readFileSync(join(path, 'run.json'), 'utf8')) as RunRecord
  const lines = readFileSync(join(path, 'items.jsonl'), 'utf8').split('\n').filter(Boolean)
  const urls = lines.map((line) => String((JSON.parse(line) as { url: string }).url))
  const { state, items, pages } = record
  const counts = { state, items: items.new, ok: pages.ok, remaining: pages.remaining }
  const expected = { state: 'finished', items: PRODUCTS, ok: PRODUCTS + Math.ceil(PRODUCTS / 20), remaining: 0 }
  if (JSON.stringify(counts) !== JSON.stringify(expected)) wrong.push(`run.json ${JSON.stringify(counts)}`)
  return { engine: 'sqlite', seed, faults, ...compare(urls, site), wrong }
}

async function strike({ child }: SluiceProcess, random: () => number): Promise<string> {
  const kind = Math.floor(random() * 3)
  const children = childrenOf(child.pid!)
  const victim = children[Math.floor(random() * children.length)]
  if (kind === 0 || victim === undefined) {
    for (const pid of [child.pid!, ...children]) kill(pid, 'SIGKILL')
    return 'kill all'
  }
  if (kind === 1) {
    kill(victim, 'SIGKILL')
    return 'kill process'
  }
  kill(victim, 'SIGSTOP')
  await sleep(4_500)
  kill(victim, 'SIGCONT')
  return 'freeze process'
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' '))
      .filter(Boolean)
      .map(Number)
  } catch {
    return [] // it has just ended
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // it has ended on its own
  }
}
