/**
 * The second transport: the TLS library carries identities whose profile has a browser's handshake, undici all others.
 *
 *   request ──▶ library (TLS, HTTP/1.1 and 2) ──▶ egress proxy on loopback ──▶ address guard, or the identity's proxy ──▶ the web
 *
 * The library never connects anywhere itself: it knows only the address of the egress proxy, and resolves no names.
 */

import { LRUCache } from 'lru-cache'
import { ScrapeError } from '../../core/errors.ts'
import { every } from '../../core/every.ts'
import type { Identity } from '../identity/identity.ts'
import type { Profile } from '../identity/profiles.ts'
import { openAddressGuard } from '../net/address.ts'
import { openProxyGuard } from '../net/proxy.ts'
import { openPools, POOL_IDLE_MS, type PoolsOptions, parseOrigin, type Wire } from './pools.ts'
import { TlsWay } from './tls-connections.ts'
import type { TlsLibrary } from './tls-library.ts'
import { type TlsMessage, TlsRequest } from './tls-request.ts'

/** 1 MB each, mostly for the certificate authorities the library trusts, and 30 ms to open. */
const WAYS_MAX = 64

export function openTlsWire(library: TlsLibrary, options: PoolsOptions): Wire {
  const plain = openPools(options)
  let guard = options.proxy === undefined ? openAddressGuard(options) : openProxyGuard(options, options.proxy)
  let isClosed = false
  const all = new Set<TlsWay>()
  const ways = new LRUCache<string, TlsWay>({
    max: WAYS_MAX,
    ttl: POOL_IDLE_MS,
    ttlResolution: 1000,
    updateAgeOnGet: true,
    dispose: (way) => void way.putAway(),
  })
  const sweeper = every(() => ways.purgeStale(), POOL_IDLE_MS / 2)
  sweeper.unref()

  const wayOf = (identity: Identity, profile: Profile): TlsWay => {
    let way = ways.get(identity.id)
    if (way === undefined) {
      const opened = new TlsWay(library, {
        profile: profile as Profile & { tls: NonNullable<Profile['tls']> },
        guard: identity.guard ?? guard,
        connectTimeoutMs: options.connectTimeoutMs,
        onFailure: () => ways.delete(identity.id),
        onClose: () => all.delete(opened),
      })
      way = opened
      all.add(way)
      ways.set(identity.id, way)
    }
    return way
  }

  return {
    get(origin, identity) {
      const profile = identity?.profile
      if (identity === undefined || profile?.tls === undefined) return plain.get(origin, identity)
      if (isClosed) throw new ScrapeError('E_CONNECTION', 'the HTTP client is closed', { url: origin })
      const url = parseOrigin(origin)
      return {
        dispatch({ path, method, headers, body = undefined }, handler) {
          // As undici does; the library would silently send something else.
          if (/[^\x21-\xff]/.test(path))
            throw new ScrapeError('E_URL_INVALID', `not a normalised URL: ${origin}${path}`)
          const message: TlsMessage = {
            url,
            href: origin + path,
            method,
            headers: headers as string[],
            body: body as string | undefined,
            profile,
          }
          const way = wayOf(identity, profile)
          void new TlsRequest(message, handler).run((send) => way.use(send), library)
          return true
        },
      }
    },
    rotate(proxyUrl) {
      plain.rotate(proxyUrl)
      guard = openProxyGuard(options, proxyUrl)
      ways.clear()
    },
    async [Symbol.asyncDispose]() {
      isClosed = true
      clearInterval(sweeper)
      ways.clear()
      await Promise.all([...all].map((way) => way.close()))
      await plain[Symbol.asyncDispose]()
    },
  }
}
