/** Connections: a pool per origin, and a bound on pools, because a crawl may meet 100,000 hosts. */

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

/** 16 KiB each, used or not; the least recently used pool closes when its requests are done. */
const POOLS_MAX = 512
/** A pool nobody used for this long is closed. Its sockets went before: see the keep-alive times. */
export const POOL_IDLE_MS = 60_000
export const KEEP_ALIVE_MS = 4000
/** However long the server offers. */
const KEEP_ALIVE_MS_MAX = 30_000
export const HEAD_BYTES_MAX = 65_536

export interface PoolsOptions extends AddressOptions {
  connectionsPerHost: number
  /** `socks5://[user:password@]host:port` or `http://…` (CONNECT). All traffic goes there, and names are resolved there. */
  proxy?: string
  /** Everything goes out as somebody, through their proxy: what does not is refused. Default false. */
  isOnlyProxied?: boolean
}

/** What carries requests to where they are meant for. */
export interface Wire extends AsyncDisposable {
  get(origin: string, identity?: Identity): Pick<Dispatcher, 'dispatch'>
  rotate(proxyUrl: string): void
}

interface Pools extends Wire {
  /**
   * `origin` as in a normalised URL: `https://example.com`. Throws `E_URL_INVALID`. Identities share no connection: a server
   * would see two people behind one.
   */
  get(origin: string, identity?: Identity): UndiciPool
  readonly size: number
  /**
   * From now on through this proxy, over new connections only: a kept-alive one still has the old exit and the old user name.
   * Old pools close when their requests are done, which is soon: every request has a deadline, and a pool without one closes at
   * once, so there are never more of them than requests under way. Throws `E_OPTION`, and then nothing has changed.
   */
  rotate(proxyUrl: string): void
}

/** A handler that wants to know which connection it runs on. */
export interface ConnectedHandler extends Dispatcher.DispatchHandler {
  connection: Connection | undefined
}

/** What undici does not tell a handler about the socket it runs on. Without it, a reset looks like the end of a body. */
export interface Connection {
  socket: Socket | undefined
  /** Requests sent on this socket. */
  sent: number
  /** Bytes the parser gave back: they came after the end of a response. */
  unreadBytes: number
}

export function openPools(options: PoolsOptions): Pools {
  let guard = options.proxy === undefined ? openAddressGuard(options) : openProxyGuard(options, options.proxy)
  /** Who has no proxy of their own goes the way of the run. Where everybody must have one, only a site's own setting is direct. */
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
      // Waits for the requests it still carries; who asks for the origin meanwhile gets a new pool.
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
      // The exchange has one deadline for all phases; a second clock per request would only cost.
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

/** Should a request ever come here without an identity, it goes nowhere. */
const refuseAll: AddressGuard = () => (_target, callback) =>
  callback(new ScrapeError('E_PROXY', 'no proxy was chosen, and nothing goes out directly'), null)

/** A client that shows its connection to the handlers it runs. */
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
    // A stray line end after the body is an old custom, not data.
    if (data.some((byte) => byte !== 13 && byte !== 10)) connection.unreadBytes += data.length
    unshift.call(socket, data)
  }
}
