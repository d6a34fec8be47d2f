/** A server's part in webhooks: records events and delivers them. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { Config } from '../../../config/config.ts'
import { userAgent } from '../../../config/user-agent.ts'
import type { SqlDatabase } from '../../../drivers/sql.ts'
import { openPoster, type Poster } from '../../../fetch/http/post.ts'
import { type AddressOptions, refusedLiteral } from '../../../fetch/net/address.ts'
import { failAtOf } from '../../../runs/run-watch.ts'
import type { NewEvent, RecordEvents } from '../../../server/webhooks/contract.ts'
import { DeliveryLog } from '../../../server/webhooks/delivery-log.ts'
import { DeliveryWorker } from '../../../server/webhooks/delivery-worker.ts'
import { Outbox } from '../../../server/webhooks/outbox.ts'
import { eventRecorder } from '../../../server/webhooks/record.ts'
import { Subscriptions } from '../../../server/webhooks/subscriptions.ts'
import { ObservedEvents } from './observed-events.ts'

const CONNECT_MS_MAX = 5_000

interface NotificationsOptions {
  db: SqlDatabase
  config: Config
  /** Records events, but leaves it to another server to deliver them. */
  isPassive: boolean
  say(level: 'info' | 'warn', message: string): void
}

export class Notifications implements AsyncDisposable {
  readonly subscriptions: Subscriptions
  readonly log: DeliveryLog
  readonly worker: DeliveryWorker
  /** For code that changes the store: pass it the `rows` of the transaction. */
  readonly recordEvents: RecordEvents
  readonly #db: SqlDatabase
  readonly #observed: ObservedEvents | undefined
  readonly #addresses: Pick<AddressOptions, 'allowPrivate' | 'allowAddresses'>
  readonly #poster: Poster
  readonly #say: NotificationsOptions['say']

  constructor({ db, config: { values, limits }, isPassive, say }: NotificationsOptions) {
    this.#db = db
    this.#say = say
    this.subscriptions = new Subscriptions(db)
    this.log = new DeliveryLog(db)
    // If the transaction ends later than that, the next look finds the events.
    this.recordEvents = eventRecorder({ dialect: db.dialect, onRecorded: () => setImmediate(() => this.worker.look()) })
    this.#addresses = { allowPrivate: values.allowPrivate, allowAddresses: values.allowAddress }
    this.#poster = openPoster({
      userAgent: userAgent(values),
      connectTimeoutMs: CONNECT_MS_MAX,
      ...this.#addresses,
    })
    this.worker = new DeliveryWorker({
      outbox: new Outbox(db, {
        holder: `${hostname()}_${process.pid}_${randomBytes(4).toString('hex')}`,
        record: this.recordEvents,
      }),
      post: this.#poster.post,
      say,
      isAlone: db.dialect.skipLocked === '',
      isPassive,
    })
    if (isPassive) return
    this.#observed = new ObservedEvents({
      db,
      record: this.recordEvents,
      out: values.out,
      failAt: failAtOf(limits),
      say,
    })
  }

  /** Throws `E_PRIVATE_ADDRESS` for a URL to which every delivery would be rejected. */
  refuseUnreachable(url: string): void {
    const parsed = URL.parse(url)
    const refusal = parsed === null ? null : refusedLiteral(parsed, this.#addresses)
    if (refusal !== null) throw refusal
  }

  /** For events that do not belong to a change in the store. */
  async tell(events: readonly NewEvent[]): Promise<void> {
    await this.#db.transaction((rows) => this.recordEvents(rows, events))
  }

  /** The run's record cannot report this: the process that wrote it is dead. */
  runGivenUp(runId: string, how: string): void {
    const data = { runId, state: 'failed', reason: `its processes died one after the other (${how})` }
    this.tell([{ type: 'run.failed', data, dedupeKey: `run.failed:${runId}:died` }]).catch((error: Error) =>
      this.#say('warn', `not told that run ${runId} failed: ${error.message}`),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#observed?.[Symbol.asyncDispose]()
    await this.worker[Symbol.asyncDispose]()
    await this.#poster[Symbol.asyncDispose]()
  }
}
