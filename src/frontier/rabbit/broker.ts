/**
 * The connection to the broker: reconnects when it is lost, and reports each attempt.
 *
 *   (none) ──session()──▶ connecting ──declared──▶ open ──lost──▶ (none) ──session()──▶ …
 *                             └─ failed: reported, waited, retried ─┘
 *
 * The client library reconnects by itself too, but it reports only the first failure, and it would return channels whose
 * unacknowledged messages no longer belong to them; so here one connection object is one connection.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Channel, Connection } from 'rabbitmq-client'
import { ScrapeError } from '../../core/errors.ts'
import { refuseOtherParameters, type TlsOptions, takeTls, tlsTrouble } from '../../core/server-tls.ts'
import { type Outage, OutageWait } from '../../drivers/outage.ts'
import { brokerUrl, CLIENT_PARAMETERS, FRONTIER_PARAMETERS, placeOf } from './address.ts'
import { rabbit } from './client.ts'
import { declare, type Names } from './names.ts'
import { isRefusal, refused, unreachable } from './outage.ts'

interface BrokerOptions {
  /** How long an operation waits for an unreachable broker before it fails. Default 60,000. */
  outageMs?: number
  /** Called before each wait, for logging. */
  onOutage?: (outage: Outage) => void
}

/**
 * Two connections, with everything declared that must exist: when the broker is short of memory it stops reading from a
 * connection that publishes, and acknowledgements must still get through.
 */
export interface Session {
  readonly connections: readonly Connection[]
  /** In confirm mode. */
  readonly publisher: Channel
  readonly consumer: Channel
  readonly lanes: Set<string>
}

const CONNECT_MS_MAX = 5000
const CLOSE_MS_MAX = 5000
const CONNECTION = { connectionTimeout: CONNECT_MS_MAX, acquireTimeout: CONNECT_MS_MAX, heartbeat: 20, noDelay: true }
const HINT =
  'A URL of RabbitMQ is amqps://user:password@host:port/vhost, with cacert, cert, key, servername or verify=none; amqp:// is plain text.'

export class Broker {
  /** `host:port/vhost`, never with user or password. */
  readonly place: string
  readonly #url: string
  readonly #tls: TlsOptions | undefined
  readonly #names: Names
  readonly #outageMs: number
  readonly #onOutage: (outage: Outage) => void
  readonly #closing = new AbortController()
  readonly #lostListeners: (() => void)[] = []
  #session: Promise<Session> | undefined
  #open: Session | undefined
  #isBlocked = false
  #wasOpen = false
  #downSinceMs: number | undefined

  constructor(url: string, names: Names, { outageMs = 60_000, onOutage = () => {} }: BrokerOptions = {}) {
    const { bareUrl, tls } = read(url)
    this.#tls = tls
    this.#url = bareUrl
    this.place = placeOf(url)
    this.#names = names
    this.#outageMs = outageMs
    this.#onOutage = onOutage
  }

  /** The broker is short of memory or disk and accepts no messages for now. */
  get isBlocked(): boolean {
    return this.#isBlocked
  }

  get isOpen(): boolean {
    return this.#open !== undefined
  }

  /** Called each time a connection is lost: messages delivered over it are no longer ours. */
  onLost(listener: () => void): void {
    this.#lostListeners.push(listener)
  }

