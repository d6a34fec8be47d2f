/** Runs a server carries out itself, each in a process of its own: a scraper that dies takes nobody along. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ErrorCode } from '../../../core/error-table.ts'
import { ScrapeError } from '../../../core/errors.ts'
import type { RunMessage, RunOrders } from './run-process.ts'

const PROGRAM = fileURLToPath(new URL('./run-process.ts', import.meta.url))
const STOP_MS_MAX = 35_000
/** A run whose process dies this often is left for a person to look at. */
const DEATHS_MAX = 3

interface EmbeddedRunsOptions {
  /** Options of the server that hold for its runs. */
  flags: Record<string, unknown>
  onDeath?: (runId: string, how: string, isGivenUp: boolean) => void
}

interface Embedded {
  child: ChildProcess
  orders: RunOrders
  deaths: number
}

export class EmbeddedRuns implements AsyncDisposable {
  readonly #options: EmbeddedRunsOptions
  readonly #runs = new Map<string, Embedded>()
  #isStopping = false

  constructor(options: EmbeddedRunsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#runs.size
  }

  /** Resolves with the id once the run has begun. Throws what keeps it from beginning. */
  async start(
    order: Pick<RunOrders, 'scraper' | 'args' | 'resume'> & { flags?: Record<string, unknown> },
  ): Promise<string> {
    const orders: RunOrders = { ...order, flags: { ...this.#options.flags, ...order.flags } }
    return await this.#begin(orders, 0)
  }

  async #begin(orders: RunOrders, deaths: number): Promise<string> {
    if (this.#isStopping) throw new ScrapeError('E_STOPPED', 'the server is stopping')
    const child = fork(PROGRAM, [], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    child.send(orders)
    const id = await begun(child, orders.scraper)
    this.#runs.set(id, { child, orders, deaths })
    child.once('exit', (code, signal) => this.#onExit(id, code, signal))
    return id
  }

  /** One that ended by itself has said so in its record. One that was killed goes on where it was. */
  #onExit(id: string, code: number | null, signal: NodeJS.Signals | null): void {
    const run = this.#runs.get(id)
    this.#runs.delete(id)
    if (run === undefined || this.#isStopping || (signal === null && code !== null && code < 128)) return
    const deaths = run.deaths + 1
    const isGivenUp = deaths >= DEATHS_MAX
    this.#options.onDeath?.(id, signal ?? `exit code ${code}`, isGivenUp)
    if (isGivenUp) return
    this.#begin({ ...run.orders, resume: id }, deaths).catch((error: Error) =>
      this.#options.onDeath?.(id, error.message, true),
    )
  }

  /** They finish or hand back what is in flight, and stay resumable. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    await Promise.all(
      [...this.#runs.values()].map(async ({ child }) => {
        if (child.exitCode !== null || child.signalCode !== null) return
        const ended = once(child, 'exit')
        child.kill('SIGTERM')
        const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
        await ended
        clearTimeout(timer)
      }),
    )
  }
}

async function begun(child: ChildProcess, scraper: string): Promise<string> {
  const [message] = (await Promise.race([once(child, 'message'), once(child, 'exit').then(() => [undefined])])) as [
    RunMessage | undefined,
  ]
  if (message?.kind === 'started') return message.id
  child.kill()
  if (message === undefined) throw new ScrapeError('E_WORKERS_DIE', `the process of a run of "${scraper}" died at once`)
  const { code, message: text, notes, fix } = message
  throw new ScrapeError(code as ErrorCode, text, { notes, ...(fix === undefined ? {} : { fix }) })
}
