/**
 * The only way to a socket: every address is checked before we connect, and we connect to exactly the address that was checked.
 *
 * A `lookup` hook alone is not enough (Node does not call it for IP literals), and neither is a check before the request (the
 * name may resolve differently a moment later). So literals are checked by the connector, and names inside the very lookup
 * whose answer the socket uses.
 */
import type { LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { buildConnector as BuildConnector } from 'undici'
import { ScrapeError } from '../../core/errors.ts'
import { buildConnector } from './undici.ts'

/** Resolves a name to all of its addresses; tests pass their own. */
export type Lookup = (hostname: string, callback: (error: Error | null, addresses: LookupAddress[]) => void) => void

export interface AddressOptions {
  connectTimeoutMs: number
  /** Treat private addresses like public ones. */
  allowPrivate: boolean
  /** `HOST:PORT` pairs that may be reached even though they are private. */
  allowAddresses: readonly string[]
  lookup?: Lookup
  /** Trusted certificate authorities in PEM, instead of the system's. */
  ca?: string
}

/** Returns the connector for an origin; all connectors enforce the same policy. */
export type AddressGuard = (origin: URL) => BuildConnector.connector

/** `node:dns` is loaded with the first name, so a run that uses only IP addresses never loads it. */
const defaultLookup: Lookup = (hostname, callback) =>
  process.getBuiltinModule('node:dns').lookup(hostname, { all: true }, callback)

export function openAddressGuard(options: AddressOptions): AddressGuard {
  const { allowPrivate, lookup = defaultLookup } = options
  const allowed = new Set(options.allowAddresses.flatMap(authoritiesOf))
  /**
   * The private addresses an allowed name had when it was first resolved. A name that a user allows may belong to someone else:
   * if its owner could change the answer later, a public start URL could lead to any private address.
   */
  const pinned = new Map<string, ReadonlySet<string>>()

  const check = (hostname: string, port: string, addresses: readonly string[]): ScrapeError | null => {
    if (allowPrivate) return null
    const authority = authorityOf(hostname, port)
    const hidden = addresses.filter((ip) => !isPublicAddress(ip))
    if (allowed.has(authority) && !pinned.has(authority))
      pinned.set(authority, new Set(LOCAL_NAME.test(hostname) ? hidden.filter(isLoopback) : hidden))
    const pin = pinned.get(authority)
    // A single private address among public ones refuses the name: mixed answers are how DNS rebinding begins.
    const refused = hidden.find((ip) => pin?.has(ip) !== true && !allowed.has(authorityOf(ip, port)))
    if (refused === undefined) return null
    const target = refused === hostname ? authority : `${authority} (${refused})`
    return new ScrapeError('E_PRIVATE_ADDRESS', `${target} is an address of the private network`)
  }

  return (origin) => {
    const port = origin.port || (origin.protocol === 'https:' ? '443' : '80')
    const checkedLookup: LookupFunction = (hostname, { all }, callback) => {
      lookup(hostname, (error, addresses) => {
        if (error === null && addresses.length === 0) error = noAddress(hostname)
        error ??= check(hostname, port, addresses.map((entry) => entry.address)) // biome-ignore format: one line reads better
        if (error !== null) callback(error as NodeJS.ErrnoException, [])
        else if (all) callback(null, addresses)
        else callback(null, addresses[0]!.address, addresses[0]!.family)
      })
    }
    const connect = buildConnector({
      timeout: options.connectTimeoutMs,
      allowH2: false,
      autoSelectFamily: true,
      lookup: checkedLookup,
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    })
    return (target, callback) => {
      const refusal = isIP(target.hostname) === 0 ? null : check(target.hostname, port, [target.hostname])
      if (refusal !== null) callback(refusal, null)
      else connect({ ...target, port }, callback)
    }
  }
}

/** This machine by definition (RFC 6761). */
const LOCAL_NAME = /^(?:.*\.)?localhost$/i

const isLoopback = (ip: string) => ipaddr.process(ip).range() === 'loopback'

/**
 * The rule for typed URLs: a URL that contains the address itself (`http://10.0.0.5/`, `http://localhost:8080/`) may be
 * fetched even though the address is private. A name may not: its owner decides where it points, so it needs `--allow-address`.
 * This applies only to URLs a user typed, not to the entries of a list, a sitemap or a page.
 *
 * Takes URLs, or `host:port` as returned by `hostOf`; returns the ones to allow, as `HOST:PORT`.
 */
export function typedAddresses(typed: readonly string[]): string[] {
  return typed.flatMap((text) => {
    const url = URL.parse(/^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`)
    if (url === null) return []
    const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '')
    return isIP(host) !== 0 || LOCAL_NAME.test(host) ? [url.host.replace(/\.+(?=:|$)/, '')] : []
  })
}

/**
 * Why a URL that contains its address would be refused, for callers that can report it early. This is not the guard: addresses
 * are checked again when connecting, and only then are names checked.
 */
export function refusedLiteral(
  { hostname, protocol, port: given }: URL,
  { allowPrivate, allowAddresses }: Pick<AddressOptions, 'allowPrivate' | 'allowAddresses'>,
): ScrapeError | null {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '')
  const addresses = LOCAL_NAME.test(host) ? ['127.0.0.1', '::1'] : isIP(host) === 0 ? [] : [host]
  if (allowPrivate || addresses.every(isPublicAddress)) return null
  const port = given || (protocol === 'https:' ? '443' : '80')
  const allowed = new Set(allowAddresses.flatMap(authoritiesOf))
  if ([host, ...addresses].some((one) => allowed.has(authorityOf(one, port)))) return null
  return new ScrapeError('E_PRIVATE_ADDRESS', `${authorityOf(host, port)} is an address of the private network`)
}

/** An address that is reachable from the internet. Takes what `net` and DNS return: dotted IPv4, or IPv6 without brackets. */
export function isPublicAddress(ip: string): boolean {
  if (!ipaddr.isValid(ip)) return false
  const address = ipaddr.process(ip) // turns v4-mapped IPv6 into plain IPv4
  if (address.range() !== 'unicast') return false
  // The table also calls `::127.0.0.1` and unallocated space unicast; only 2000::/3 has been allocated.
  return address.kind() === 'ipv4' || ((address as ipaddr.IPv6).parts[0]! & 0xe000) === 0x2000
}

function authorityOf(hostname: string, port: string): string {
  return hostname.includes(':') ? `[${hostname}]:${port}` : `${hostname}:${port}`
}

/** `HOST:PORT` in its canonical form; without a port, one entry for each default port. */
function authoritiesOf(entry: string): string[] {
  const url = /^[^/\\?#@\s]+$/.test(entry) ? URL.parse(`http://${entry}`) : null
  if (url === null) throw new ScrapeError('E_OPTION', `an allowed address is HOST:PORT, not ${JSON.stringify(entry)}`)
  const hostname = url.hostname.replace(/\.+$/, '')
  if (url.port !== '') return [`${hostname}:${url.port}`]
  return /:0*80$/.test(entry) ? [`${hostname}:80`] : [`${hostname}:80`, `${hostname}:443`]
}

function noAddress(hostname: string): Error {
  return Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' })
}