  /** The open connection, or a new one. Fails if the broker is unreachable for longer than `outageMs`. */
  session(): Promise<Session> {
    this.#session ??= this.#connect().catch((error) => {
      this.#session = undefined
      throw error
    })
    return this.#session
  }

  /** Makes sure that the queue of a lane exists. */
  async declareLane(lane: string): Promise<Session> {
    const session = await this.session()
    if (session.lanes.has(lane)) return session
    await declare(session.consumer, this.#names, [lane])
    session.lanes.add(lane)
    return session
  }

  /** The connection can no longer be used. */
  drop(session: Session): void {
    if (this.#open !== session) return
    this.#open = undefined
    this.#session = undefined
    this.#isBlocked = false
    destroySoon(session.connections)
    for (const listener of this.#lostListeners) listener()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const session = this.#open
    this.#open = undefined
    const pending = this.#session
    this.#session = Promise.reject(new ScrapeError('E_STOPPED', 'the frontier is closed'))
    this.#session.catch(() => {})
    if (session === undefined) {
      await pending?.then(({ connections }) => destroySoon(connections)).catch(() => {})
      return
    }
    const { connections, publisher, consumer } = session
    const orderly = Promise.allSettled([publisher.close(), consumer.close()])
      .then(() => Promise.all(connections.map((connection) => connection.close())))
      .catch(() => {})
    await Promise.race([orderly, sleep(CLOSE_MS_MAX, undefined, { ref: false })])
    destroySoon(connections)
  }

  async #connect(): Promise<Session> {
    this.#downSinceMs ??= performance.now()
    const limits = { outageMs: this.#outageMs, wasOpen: this.#wasOpen, signal: this.#closing.signal }
    const wait = new OutageWait({ ...limits, sinceMs: this.#downSinceMs })
    for (;;) {
      try {
        const session = await this.#connectOnce()
        this.#downSinceMs = undefined
        this.#wasOpen = true
        return session
      } catch (error) {
        if (this.#closing.signal.aborted) throw error
        const badTls = this.#wasOpen ? undefined : tlsTrouble(error, this.place, 'cacert')
        if (badTls !== undefined) throw badTls
        if (isRefusal(error)) throw refused(this.place, error as Error)
        if (await wait.next(error as Error, this.#onOutage)) continue
        throw this.#closing.signal.aborted ? error : unreachable(this.place, error as Error)
      }
    }
  }

  async #connectOnce(): Promise<Session> {
    const connections = ['sluice publishing', 'sluice consuming'].map((connectionName) => {
      return new rabbit.Connection({
        ...CONNECTION,
        url: this.#url,
        connectionName,
        ...(this.#tls === undefined ? {} : { tls: this.#tls }),
      })
    })
    const { promise: failed, reject } = Promise.withResolvers<never>()
    failed.catch(() => {})
    for (const connection of connections) connection.on('error', reject)
    try {
      const session = await Promise.race([this.#prepare(connections), failed])
      this.#open = session
      this.#watch(session)
      return session
    } catch (error) {
      destroySoon(connections)
      throw error
    }
  }

  async #prepare(connections: Connection[]): Promise<Session> {
    const publisher = await connections[0]!.acquire()
    const consumer = await connections[1]!.acquire()
    publisher.setMaxListeners(0) // one for each batch that waits for its confirms
    await publisher.confirmSelect()
    await declare(consumer, this.#names, ['bulk', 'priority'])
    return { connections, publisher, consumer, lanes: new Set(['bulk', 'priority']) }
  }

  #watch(session: Session): void {
    const { connections, publisher, consumer } = session
    for (const connection of connections) {
      connection.on('error', () => {
        this.drop(session)
        destroySoon(connections)
      })
    }
    for (const channel of [publisher, consumer]) channel.on('close', () => this.drop(session))
    consumer.on('basic.cancel', () => this.drop(session)) // its queue was deleted: a new session declares it again
    connections[0]!.on('connection.blocked', (reason) => this.#blocked(reason))
    connections[0]!.on('connection.unblocked', () => {
      this.#isBlocked = false
    })
  }

  #blocked(reason: string): void {
    this.#isBlocked = true
    this.#onOutage({ attempt: 1, error: new Error(`${this.place} takes no messages for now: ${reason}`), waitMs: 0 })
  }
}

/** Logs in and out again. Throws the error a run would report. */
export async function pingBroker(url: string): Promise<void> {
  const { bareUrl, tls } = read(url)
  const connection = new rabbit.Connection({ ...CONNECTION, url: bareUrl, ...(tls === undefined ? {} : { tls }) })
  const { promise: failed, reject } = Promise.withResolvers<never>()
  connection.on('error', reject)
  try {
    await Promise.race([connection.acquire(), failed])
  } catch (error) {
    const place = placeOf(url)
    if (isRefusal(error)) throw refused(place, error as Error)
    throw tlsTrouble(error, place, 'cacert') ?? unreachable(place, error as Error)
  } finally {
    destroySoon([connection])
  }
}

/** Only what the client library should see: it would read more from the URL by itself. */
function read(url: string): { bareUrl: string; tls: TlsOptions | undefined } {
  const bare = brokerUrl(url)
  const tls = takeTls(bare, bare.protocol === 'amqps:')
  for (const name of FRONTIER_PARAMETERS) bare.searchParams.delete(name)
  refuseOtherParameters(bare, CLIENT_PARAMETERS, HINT)
  return { bareUrl: bare.href, tls }
}

/** Not immediately: when we learn of the loss, the library has not yet started to reconnect, and would do so afterwards. */
function destroySoon(connections: readonly Connection[]): void {
  setImmediate(() => {
    for (const connection of connections) connection.unsafeDestroy()
  })
}
