/** Shared by the families of the hostile benchmark: the command, its limits, its log, and the result of each case. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Cost, runMeasured } from '../process-tree.ts'
import type { Outcome } from './cases.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const SLUICE = join(ROOT, 'bin', 'sluice')
/** Long enough for every page that arrives at all, even on a busy machine. */
export const TIMEOUT_MS = 8000
/** The deadlines of a page and its robots.txt, plus time to read it on a busy machine. */
export const LIMIT_MS = 2 * TIMEOUT_MS + 4000
export const RUN_MS_MAX = 120_000
export const NO_RETRIES = ['--retries', '0', '--circuit', 'off', '--timeout', `${TIMEOUT_MS}ms`, '--wait', '1s', '--rps', '0'] // biome-ignore format: one line reads better

export interface Family {
  readonly family: string
  readonly cases: number
  readonly right: number
  readonly wrong: string[]
  readonly longestMs: number
  readonly limitMs: number
  readonly peakRssMb: number
}

export interface LogEvent {
  readonly event: string
  readonly url: string
  readonly outcome: string
  readonly fetchMs?: number
  readonly parseMs?: number
  /** For a file. */
  readonly ms?: number
  readonly error?: { code: string; message: string }
}

/** A complete run of a scraper in this folder, and its log events about pages or files. */
export async function run(
  scraper: string,
  folder: string,
  args: readonly string[],
  { of = 'page', env }: { of?: 'page' | 'file'; env?: NodeJS.ProcessEnv } = {},
): Promise<{ cost: Cost; events: LogEvent[] }> {
  const out = join(folder, 'runs')
  const file = join(ROOT, 'bench', 'scrapers', `${scraper}.ts`)
  const cost = await runMeasured(SLUICE, ['run', file, '--out', out, '--log-level', 'debug', '--quiet', ...args], {
    cwd: folder,
    timeoutMs: RUN_MS_MAX,
    sampleMs: 20,
    env: { ...process.env, ...env },
  })
  if (![0, 1, 4].includes(cost.exitCode)) throw new Error(`sluice ended with ${cost.exitCode}:\n${cost.stderr}`)
  const log = await readFile(join(out, scraper, 'latest', 'log.jsonl'), 'utf8')
  const lines = log.split('\n').filter((line) => line !== '')
  return { cost, events: lines.map((line) => JSON.parse(line) as LogEvent).filter(({ event }) => event === of) }
}

export interface End {
  readonly name: string
  readonly expect: Outcome
  readonly got: string
  readonly ms: number
  readonly message?: string | undefined
}

/** How a page or file ended; undefined event: it did not. */
export function endOf(name: string, expect: Outcome, event: LogEvent | undefined): End {
  const isWell = event?.outcome === 'ok' || event?.outcome === 'stored' || event?.outcome === 'recorded'
  const got = event?.error?.code ?? (isWell ? 'page' : 'no end')
  const ms = event?.ms ?? (event?.fetchMs ?? 0) + (event?.parseMs ?? 0)
  return { name, expect, got, ms, message: event?.error?.message }
}

export function familyOf(family: string, ends: readonly End[], peakRssMb: number, limitMs = LIMIT_MS): Family {
  const wrong = ends.filter(({ got, expect }) => got !== expect)
  return {
    family,
    cases: ends.length,
    right: ends.length - wrong.length,
    wrong: wrong.map(({ name, got, expect, message }) => `${name}: ${got} instead of ${expect} ${message ?? ''}`),
    longestMs: Math.round(Math.max(...ends.map(({ ms }) => ms))),
    limitMs,
    peakRssMb: Math.round(peakRssMb),
  }
}
