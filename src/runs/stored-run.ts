/** A fleet run, seen from outside: its record and workers are in the store, its queue and items in the frontier. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseEngineUrl } from '../core/engine-url.ts'
import { ScrapeError } from '../core/errors.ts'
import { isComplete, type RunRecord, type RunState } from '../core/run.ts'
import { DEFAULT_LANE } from '../core/task.ts'
import type { FileRecord } from '../files/contract.ts'
import type { Frontier, ItemLog } from '../frontier/contract.ts'
import type { Store, StoredRun, StoredWorker } from '../store/contract.ts'
import { listFiles, recordsBeside } from './file-records.ts'
import { openStore, storeUrlOf } from './fleet-places.ts'
import { lastReported, updateFleetRecord } from './fleet-record.ts'
import { withStore } from './open-run.ts'
import { isQueueTrouble } from './queue-of-run.ts'
import { openQueueToLook } from './queue-view.ts'
import { pictureOf } from './run-folder.ts'
import { type QueuePlace, urlOfPlace, withoutPassword } from './run-identity.ts'
import { livingWorkers } from './run-numbers.ts'
import {
  type BrokerQueue,
  frontierOf,
  numberOfPosition,
  type OpenRun,
  type PlacedLine,
  type RunItems,
  type RunLogLines,
  type RunPlaces,
} from './run-view.ts'

const SNAPSHOT_HEAD_BYTES = 16 * 1024
const ITEMS_READ = 500
const LOG_LINES_READ = 500

/** Found by id, or the newest of a scraper, or of all. */
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

interface StoredRunParts {
  store: Store
  places: RunPlaces
  /** Closed with the run; parts shared with others are not included. */
  parts?: AsyncDisposableStack
}

