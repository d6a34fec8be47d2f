/**
 * History inside a server: reads the items of runs as they arrive, and deletes what is too old. Only one of several servers does
 * this.
 */

import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { every } from '../../../core/every.ts'
import type { SqlDatabase } from '../../../drivers/sql.ts'
import { createHistogram } from '../../../observe/histogram.ts'
import type { RunPlaces } from '../../../runs/run-view.ts'
import { type Leadership, lead, SCHEDULER } from '../../../server/access/leader.ts'
import type { HistoryEvent, Projection, TellEvents } from '../../../server/history/contract.ts'
import { Ingest } from '../../../server/history/ingest.ts'
import { ItemsProjection } from '../../../server/history/items.ts'
import type { EventData, EventType, NewEvent, RecordEvents } from '../../../server/webhooks/contract.ts'
import type { Store } from '../../../store/contract.ts'
import { type KeepMs, purge } from '../../../store/retention.ts'
import { ServedRuns } from './run-source.ts'

interface HistoryKeeperParts {
  db: SqlDatabase
  store: Store
  places: RunPlaces
  record: RecordEvents
  keep: KeepMs
  /** Runs accepted by one of these have their own kind of history, and no other. */
  projections?: readonly Projection[]
  /** Notified of every run, in addition to the projection that keeps its items. */
  also?: readonly Projection[]
  say: (level: 'info' | 'warn', message: string) => void
}

const PURGE_EVERY_MS = 24 * 3_600_000

export class HistoryKeeper implements AsyncDisposable {
  readonly #parts: HistoryKeeperParts
  readonly #latency = createHistogram()
  readonly #leadership: Leadership
  readonly #runs: ServedRuns
  readonly #ingest: Ingest
  readonly #purging: NodeJS.Timeout
  #purge: Promise<void> | undefined
  #isStopping = false

  constructor(parts: HistoryKeeperParts) {
    const { db, store, places, record, projections = [], also = [], say } = parts
    this.#parts = parts
    const items = new ItemsProjection(db.dialect, { accepts: (name) => !projections.some((one) => one.accepts(name)) })
    this.#leadership = lead(db, {
      name: SCHEDULER,
      holder: `${hostname()}_${process.pid}_${randomBytes(4).toString('hex')}`,
      onChange: (isLeader) => {
        if (isLeader) void this.#purgeOnce()
      },
    })
    this.#runs = new ServedRuns({ db, store, places, isLeader: () => this.#leadership.isLeader })
    this.#ingest = new Ingest({
      db,
      source: this.#runs,
      projections: [items, ...projections, ...also],
      tell: tellBy(record),
      onLatency: (ms) => this.#latency.add(ms),
      say,
    })
    this.#purging = every(() => this.#purgeOnce(), PURGE_EVERY_MS)
  }

  status() {
    const { quantile, count } = this.#latency
    return {
      isLeader: this.#leadership.isLeader,
      items: this.#ingest.items,
      latencyMs: { p50: quantile(0.5), p99: quantile(0.99), count },
    }
  }

  #purgeOnce(): Promise<void> {
    this.#purge ??= this.#purgeOld()
      .catch((error: Error) => this.#parts.say('warn', `what is too old stays: ${error.message}`))
      .finally(() => {
        this.#purge = undefined
      })
    return this.#purge
  }

  async #purgeOld(): Promise<void> {
    const { db, store, keep, say } = this.#parts
    const mayGoOn = () => this.#leadership.isLeader && !this.#isStopping
    const purged = Object.entries(await purge(db, store, { keep, nowMs: Date.now(), mayGoOn }))
    if (purged.length > 0)
      say('info', `deleted what was too old: ${purged.map(([table, rows]) => `${rows} of ${table}`).join(', ')}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    clearInterval(this.#purging)
    await this.#ingest[Symbol.asyncDispose]()
    await this.#purge
    await this.#runs[Symbol.asyncDispose]()
    await this.#leadership[Symbol.asyncDispose]()
  }
}

/** For a server that leaves this to another one. */
export const NOT_KEEPING: Pick<HistoryKeeper, 'status'> = {
  status: () => ({ isLeader: false, items: 0, latencyMs: { p50: 0, p99: 0, count: 0 } }),
}

const tellBy =
  (record: RecordEvents): TellEvents =>
  (rows, events) =>
    record(rows, events.map(toNewEvent))

const toNewEvent = ({ type, data, dedupe }: HistoryEvent): NewEvent => ({
  type: type as EventType,
  data: data as EventData,
  dedupeKey: dedupe,
})
