/** The connections of one identity with a browser's handshake: its own transport in the TLS library, behind an egress proxy. */
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
  /** It could not be opened: the next request needs a new one. */
  onFailure: () => void
  onClose: () => void
}

export interface OpenWay {
  readonly door: EgressProxy
  readonly transport: Transport
  /** Connections opened so far. */
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
    this.#opened.catch(options.onFailure) // requests that use it get the error
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

  /** Closes at once. */
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
      // With socks5h, names are resolved by the egress proxy. NO_PROXY does not matter: an explicit proxy is always used.
      proxy: door.proxyServer.replace('socks5:', 'socks5h:'),
      // Covers the egress proxy, which has its own timeout and clearer errors, and then the handshake.
      connectTimeout: connectTimeoutMs * 2,
      poolIdleTimeout: KEEP_ALIVE_MS,
      // Without this, Host would come last in HTTP/1.1.
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