export async function openStoredRun(
  { record }: StoredRun,
  { store, places, parts = new AsyncDisposableStack() }: StoredRunParts,
): Promise<OpenRun> {
  try {
    const url = queueUrlFor(record, places)
    const queue = await openOrTell({ frontier: url, redis: places.redis }, record, store)
    if (queue.frontier !== undefined) parts.use(queue.frontier)
    const { frontier } = queue
    const hasBroker = parseEngineUrl(url).engine === 'amqp'
    const readQueues = hasBroker && frontier !== undefined ? () => brokerQueues(url, record.id, frontier) : undefined
    const records = recordsBeside(storeUrlOf(withStore(places))!)
    const run = new FleetRun({ store, ...queue, record, records, readQueues, parts: parts.move() })
    await run.refresh()
    return run
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}

/**
 * This machine may reach the place by another name, but a task of the task protocol is always in Redis, wherever the runs are.
 */
function queueUrlFor({ frontier: place }: RunRecord, { frontier, store, redis }: RunPlaces): string {
  const { engine, isShared } = parseEngineUrl(frontier)
  if (engine === 'postgres' && parseEngineUrl(place).engine === 'redis') return urlOfPlace(place, redis ?? '')
  return isShared ? frontier : urlOfPlace(place, store ?? '')
}

/** The queue, or why there is none. */
async function openOrTell(
  places: QueuePlace,
  record: RunRecord,
  store: Store,
): Promise<Pick<FleetRunParts, 'frontier' | 'trouble'>> {
  try {
    return { frontier: await openQueueToLook(places, record, store), trouble: undefined }
  } catch (error) {
    if (isQueueTrouble(error)) return { frontier: undefined, trouble: error }
    throw error
  }
}

interface FleetRunParts {
  store: Store
  frontier: Frontier | undefined
  trouble: ScrapeError | undefined
  record: RunRecord
  /** Where the records of its files are. */
  records: string
  readQueues: (() => Promise<BrokerQueue[] | undefined>) | undefined
  parts: AsyncDisposableStack
}

const BROKER_FRESH_MS = 2_000
/** How long to leave a broker alone that did not answer. */
const BROKER_REST_MS = 5_000

class FleetRun implements OpenRun {
  readonly #store: Store
  readonly #parts: AsyncDisposableStack
  frontier: Frontier | undefined
  trouble: ScrapeError | undefined
  readonly log: RunLogLines
  readonly folder = undefined
  readonly #readQueues: FleetRunParts['readQueues']
  readonly #records: string
  record: RunRecord
  /** As stored; the record of a lost run is shown differently. */
  #keptState: RunState
  workers: StoredWorker[] = []
  broker: BrokerQueue[] | undefined
  filling: 'urls' | 'start' | undefined
  #askBrokerAtMs = Number.NEGATIVE_INFINITY

  constructor({ store, frontier, trouble, record, records, readQueues, parts }: FleetRunParts) {
    this.#records = records
    this.trouble = trouble
    this.#keptState = record.state
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

  /** A run without workers is waiting for some. */
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
    this.#keptState = found.record.state
    this.record = (await this.#asQueued(found.record)) ?? (await this.#withoutQueue(found.record))
  }

  /** Undefined if there is no queue, or no longer one. */
  async #asQueued(record: RunRecord): Promise<RunRecord | undefined> {
    const { frontier } = this
    if (frontier === undefined) return undefined
    try {
      updateFleetRecord(record, await frontier.stats(), this.workers, Date.now())
      this.filling = isComplete(record) ? undefined : await fillingOf(frontier)
      return record
    } catch (error) {
      if (!isQueueTrouble(error)) throw error
      this.trouble = error
      this.frontier = undefined
      return undefined
    }
  }

  /** The last reported figures. Redis expires a run a week after it finished, which loses nothing: its record is complete. */
  async #withoutQueue(record: RunRecord): Promise<RunRecord> {
    this.filling = undefined
    if (record.finishedAt !== null) return record
    const stats = await lastReported(record, this.workers, this.#store)
    updateFleetRecord(record, stats, this.workers, Date.now())
    const { trouble } = this
    return trouble?.code === 'E_QUEUE_LOST' ? { ...record, state: 'failed', reason: trouble.message } : record
  }

  async askBroker(): Promise<void> {
    // The queues go with the run. What the broker reports for a few more seconds is out of date.
    if (isComplete(this.record)) this.broker = undefined
    else await this.#askBroker()
  }

  async #askBroker(): Promise<void> {
    if (this.#readQueues === undefined || performance.now() < this.#askBrokerAtMs) return
    this.broker = await this.#readQueues()
    this.#askBrokerAtMs = performance.now() + (this.broker === undefined ? BROKER_REST_MS : BROKER_FRESH_MS)
  }

  async snapshot(name: string): Promise<{ place: string; head: string | undefined }> {
    const bytes = await this.#store.getSnapshot(this.record.id, name)
    const head = bytes === undefined ? undefined : Buffer.from(bytes).subarray(0, SNAPSHOT_HEAD_BYTES).toString('utf8')
    return { place: name, head }
  }

  async picture(snapshot: string): Promise<string | undefined> {
    const name = pictureOf(snapshot)
    const bytes = await this.#store.getSnapshot(this.record.id, name)
    if (bytes === undefined) return undefined
    const path = join(mkdtempSync(join(tmpdir(), 'sluice-')), basename(name))
    writeFileSync(path, bytes)
    return path
  }

  files(): AsyncIterable<readonly FileRecord[]> {
    return listFiles(this.#records, this.record.id)
  }

  async items(): Promise<RunItems | undefined> {
    const log = this.#itemLog()
    if (log === undefined) return undefined
    const read = (afterSeq: number) => log.read({ afterSeq, max: ITEMS_READ })
    async function* batches(from = 0): AsyncGenerator<readonly PlacedLine[]> {
      for (let afterSeq = from; ; ) {
        const rows = await read(afterSeq)
        if (rows.length === 0) return
        yield rows.map(({ key, json, seq }) => ({ key, json, position: String(seq) }))
        afterSeq = rows.at(-1)!.seq
      }
    }
    const after = async (position?: string) => batches(numberOfPosition(position))
    async function* text(): AsyncGenerator<string> {
      for await (const rows of batches()) yield rows.map(({ json }) => `${json}\n`).join('')
    }
    return { isKeyed: true, batches: () => batches(), after, text, columns: async () => undefined }
  }

  /** With a ledger, items are in the store, and stay there when the queue is gone. */
  #itemLog(): Pick<ItemLog, 'read'> | undefined {
    const { id, frontier: place } = this.record
    if (this.frontier !== undefined) return this.frontier.items
    return parseEngineUrl(place).hasLedger ? { read: (range) => this.#store.readItems(id, range) } : undefined
  }

  finishedFile(): undefined {
    return undefined
  }

  async saveRecord(record: RunRecord): Promise<boolean> {
    const isSaved = await this.#store.saveRun(record, [this.#keptState])
    if (isSaved) {
      this.record = record
      this.#keptState = record.state
    }
    return isSaved
  }

  /** A finished run takes workers again. One that was stopped manually stays stopped: there was a reason. */
  async reopen(): Promise<void> {
    if (!isComplete(this.record)) return
    await frontierOf(this).setMeta('stop', '')
    await this.saveRecord({ ...this.record, state: 'running', reason: null, exitCode: null, finishedAt: null })
  }

  resumeCommand(): string[] {
    const { source, id, state, region } = this.record
    if (this.trouble?.code === 'E_QUEUE_LOST') return ['start', source, '--mode', 'distributed', '--fresh']
    const where = region === undefined ? [] : ['--region', region]
    // With the same sources once more: URLs that are already in the queue are skipped.
    if (this.filling === 'urls') return ['produce', '--scraper', source, '--run-id', id]
    if (this.filling === 'start') return ['start', source, '--mode', 'distributed', '--resume', id]
    if (state === 'running' || isComplete(this.record)) return ['worker', '--scraper', source, '--run-id', id, ...where]
    return ['start', source, '--mode', 'distributed', '--resume', id]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync()
  }
}

/**
 * `started` is `no` while the queue is being filled, and stays so if that process is killed; if it is missing, the queue was
 * filled another way.
 */
async function fillingOf(frontier: Frontier): Promise<OpenRun['filling']> {
  if ((await frontier.getMeta('started')) !== 'no') return undefined
  return (await frontier.getMeta('source')) === 'urls' ? 'urls' : 'start'
}

const BROKER_MS_MAX = 2_000

/** Undefined if there is no answer: many brokers have no management API, and none is needed. */
async function brokerQueues(url: string, runId: string, frontier: Frontier): Promise<BrokerQueue[] | undefined> {
  const [{ managementOf, readBroker }, { namesOf }] = await Promise.all([
    import('../frontier/rabbit/management.ts'),
    import('../frontier/rabbit/names.ts'),
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

  fromStart(): StoreLog {
    return new StoreLog(this.#store, this.#runId, this.#isComplete)
  }
}
