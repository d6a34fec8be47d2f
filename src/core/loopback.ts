/**
 * Whether an address, a host or a Host header means this machine. This is the only place that decides: API, metrics, bind
 * addresses and cookies all use it. The address is parsed, never compared as text: anyone can register `127.evil.example`.
 */
import { BlockList, isIP } from 'node:net'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** The characters of a name or a literal. Anything else (`%31`, `user@`, spaces) is rejected. */
const NAME = /^[a-z0-9.-]+$/i
const V6 = /^\[[0-9a-f:.]+\]$/i
const HOST_HEADER = /^(\[[^\]]*\]|[^:[\]]*)(?::\d{1,5})?$/

/** An address as reported by a socket. IPv4 mapped into IPv6 (`::ffff:127.0.0.1`) counts. */
export function isLoopbackAddress(address: string): boolean {
  const family = isIP(address)
  return family !== 0 && LOOPBACK.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

/**
 * A host as in a URL or a bind address: `localhost` or a literal in any spelling browsers and resolvers know (`127.1`, `0x7f.1`,
 * `[::1]`). No other name counts: some resolvers look up `*.localhost` and `localhost.` in DNS, so that DNS server could
 * answer anything.
 */
export function isLoopbackHost(host: string): boolean {
  const text = isIP(host) === 6 ? `[${host}]` : host
  if (!NAME.test(text) && !V6.test(text)) return false
  const hostname = URL.parse(`http://${text}`)?.hostname ?? ''
  return hostname === 'localhost' || isLoopbackAddress(hostname.replace(/^\[|\]$/g, ''))
}

/**
 * The Host header of a request: with or without a port, any port (a tunnel's differs from ours). False if missing or malformed.
 */
export function isLoopbackHostHeader(header: string | undefined): boolean {
  const host = HOST_HEADER.exec(header ?? '')?.[1]
  return host !== undefined && isLoopbackHost(host)
}
