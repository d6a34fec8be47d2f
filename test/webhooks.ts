/** Helpers for webhook tests: a server's part in them, on either database, with a manual clock. */
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { SqlDatabase } from '../src/drivers/sql.ts'
import { openPoster } from '../src/fetch/http/post.ts'
import type { NewEvent, NewSubscription } from '../src/server/webhooks/contract.ts'
import { DeliveryLog } from '../src/server/webhooks/delivery-log.ts'
import { DeliveryWorker } from '../src/server/webhooks/delivery-worker.ts'
import { Outbox } from '../src/server/webhooks/outbox.ts'
import { eventRecorder } from '../src/server/webhooks/record.ts'
import { Subscriptions } from '../src/server/webhooks/subscriptions.ts'
import { openPostgresDatabase } from '../src/store/postgres.ts'
import { openSqliteDatabase } from '../src/store/sqlite.ts'
import { postgresForTests } from './services/postgres.ts'
import { temporaryFolder } from './sluice.ts'

export const START = Date.UTC(2026, 10, 15, 12, 30)

/** One server's webhooks, which the test polls explicitly. */
export class Bench implements AsyncDisposable {
  readonly db: SqlDatabase
  readonly subscriptions: Subscriptions
  readonly log: DeliveryLog
  readonly worker: DeliveryWorker
  readonly said: string[] = []
  readonly #poster
  nowMs: number

  constructor(db: SqlDatabase, { nowMs = START, allowPrivate = true, isAlone = true, holder = 'one' } = {}) {
    this.db = db
    this.nowMs = nowMs
    const now = () => this.nowMs
    this.subscriptions = new Subscriptions(db, now)
    this.log = new DeliveryLog(db)
    this.#poster = openPoster({ connectTimeoutMs: 5000, allowPrivate, allowAddresses: [], userAgent: 'sluice-test' })
    const record = eventRecorder({ dialect: db.dialect, now })
    this.worker = new DeliveryWorker({
      outbox: new Outbox(db, { holder, record }),
      post: this.#poster.post,
      say: (_, message) => this.said.push(message),
      isAlone,
      stopMsMax: 0,
      now,
      random: () => 0.5,
    })
  }

  async subscribe(url: string, more: Partial<NewSubscription> = {}) {
    const given = { name: `to ${url}`, url, events: ['*'], filter: {}, mode: 'instant' as const, isActive: true }
    return await this.subscriptions.create({ ...given, ...more })
  }

  async record(...events: (Pick<NewEvent, 'type'> & Partial<NewEvent>)[]): Promise<void> {
    const record = eventRecorder({ dialect: this.db.dialect, now: () => this.nowMs })
    await this.db.transaction((rows) => record(rows, events.map(event)))
  }

  /** When it returns, everything due by then has been tried. */
  async lookAt(ms: number): Promise<void> {
    this.nowMs = ms
    await this.worker.look()
    await this.worker.idle()
  }

  async states(webhookId: string): Promise<string[]> {
    return (await this.log.deliveries(webhookId, { max: 100 })).map(({ state }) => state).reverse()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.worker[Symbol.asyncDispose]()
    await this.#poster[Symbol.asyncDispose]()
  }
}

let keys = 0
export const event = (given: Pick<NewEvent, 'type'> & Partial<NewEvent>): NewEvent => ({
  data: {},
  dedupeKey: `key ${++keys}`,
  ...given,
})

export const ENGINES: Record<string, () => Promise<AsyncDisposable & { open(): Promise<SqlDatabase> }>> = {
  'sqlite:': async () => {
    const folder = temporaryFolder()
    return {
      open: async () => openSqliteDatabase(join(folder.path, 'store.db')),
      [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
    }
  },
  'postgres:': async () => {
    const database = await postgresForTests()
    return {
      open: () => openPostgresDatabase(database.url),
      [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
    }
  },
}

interface Suite {
  engine: string
  /** `open` returns another connection, as another server would have. */
  check(title: string, body: (db: SqlDatabase, open: () => Promise<SqlDatabase>) => Promise<void>): void
}

/** Each test starts with empty tables. */
export function onBothDatabases(title: string, define: (suite: Suite) => void): void {
  for (const [engine, start] of Object.entries(ENGINES))
    describe(`${title} on ${engine}`, () => {
      let place: Awaited<ReturnType<typeof start>>
      before(async () => {
        place = await start()
      })
      after(() => place[Symbol.asyncDispose]())
      define({
        engine,
        check: (name, body) =>
          it(name, async () => {
            await using opened = new AsyncDisposableStack()
            const open = async () => opened.adopt(await place.open(), (db) => db.close())
            const db = await open()
            for (const table of ['webhook', 'delivery', 'digest_event', 'event'])
              await db.rows(`delete from ${db.dialect.prefix}${table}`, [])
            await body(db, open)
          }),
      })
    })
}
