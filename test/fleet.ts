/** Words for tests of a fleet: start a run on a database, work on it with real processes, look at what came out. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type SluiceProcess, type SluiceResult, sluice, startSluice } from './sluice.ts'

export interface QueuedRun {
  status: string
  run_id: string
  enqueued: number
  worker_command: string
}

export class Fleet {
  readonly #env: NodeJS.ProcessEnv
  readonly #cwd: string
  readonly #scraper: string

  /** `cwd` is where run folders go, and where a scraper of the test's own is looked for. */
  constructor({ frontier, cwd, scraper = 'books' }: { frontier: string; cwd: string; scraper?: string }) {
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

  /** Reads URLs from its standard input, which the caller writes and ends. */
  startFilling(...more: string[]): SluiceProcess {
    const args = ['start', this.#scraper, '--mode', 'distributed', '--json', '--urls-file', '-', ...more]
    return startSluice(args, { env: this.#env, cwd: this.#cwd, keepsInputOpen: true })
  }

  run(...args: string[]): Promise<SluiceResult> {
    return sluice(args, { env: this.#env, cwd: this.#cwd })
  }

  async stats(runId: string): Promise<Record<string, number>> {
    const { code, stdout, stderr } = await this.run('stats', runId, '--json')
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout)
  }

  /** Every item of the run, read as a user would. */
  async items(runId: string): Promise<Record<string, unknown>[]> {
    const { code, stdout, stderr } = await this.run('export', runId)
    assert.equal(code, 0, stderr)
    return stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  }
}

/** Waits for `isSo`, asked again and again; fails after `ms`, which guards against a hang and says nothing about speed. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, ms = 240_000): Promise<void> {
  const endMs = Date.now() + ms
  while (!(await isSo())) {
    assert.ok(Date.now() < endMs, `not within ${ms} ms: ${what}`)
    await sleep(25)
  }
}
