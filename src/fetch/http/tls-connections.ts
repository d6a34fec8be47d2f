/** How one identity goes out with a browser's handshake: connections of its own in the TLS library, which lead to a door of ours. */
import type { Transport } from 'wreq-js'
import type { Profile } from '../identity/profiles.ts'
import type { AddressGuard } from '../net/address.ts'
import { type EgressProxy, openEgressProxy } from '../net/egress.ts'
import { KEEP_ALIVE_MS } from './pools.ts'
import type { TlsLibrary } from './tls-library.ts'

interface TlsWayOptions {
  profile: Profile & { tls: NonNullable<Profile['tls']> }
  guard: AddressGuard
  connectTimeoutMs: number
  /** It could not be opened: the next request needs another. */
  onFailure: () => void
  onClose: () => void
}

export interface OpenWay {
  readonly door: EgressProxy
  readonly transport: Transport
  /** Connections begun so far. */
  readonly connections: number
}

export class TlsWay {
  readonly #opened: Promise<OpenWay>
  #users = 0
  #isPutAway = false
  readonly #onClose: () => void
  #closed: Promise<void> | undefined

  constructor(library: TlsLibrary, options: TlsWayOptions) {
    this.#onClose = options.onClose
    this.#opened = open(library, options)
    this.#opened.catch(options.onFailure) // whoever uses it is told why
  }

  async use<T>(send: (way: OpenWay) => Promise<T>): Promise<T> {
    this.#users++
    try {
      return await send(await this.#opened)
    } finally {
      this.#users--
      if (this.#isPutAway && this.#users === 0) await this.close()
    }
  }

  /** Closes once the last request is done. */
  async putAway(): Promise<void> {
    this.#isPutAway = true
    if (this.#users === 0) await this.close()
  }

  /** At once. */
  close(): Promise<void> {
    this.#closed ??= this.#opened
      .then(async ({ door, transport }) => {
        await transport.close()
        await door[Symbol.asyncDispose]()
      })
      .catch(() => {}) // it never opened
      .finally(this.#onClose)
    return this.#closed
  }
}

async function open(library: TlsLibrary, { profile, guard, connectTimeoutMs }: TlsWayOptions): Promise<OpenWay> {
  let connections = 0
  const counted: AddressGuard = (origin) => {
    connections++
    return guard(origin)
  }
  const door = await openEgressProxy({ guard: counted, bytesMax: Number.POSITIVE_INFINITY, onFlood: () => {} })
  try {
    const transport = await library.createTransport({
      browser: profile.tls.browser as never,
      os: profile.tls.os as never,
      // With the h, names are left to the door. Whatever NO_PROXY says: a proxy that was named is always taken.
      proxy: door.proxyServer.replace('socks5:', 'socks5h:'),
      // For the door, which has a clock of its own and better words, and then for the handshake.
      connectTimeout: connectTimeoutMs * 2,
      poolIdleTimeout: KEEP_ALIVE_MS,
      // In HTTP/1.1 it would put Host at the end.
      emulation: { origHeaders: profile.isChromium ? ['Host', 'Connection', 'Content-Length'] : ['Host'] },
    })
    return {
      door,
      transport,
      get connections() {
        return connections
      },
    }
  } catch (error) {
    await door[Symbol.asyncDispose]()
    throw error
  }
}
