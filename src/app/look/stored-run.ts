/** A run of a fleet, seen from outside: its record and workers are in the store, its queue and items in the frontier. */
import { ScrapeError } from '../../core/errors.ts'
import type { RunRecord } from '../../core/run.ts'
import { DEFAULT_LANE } from '../../core/task.ts'
import type { Frontier } from '../../frontier/contract.ts'
import type { Store, StoredRun, StoredWorker } from '../../orchestrator/contract.ts'
import { isFleetQueue, openFleetFrontier, openStore } from '../fleet/fleet.ts'
import { updateFleetRecord } from '../fleet/fleet-record.ts'
import { urlOfPlace, withoutPassword } from '../run/run-identity.ts'
import {
  type BrokerQueue,
  type ItemLine,
  livingWorkers,
  type OpenRun,
  type RunItems,
  type RunLogLines,
  type RunPlaces,
  withStore,
} from './open-run.ts'

const SNAPSHOT_HEAD_BYTES = 16 * 1024
const ITEMS_READ = 500
const LOG_LINES_READ = 500

/** By id, or the newest of a scraper, or of all. */
export async function findStoredRun(word: string | undefined, places: RunPlaces): Promise<OpenRun | undefined> {
  const parts = new AsyncDisposableStack()
  try {
    const store = parts.use(await openStore(withStore(places)))
    const found = await store.findRun(word)
    if (found !== undefined) return await openStoredRun(found, { store, places, parts: parts.move() })
    await parts.disposeAsync()
    return undefined
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}

export interface StoredRunParts {
  store: Store
  places: RunPlaces
  /** Closed with the run; what it shares with others is not in it. */
  parts?: AsyncDisposableStack
}

export async function openStoredRun(
  { record }: StoredRun,
  { store, places, parts = new AsyncDisposableStack() }: StoredRunParts,
): Promise<OpenRun> {
  try {
    const url = isFleetQueue(places.frontier)
      ? places.frontier // this machine may reach the place by another name
      : urlOfPlace(record.frontier, places.store ?? '')
    const frontier = parts.use(await openFleetFrontier({ frontier: url, redis: places.redis }, record.id, { store }))
    const readQueues = /^amqps?:/i.test(url) ? () => brokerQueues(url, record.id, frontier) : undefined
    const run = new FleetRun({ store, frontier, record, readQueues, parts: parts.move() })
    await run.refresh()
    return run
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}

interface FleetRunParts {
  store: Store
  frontier: Frontier
  record: RunRecord
  readQueues: (() => Promise<BrokerQueue[] | undefined>) | undefined
  parts: AsyncDisposableStack
}

class FleetRun implements OpenRun {
  readonly #store: Store
  readonly #parts: AsyncDisposableStack
  readonly frontier: Frontier
  readonly log: RunLogLines
  readonly folder = undefined
  readonly #readQueues: FleetRunParts['readQueues']
  record: RunRecord
  workers: StoredWorker[] = []
  broker: BrokerQueue[] | undefined

  constructor({ store, frontier, record, readQueues, parts }: FleetRunParts) {
    this.#readQueues = readQueues
    this.#store = store
    this.#parts = parts
    this.frontier = frontier
    this.record = record
    this.log = new StoreLog(store, record.id, () => this.isOver && !this.isAlive)
  }

  get isAlive(): boolean {
    return livingWorkers(this)!.length > 0
  }

  /** Without workers it waits for some. */
  get isOver(): boolean {
    return this.record.state !== 'running'
  }

  get place(): string {
    return withoutPassword(this.#store.place)
  }

  get word(): string {
    return this.record.id
  }

  async refresh(): Promise<void> {
    const { id } = this.record
    const found = await this.#store.findRun(id)
    if (found === undefined) throw new ScrapeError('E_RUN_NOT_FOUND', `run ${id} is not in ${this.place} any more`)
    this.workers = await this.#store.listWorkers({ runId: id })
    const { record } = found
    updateFleetRecord(record, await this.frontier.stats(), this.workers, Date.now())
    this.record = record
    this.broker = await this.#readQueues?.()
  }

  async snapshot(name: string): Promise<{ place: string; head: string | undefined }> {
    const bytes = await this.#store.getSnapshot(this.record.id, name)
    const head = bytes === undefined ? undefined : Buffer.from(bytes).subarray(0, SNAPSHOT_HEAD_BYTES).toString('utf8')
    return { place: name, head }
  }

  async items(): Promise<RunItems> {
    const { items } = this.frontier
    async function* batches(): AsyncGenerator<readonly ItemLine[]> {
      for (let afterSeq = 0; ; ) {
        const rows = await items.read({ afterSeq, max: ITEMS_READ })
        if (rows.length === 0) return
        yield rows
        afterSeq = rows.at(-1)!.seq
      }
    }
    async function* text(): AsyncGenerator<string> {
      for await (const rows of batches()) yield rows.map(({ json }) => `${json}\n`).join('')
    }
    return { isKeyed: true, batches, text, columns: async () => undefined }
  }

  finishedFile(): undefined {
    return undefined
  }

  async saveRecord(record: RunRecord): Promise<boolean> {
    const isSaved = await this.#store.saveRun(record, [this.record.state])
    if (isSaved) this.record = record
    return isSaved
  }

  /** A finished run takes workers again. One that was stopped by hand stays so: who stopped it had a reason. */
  async reopen(): Promise<void> {
    if (this.record.state !== 'finished') return
    await this.frontier.setMeta('stop', '')
    await this.saveRecord({ ...this.record, state: 'running', reason: null, exitCode: null, finishedAt: null })
  }

  resumeCommand(): string[] {
    const { source, id, state } = this.record
    if (state === 'running' || state === 'finished') return ['worker', '--scraper', source, '--run-id', id]
    return ['start', source, '--mode', 'distributed', '--resume', id]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync()
  }
}

const BROKER_MS_MAX = 1_000

/** Undefined where nobody answers: many brokers have no management API, and none is needed. */
async function brokerQueues(url: string, runId: string, frontier: Frontier): Promise<BrokerQueue[] | undefined> {
  const [{ managementOf, readBroker }, { namesOf }] = await Promise.all([
    import('../../frontier/rabbit/management.ts'),
    import('../../frontier/rabbit/names.ts'),
  ])
  const names = namesOf(runId)
  const lanes = [...new Set([DEFAULT_LANE, 'priority', ...Object.keys((await frontier.stats()).lanes)])]
  const queues = [...lanes.map((lane) => names.work(lane).queue), names.expired.queue, names.failed.queue]
  const { url: management, vhost } = managementOf(url)
  try {
    const read = await readBroker(management, { vhost, queues, timeoutMs: BROKER_MS_MAX })
    return read.filter(({ isThere }) => isThere).map(({ isThere: _, ...queue }) => queue)
  } catch {
    return undefined
  }
}

class StoreLog implements RunLogLines {
  readonly #store: Store
  readonly #runId: string
  readonly #isComplete: () => boolean
  #after = 0

  constructor(store: Store, runId: string, isComplete: () => boolean) {
    this.#store = store
    this.#runId = runId
    this.#isComplete = isComplete
  }

  async *read(): AsyncGenerator<readonly string[]> {
    for (;;) {
      const lines = await this.#store.readLogs(this.#runId, { after: this.#after, max: LOG_LINES_READ })
      if (lines.length === 0) return
      yield lines.map(({ line }) => line.trimEnd())
      this.#after = lines.at(-1)!.id
    }
  }

  isComplete(): boolean {
    return this.#isComplete()
  }
}
