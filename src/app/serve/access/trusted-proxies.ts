/**
 * `--trust-proxy`: the addresses of callers behind proxies. Forwarding headers are only trusted on connections from one of the given
 * addresses. From anyone else they may be made up, and only mean that the request is not local.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { ScrapeError } from '../../../core/errors.ts'

/** How many entries are read, from the right: the last ones come from the proxies. */
const HOPS_MAX = 32

/** Headers set by proxies, and not by clients that connect directly. */
const FORWARDING =
  /^(?:forwarded|via|x-real-ip|x-forwarded(?:-.+)?|x-client-ip|x-cluster-client-ip|true-client-ip|cf-connecting-ip)$/

export class TrustedProxies {
  readonly #trusted = new BlockList()

  /** `127.0.0.1`, `10.0.0.0/8`, `::1`, any number of them, separated by commas. Throws `E_OPTION`. */
  constructor(text = '') {
    for (const entry of text.split(',').map((one) => one.trim())) if (text.trim() !== '') this.#add(entry)
  }

  /** Whether the request came through a proxy, known to us or not. */
  isForwarded(headers: IncomingHttpHeaders, socketAddress: string): boolean {
    return this.isTrusted(socketAddress) || Object.keys(headers).some((name) => FORWARDING.test(name))
  }

  /** The address of the caller: the last one that is not a trusted proxy. An unreadable entry ends the search at the proxy that sent it. */
  clientAddress(headers: IncomingHttpHeaders, socketAddress: string): string {
    let address = plainAddress(socketAddress)
    for (const hop of hopsOf(headers)) {
      if (!this.isTrusted(address)) break
      const next = addressIn(hop)
      if (next === undefined) break
      address = next
    }
    return address
  }

  /** Whether connections from this address come from a proxy. */
  isTrusted(address: string): boolean {
    const family = isIP(address)
    return family !== 0 && this.#trusted.check(address, family === 4 ? 'ipv4' : 'ipv6')
  }

  #add(entry: string): void {
    const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? []
    const family = isIP(address)
    const bitsMax = family === 4 ? 32 : 128
    if (family === 0 || address.includes('%') || Number(bits ?? 0) > bitsMax)
      throw new ScrapeError('E_OPTION', `--trust-proxy ${JSON.stringify(entry)} is not an address`, {
        fix: 'Give the addresses your proxies connect from, such as 127.0.0.1 or 10.0.0.0/24, separated by commas.',
      })
    this.#trusted.addSubnet(address, Number(bits ?? bitsMax), family === 4 ? 'ipv4' : 'ipv6')
  }
}

/**
 * From the last proxy back to the client. A proxy sets one of the two headers and may pass the other one on as the client sent it, so
 * if both are present and differ, neither is trusted.
 */
function hopsOf(headers: IncomingHttpHeaders): string[] {
  const list = listOf(headers['x-forwarded-for'])
  const standard = listOf(headers.forwarded).map((element) => /(?:^|;)\s*for="?([^";]*)/i.exec(element)?.[1] ?? '')
  if (list.length > 0 && standard.length > 0 && list.map(addressIn).join() !== standard.map(addressIn).join()) return []
  return (list.length > 0 ? list : standard).reverse()
}

function listOf(header: string | string[] | undefined): string[] {
  const text = String(header ?? '').trim()
  return text === '' ? [] : text.split(',').slice(-HOPS_MAX).map((one) => one.trim()) // biome-ignore format: one line reads better
}

/** `203.0.113.9`, `203.0.113.9:4711`, `[2001:db8::1]:4711`; undefined for `unknown`, `_hidden` and the like. */
function addressIn(hop: string): string | undefined {
  const [, v6, v4] = /^\[([^\]]+)\](?::\d+)?$|^([\d.]+)(?::\d+)?$/.exec(hop) ?? []
  const address = v6 ?? v4 ?? hop
  return isIP(address) === 0 ? undefined : plainAddress(address)
}

/** Normalises IPv4 addresses: a dual-stack socket reports `::ffff:203.0.113.9`. */
function plainAddress(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  return mapped !== undefined && isIP(mapped) === 4 ? mapped : address
}
