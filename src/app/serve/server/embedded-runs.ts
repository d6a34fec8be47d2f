/** Runs that the server executes itself, each in its own process, so that a scraper that crashes affects nothing else. */
import { type Child, type ChildEnd, startChild } from '../../../core/child.ts'
import type { ErrorCode } from '../../../core/error-table.ts'
import { ScrapeError } from '../../../core/errors.ts'
import type { RunMessage, RunOrders } from './run-process.ts'

const PROGRAM = new URL('./run-process.ts', import.meta.url)
const STOP_MS_MAX = 35_000
/** A run whose process dies this often needs manual attention. */
const DEATHS_MAX = 3

interface EmbeddedRunsOptions {
  /** Server options that apply to its runs. */
  flags: Record<string, unknown>
  onDeath?: (runId: string, how: string, isGivenUp: boolean) => void
}

interface Embedded {
  child: Child<RunOrders>
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

  /** Resolves to the id once the run has started. Throws the error that keeps it from starting. */
  async start(
    order: Pick<RunOrders, 'scraper' | 'args' | 'resume'> & { flags?: Record<string, unknown> },
  ): Promise<string> {
    const orders: RunOrders = { ...order, flags: { ...this.#options.flags, ...order.flags } }
    return await this.#begin(orders, 0)
  }

  async #begin(orders: RunOrders, deaths: number): Promise<string> {
    if (this.#isStopping) throw new ScrapeError('E_STOPPED', 'the server is stopping')
    const { promise: said, resolve: onMessage } = Promise.withResolvers<RunMessage>()
    const child = startChild<RunOrders, RunMessage>(PROGRAM, { isHeard: false, onMessage })
    child.send(orders)
    const id = begun(await Promise.race([said, child.ended]), child, orders.scraper)
    this.#runs.set(id, { child, orders, deaths })
    void child.ended.then((end) => this.#onEnd(id, end))
    return id
  }

  /** A run that ended on its own has recorded that. A run that was killed is resumed. */
  #onEnd(id: string, { how, code }: ChildEnd): void {
    const run = this.#runs.get(id)
    this.#runs.delete(id)
    if (run === undefined || this.#isStopping || (code !== null && code < 128)) return
    const deaths = run.deaths + 1
    const isGivenUp = deaths >= DEATHS_MAX
    this.#options.onDeath?.(id, how, isGivenUp)
    if (isGivenUp) return
    this.#begin({ ...run.orders, resume: id }, deaths).catch((error: Error) =>
      this.#options.onDeath?.(id, error.message, true),
    )
  }

  /** The runs finish or hand back what is in flight, and stay resumable. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    await Promise.all([...this.#runs.values()].map(({ child }) => child.stop(STOP_MS_MAX)))
  }
}

/** The run's id; throws the error that kept it from starting. */
function begun(first: RunMessage | ChildEnd, child: Child<RunOrders>, scraper: string): string {
  if (!('kind' in first)) throw new ScrapeError('E_WORKERS_DIE', `the process of a run of "${scraper}" died at once`)
  if (first.kind === 'started') return first.id
  void child.stop(STOP_MS_MAX)
  const { code, message, notes, fix } = first
  throw new ScrapeError(code as ErrorCode, message, { notes, fix })
}
