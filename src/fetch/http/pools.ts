/** Connections: a pool per origin, with a limit on the number of pools, because a crawl may meet 100,000 hosts. */

import type { Socket } from 'node:net'
import { LRUCache } from 'lru-cache'
import type { buildConnector, Dispatcher, Client as UndiciClient, Pool as UndiciPool } from 'undici'
import { ScrapeError } from '../../core/errors.ts'
import { every } from '../../core/every.ts'
import { shapeHeads } from '../identity/head-shape.ts'
import type { Identity } from '../identity/identity.ts'
import type { Profile } from '../identity/profiles.ts'
import { type AddressGuard, type AddressOptions, openAddressGuard } from '../net/address.ts'
import { openProxyGuard } from '../net/proxy.ts'
import { Client, Pool } from '../net/undici.ts'
import { takeInterimAnswers } from './interim-answers.ts'

/** 16 KiB each, used or not; the least recently used pool is closed when its requests are done. */
const POOLS_MAX = 512
/** A pool that was not used for this long is closed. Its sockets are closed earlier: see the keep-alive times. */
export const POOL_IDLE_MS = 60_000
export const KEEP_ALIVE_MS = 4000
/** However long the server offers. */
const KEEP_ALIVE_MS_MAX = 30_000
export const HEAD_BYTES_MAX = 65_536

export interface PoolsOptions extends AddressOptions {
  connectionsPerHost: number
  /** `socks5://[user:password@]host:port` or `http://…` (CONNECT). Carries all traffic, and resolves the names. */
  proxy?: string
  /** Every request must use an identity and its proxy; others are refused. Default false. */
  isOnlyProxied?: boolean
}

/** Carries requests to their origins. */
export interface Wire extends AsyncDisposable {
  get(origin: string, identity?: Identity): Pick<Dispatcher, 'dispatch'>
  rotate(proxyUrl: string): void
}

interface Pools extends Wire {
  /**
   * `origin` as in a normalised URL: `https://example.com`. Throws `E_URL_INVALID`. Identities share no connections: a server
   * would see two people on one.
   */
  get(origin: string, identity?: Identity): UndiciPool
  readonly size: number
  /**
   * From now on uses this proxy, over new connections only: a kept-alive one still has the old exit and the old user name.
   * Old pools close when their requests are done, which is soon: every request has a deadline, and a pool without requests closes
   * at once, so there are never more of them than requests in flight. Throws `E_OPTION`; in that case nothing changes.
   */
  rotate(proxyUrl: string): void
}

/** A handler that needs to know which connection it runs on. */
export interface ConnectedHandler extends Dispatcher.DispatchHandler {
  connection: Connection | undefined
}

/** What undici does not tell a handler about its socket. Without it, a reset looks like the end of a body. */
export interface Connection {
  socket: Socket | undefined
  /** Requests sent on this socket. */
  sent: number
  /** Bytes the parser returned: they came after the end of a response. */
  unreadBytes: number
}

export function openPools(options: PoolsOptions): Pools {
  let guard = options.proxy === undefined ? openAddressGuard(options) : openProxyGuard(options, options.proxy)
  /** Identities without a proxy connect the way the run does. If every request must have one, only a site setting allows that. */
  const guardFor = (identity: Identity | undefined): AddressGuard => {
    if (identity?.guard !== undefined) return identity.guard
    return options.isOnlyProxied === true && identity === undefined ? refuseAll : guard
  }
  const closing = new Set<UndiciPool>()
  const pools = new LRUCache<string, UndiciPool>({
    max: POOLS_MAX,
    ttl: POOL_IDLE_MS,
    ttlResolution: 1000,
    updateAgeOnGet: true,
    dispose(pool) {
      // Waits for its remaining requests; new requests to the origin get a new pool.
      closing.add(pool)
      pool.close(() => closing.delete(pool))
    },
  })
  let isClosed = false
  const sweeper = every(() => pools.purgeStale(), POOL_IDLE_MS / 2)
  sweeper.unref()

  const open = (origin: string, identity: Identity | undefined): UndiciPool => {
    if (isClosed) throw new ScrapeError('E_CONNECTION', 'the HTTP client is closed', { url: origin })
    const url = parseOrigin(origin)
    const connect = guardFor(identity)(url)
    const profile = identity?.profile
    return new Pool(url, {
      connections: options.connectionsPerHost,
      maxHeaderSize: HEAD_BYTES_MAX,
      // The exchange has one deadline for all phases; a second timer per request would only add cost.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS_MAX,
      allowH2: false,
      connect,
      factory: (host, settings) => new KnownClient(host, settings, connect, profile),
    })
  }

  return {
    get(origin, identity) {
      const key = identity === undefined ? origin : `${identity.id} ${origin}`
      let pool = pools.get(key)
      if (pool === undefined) {
        pool = open(origin, identity)
        pools.set(key, pool)
      }
      return pool
    },
    get size() {
      return pools.size
    },
    rotate(proxyUrl) {
      guard = openProxyGuard(options, proxyUrl)
      pools.clear()
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      clearInterval(sweeper)
      pools.clear()
      await Promise.all([...closing].map((pool) => pool.destroy()))
    },
  }
}

/** Throws `E_URL_INVALID`. */
export function parseOrigin(origin: string): URL {
  const url = URL.parse(origin)
  if (url !== null && url.origin === origin && /^https?:$/.test(url.protocol)) return url
  throw new ScrapeError('E_URL_INVALID', `not a normalised http(s) URL: ${origin.slice(0, 200)}`, { url: origin })
}

/** A request that gets here without an identity goes nowhere. */
const refuseAll: AddressGuard = () => (_target, callback) =>
  callback(new ScrapeError('E_PROXY', 'no proxy was chosen, and nothing goes out directly'), null)

/** A client that exposes its connection to its handlers. */
class KnownClient extends Client {
  readonly #connection: Connection

  constructor(
    origin: URL,
    settings: UndiciClient.Options,
    connect: buildConnector.connector,
    profile: Profile | undefined,
  ) {
    const connection: Connection = { socket: undefined, sent: 0, unreadBytes: 0 }
    const knownConnect: buildConnector.connector = (target, callback) => {
      connect(target, (...result) => {
        if (result[0] === null) {
          watch(result[1], connection)
          takeInterimAnswers(result[1])
          if (profile !== undefined) shapeHeads(result[1], profile)
        }
        callback(...result)
      })
    }
    super(origin, { ...settings, connect: knownConnect })
    this.#connection = connection
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    ;(handler as ConnectedHandler).connection = this.#connection
    return super.dispatch(options, handler)
  }
}

function watch(socket: Socket, connection: Connection): void {
  connection.socket = socket
  connection.sent = 0
  connection.unreadBytes = 0
  const { unshift } = socket
  socket.unshift = (data: Buffer) => {
    // A stray line break after the body is an old habit of servers, not data.
    if (data.some((byte) => byte !== 13 && byte !== 10)) connection.unreadBytes += data.length
    unshift.call(socket, data)
  }
}
