/**
 * Identifies the caller. A key is looked up in memory first. An unknown or missing key costs the caller's address one of a few
 * tries before the store is queried at all.
 *
 *   key ──▶ in the environment? ──▶ in the cached keys of the store? ──▶ [a try left?] ──▶ in the store now?
 *   none ─▶ local, and no key ever existed (or --no-key-on-loopback)? ──▶ [a try left?] ──▶ 401
 */
import type { IncomingHttpHeaders } from 'node:http'
import ipaddr from 'ipaddr.js'
import { ScrapeError } from '../../../core/errors.ts'
import { isFromForeignPage } from '../../../core/foreign-page.ts'
import { isLoopbackAddress, isLoopbackHost, isLoopbackHostHeader } from '../../../core/loopback.ts'
import type { ApiKeys } from '../../../server/access/keys.ts'
import type { CallerParts, KnownCaller, Unknown } from '../../../server/api/caller.ts'
import { type EnvironmentKey, environmentKeys, isSameKey } from './environment-keys.ts'
import { KnownKeys } from './known-keys.ts'
import { createThrottle } from './request-throttle.ts'
import type { TrustedProxies } from './trusted-proxies.ts'

/** How many wrong or missing keys an address may send at once, and then per second. Valid keys do not count. */
const WRONG_BURST = 20
const WRONG_PER_SECOND = 1

export interface GateOptions {
  keys: ApiKeys
  /** Where the server listens. */
  host: string
  /** `--no-key-on-loopback`: requests from this machine need no key, even if keys exist. */
  isLoopbackFree: boolean
  proxies: TrustedProxies
  /** Called when the first key has been created. */
  say: (message: string) => void
  env?: NodeJS.ProcessEnv
  now?: () => number
}

interface Gate {
  identify: CallerParts['identify']
  /** States who needs a key now, in a sentence. */
  rule: string
}

/** Throws `E_OPTION` for an address that others can reach if there is no key. */
export async function openGate(options: GateOptions): Promise<Gate> {
  const { keys, host, isLoopbackFree, proxies, say, now, env = process.env } = options
  const own = environmentKeys(env)
  const known = new KnownKeys(keys, now)
  const wrong = createThrottle({ perSecond: WRONG_PER_SECOND, burst: WRONG_BURST, ...(now && { now }) })
  if (!isLoopbackHost(host) && own().length === 0 && (await keys.inUse()).size === 0)
    throw new ScrapeError('E_OPTION', `${host} can be reached by others, and there is no key`, {
      fix: 'Make one with `sluice key create NAME --role admin`, or set SLUICE_API_KEY; or listen on 127.0.0.1.',
    })
  let isKeyNeeded = own().length > 0 || (await known.haveExisted())
  const behindProxy = LOOPBACK_ADDRESSES.filter((address) => proxies.isTrusted(address))
  const rule = ruleOf({ isKeyNeeded, isLoopbackFree, behindProxy })

  async function mayLocal(): Promise<boolean> {
    if (isLoopbackFree) return true
    if (isKeyNeeded) return false
    if (await known.haveExisted()) {
      isKeyNeeded = true
      say(`the first key was created: ${ruleOf({ isKeyNeeded, isLoopbackFree, behindProxy })}`)
    }
    return !isKeyNeeded
  }

  const isLocal = (headers: IncomingHttpHeaders, socketAddress: string) =>
    isLoopbackAddress(socketAddress) &&
    isLoopbackHostHeader(headers.host) &&
    !isFromForeignPage(headers) &&
    !proxies.isForwarded(headers, socketAddress)

  async function identify(headers: IncomingHttpHeaders, socketAddress: string): Promise<KnownCaller | Unknown> {
    const { authorization } = headers
    const bucket = networkOf(proxies.clientAddress(headers, socketAddress))
    if (authorization === undefined) {
      if (isLocal(headers, socketAddress) && (await mayLocal())) return LOCAL(socketAddress)
      return { given: 'no key', waitMs: wrong(bucket) }
    }
    const key = /^bearer +(\S{1,200})$/i.exec(authorization.trim())?.[1]
    if (key === undefined) return { given: 'another scheme', waitMs: wrong(bucket) }
    const ownKey = own().find((one) => isSameKey(key, one.key))
    if (ownKey !== undefined) return ofEnvironment(ownKey)
    const found = await known.find(key)
    if (found !== undefined) return ofStore(found)
    const waitMs = wrong(bucket)
    const made = waitMs > 0 ? undefined : await known.findNew(key)
    return made === undefined ? { given: 'wrong key', waitMs } : ofStore(made)
  }
  return { identify, rule }
}

/** This machine is a single caller, although it has 16 million addresses. */
const LOCAL = (address: string): KnownCaller => ({ name: address, role: 'admin', scope: scopeOf('local') })

const ofEnvironment = ({ name, role }: EnvironmentKey): KnownCaller => ({
  name,
  role,
  scope: scopeOf('environment', name),
})

/** Identified by name: a rotated key is the same caller. */
const ofStore = ({ name, role }: Pick<KnownCaller, 'name' | 'role'>): KnownCaller => ({
  name,
  role,
  scope: scopeOf('key', name),
})

const scopeOf = (...parts: string[]) => JSON.stringify(parts)

/** Addresses that clients on this machine usually connect from. */
const LOOPBACK_ADDRESSES = ['127.0.0.1', '::1']

interface RuleParts {
  isKeyNeeded: boolean
  isLoopbackFree: boolean
  /** Loopback addresses in `--trust-proxy`: requests from there count as coming from other machines. */
  behindProxy: readonly string[]
}

function ruleOf({ isKeyNeeded, isLoopbackFree, behindProxy }: RuleParts): string {
  if (isKeyNeeded && !isLoopbackFree) return 'every request needs a key, including requests from this machine'
  const except =
    behindProxy.length === 0
      ? ''
      : `; requests from ${behindProxy.join(' and ')} come through a proxy (--trust-proxy) and need one`
  return isLoopbackFree
    ? `requests from this machine need no key (--no-key-on-loopback), all others do${except}`
    : `there is no key yet: requests from this machine need none until the first key is created${except}`
}

/** One customer usually has a whole /64 of IPv6. */
function networkOf(address: string): string {
  if (!ipaddr.IPv6.isValid(address)) return address
  return ipaddr.IPv6.parse(address).parts.slice(0, 4).map((part) => part.toString(16)).join(':') // biome-ignore format: one chain
}
