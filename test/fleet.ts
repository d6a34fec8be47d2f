/** Helpers for fleet tests: start a run on a database, work on it with real processes, inspect the result. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { statsJson } from '../src/cli/stats-text.ts'
import type { RunRecord } from '../src/core/run.ts'
import { exportItems } from '../src/runs/export-items.ts'
import { openRun } from '../src/runs/open-run.ts'
import { averageRate, runStats } from '../src/runs/run-numbers.ts'
import type { RunPlaces } from '../src/runs/run-view.ts'
import { type BooksSite, PAGE_SIZE, truth } from './site/books.ts'
import { type SluiceProcess, type SluiceResult, sluice, startSluice } from './sluice.ts'

export interface QueuedRun {
  status: string
  run_id: string
  enqueued: number
  worker_command: string
}

export class Fleet {
  readonly #frontier: string
  readonly #env: NodeJS.ProcessEnv
  readonly #cwd: string
  readonly #scraper: string

  /** `cwd` is where run folders go, and where a test's own scraper is found. */
  constructor({ frontier, cwd, scraper = 'books' }: { frontier: string; cwd: string; scraper?: string }) {
    this.#frontier = frontier
    this.#env = { SLUICE_FRONTIER: frontier }
    this.#cwd = cwd
    this.#scraper = scraper
  }

  async start(...more: string[]): Promise<QueuedRun> {
    const result = await this.run('start', this.#scraper, '--mode', 'distributed', '--json', ...more)
    assert.equal(result.code, 0, result.stderr)
    return JSON.parse(result.stdout)
  }

  worker(runId: string, ...more: string[]): SluiceProcess {
    const args = ['worker', '--scraper', this.#scraper, '--run-id', runId, '--rps', '0', '--json', ...more]
    return startSluice(args, { env: this.#env, cwd: this.#cwd })
  }

  /** Reads URLs from standard input, which the caller writes and ends. */
  startFilling(...more: string[]): SluiceProcess {
    const args = ['start', this.#scraper, '--mode', 'distributed', '--json', '--urls-file', '-', '--allow-private']
    return startSluice([...args, ...more], { env: this.#env, cwd: this.#cwd, keepsInputOpen: true })
  }

  run(...args: string[]): Promise<SluiceResult> {
    return sluice(args, { env: this.#env, cwd: this.#cwd })
  }

  stats(runId: string): Promise<RunStats> {
    return statsOf(runId, this.#places)
  }

  /** As shown by the API. */
  async record(runId: string): Promise<RunRecord> {
    await using run = await openRun(runId, this.#places)
    return run.record
  }

  /** Every item of the run, as `sluice export` writes it. */
  async items(runId: string): Promise<Record<string, unknown>[]> {
    await using run = await openRun(runId, this.#places)
    let text = ''
    for await (const piece of exportItems({ run, format: 'jsonl', formulaSafe: false })) text += piece
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  }

  get #places(): RunPlaces {
    return placesIn(this.#cwd, this.#frontier)
  }
}

export type RunStats = ReturnType<typeof statsJson>

/** The output of `sluice stats --json`, in this process: tests poll it, and each start of the command costs 0.4 s of CPU. */
export async function statsOf(word: string, places: RunPlaces): Promise<RunStats> {
  await using run = await openRun(word, places)
  const [numbers] = await Promise.all([runStats(run), run.askBroker()])
  return statsJson(run, numbers, averageRate(run, numbers))
}

/** Where a command run in this folder looks for runs. */
export function placesIn(cwd: string, frontier = 'sqlite:'): RunPlaces {
  const store = /^postgres/.test(frontier) ? frontier : `sqlite:${cwd}/.sluice/sluice.db`
  return { out: join(cwd, 'runs'), frontier, store }
}

/** Every book once, and counts as if nothing had ever been killed. */
export async function assertAllBooks(fleet: Fleet, runId: string, site: BooksSite, products: number): Promise<void> {
  const items = await fleet.items(runId)
  assert.equal(items.length, products)
  const urls = new Set(items.map(({ url }) => url))
  assert.deepEqual(urls, new Set([...truth(products)].map(({ path }) => new URL(path, site.url).href)))
  const { remaining, failed, completed } = await fleet.stats(runId)
  const pages = products + Math.ceil(products / PAGE_SIZE)
  assert.deepEqual({ remaining, failed, completed }, { remaining: 0, failed: 0, completed: pages })
  const record = await fleet.record(runId)
  assert.deepEqual([record.pages.ok, record.pages.failed, record.errors], [pages, 0, []])
  assert.deepEqual(record.items, { new: products, same: 0, changed: 0, invalid: 0 })
  assert.deepEqual(record.fieldFill, fillOf(items))
}

/** Share of the items that have a value in each field. */
export function fillOf(items: readonly Record<string, unknown>[]): Record<string, number> {
  const filled = new Map<string, number>()
  for (const item of items)
    for (const [field, value] of Object.entries(item))
      if (value !== null && value !== '') filled.set(field, (filled.get(field) ?? 0) + 1)
  return Object.fromEntries([...filled].map(([field, count]) => [field, count / items.length]))
}

/** Polls until `isSo` is true; fails after `ms`, which guards against a hang and says nothing about speed. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, ms = 240_000): Promise<void> {
  const endMs = Date.now() + ms
  while (!(await isSo())) {
    assert.ok(Date.now() < endMs, `not within ${ms} ms: ${what}`)
    await sleep(25)
  }
}
