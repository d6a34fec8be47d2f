/** A client over the TLS library for tests, which trusts the test authority, and identities for it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { type HttpClient, type HttpOptions, openHttp } from '../src/fetch/http/http.ts'
import { loadTlsLibrary } from '../src/fetch/http/tls-library.ts'
import { tlsProfiles } from '../src/fetch/http/tls-profiles.ts'
import { openTlsWire } from '../src/fetch/http/tls-wire.ts'
import { PinnedIdentity } from '../src/fetch/identity/identity.ts'
import type { PooledProxy } from '../src/fetch/identity/pooled-proxy.ts'
import type { Profile } from '../src/fetch/identity/profiles.ts'
import { AUTHORITY } from './site/certificates.ts'
import { temporaryFolder } from './sluice.ts'

export const never: AbortSignal = new AbortController().signal
export const library = await loadTlsLibrary()
export const profiles = tlsProfiles(library.getProfiles())
export const profileOf = (name: string): Profile => profiles.find((profile) => profile.name === name)!

/** The library looks there, like OpenSSL, whenever it opens a connection. */
const folder = temporaryFolder()
after(() => folder[Symbol.dispose]())
process.env['SSL_CERT_FILE'] = join(folder.path, 'authority.pem')
writeFileSync(process.env['SSL_CERT_FILE'], AUTHORITY)

let born = 0
export const as = (profile: Profile | undefined, proxy?: PooledProxy) =>
  new PinnedIdentity({ id: `i${++born}`, profile, proxy, bornAtMs: 0 })

export function optionsFor(more: Partial<HttpOptions> = {}): HttpOptions {
  return {
    userAgent: 'SluiceTest/1.0',
    timeoutMs: 5000,
    connectTimeoutMs: 1000,
    bodyBytesMax: 2_000_000,
    redirectsMax: 10,
    connectionsPerHost: 8,
    retryAfterMsMax: 1000,
    allowPrivate: true,
    allowAddresses: [],
    lookup: (_hostname, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
    ca: AUTHORITY,
    ...more,
  }
}

export function openTlsHttp(more: Partial<HttpOptions> = {}): HttpClient {
  const options = optionsFor(more)
  return openHttp(options, openTlsWire(library, options))
}
