/** The egress of a worker: which proxies, which identities, and what differs for some sites. */

import type { ConfigValues } from '../../config/option-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import type { SiteOptions } from '../../core/options.ts'
import type { Identities, IdentityMode, IdentityStrategy } from '../../fetch/identity/identities.ts'
import type { Profile } from '../../fetch/identity/profiles.ts'
import type { ProxyPool } from '../../fetch/identity/proxy-pool.ts'
import type { AddressOptions } from '../../fetch/net/address.ts'

/** Plain data: it may be sent to another process. */
export interface EgressSpec {
  /** URLs by tier; empty: connect directly, or through `proxy`. */
  proxies: readonly (readonly string[])[]
  identity: IdentityMode
  strategy: IdentityStrategy
  sites: Readonly<Record<string, SiteOptions>>
}

type EgressValues = Pick<ConfigValues, 'proxy' | 'proxies' | 'identity' | 'identityStrategy' | 'sites'>

/** A single proxy is a pool of one. */
export function egressOf({ proxy, proxies, identity, identityStrategy, sites }: EgressValues): EgressSpec {
  return {
    proxies: proxies ?? (proxy === undefined ? [] : [[proxy]]),
    identity,
    strategy: identityStrategy,
    sites,
  }
}

export const DIRECT: EgressSpec = { proxies: [], identity: 'honest', strategy: 'round-robin', sites: {} }

export type SiteFinder = (host: string) => SiteOptions | undefined

/** Undefined when no site has its own settings. `host` is written as in URLs; `*.example.com` stands for its subdomains. */
export function siteFinder(sites: Readonly<Record<string, SiteOptions>>): SiteFinder | undefined {
  const byName = new Map(Object.entries(sites).map(([name, site]) => [name.toLowerCase(), site]))
  if (byName.size === 0) return undefined
  return (host) => {
    const hostname = host.replace(/:\d+$/, '')
    const exact = byName.get(host) ?? byName.get(hostname)
    if (exact !== undefined) return exact
    for (let dot = hostname.indexOf('.'); dot !== -1; dot = hostname.indexOf('.', dot + 1)) {
      const site = byName.get(`*${hostname.slice(dot)}`)
      if (site !== undefined) return site
    }
    return undefined
  }
}

interface IdentityParts {
  ways: EgressSpec
  addresses: AddressOptions
  siteOf: SiteFinder | undefined
  /** How long all proxies may be down. Undefined: no limit. */
  waitMs?: number | undefined
  /** If no proxy answers at the start, pages wait for one, as they do later. Undefined: that is an error. */
  waitsForProxies?: boolean | undefined
  /** Pages may be opened in our own browser. */
  needsChromium: boolean
  /** Shared proxies, used instead of those of `ways`. The code that opened them checks and closes them. */
  pool?: ProxyPool | undefined
  /** For the mode `tls`. */
  tlsProfiles?: readonly Profile[] | undefined
  bus: EventBus
}

/** Undefined without any. The proxies have not been checked yet. */
export async function openPool({
  ways,
  addresses,
  bus,
  waitMs,
}: Pick<IdentityParts, 'ways' | 'addresses' | 'bus' | 'waitMs'>): Promise<ProxyPool | undefined> {
  if (ways.proxies.length === 0) return undefined
  const { openProxyPool } = await import('../../fetch/identity/proxy-pool.ts')
  return openProxyPool({ tiers: ways.proxies, addresses, events: bus, downMsMax: waitMs })
}

/** Whether one of the modes is used anywhere, globally or for a single site. */
export function isAnywhereAs({ identity, sites }: EgressSpec, ...modes: IdentityMode[]): boolean {
  return [identity, ...Object.values(sites).map((site) => site.identity)].some((mode) =>
    modes.includes(mode ?? identity),
  )
}

/**
 * Undefined when everything goes out under our own identity and the same way: then none of it is loaded or paid for. Throws
 * `E_PROXY`.
 */
export async function openIdentities(parts: IdentityParts): Promise<Identities | undefined> {
  const { ways, siteOf, needsChromium, pool: shared, tlsProfiles, bus } = parts
  if (shared === undefined && ways.proxies.length === 0 && !isAnywhereAs(ways, 'browser', 'tls')) return undefined
  const { createIdentities } = await import('../../fetch/identity/identities.ts')
  const pool = shared ?? (await openCheckedPool(parts))
  return createIdentities({
    mode: ways.identity,
    strategy: ways.strategy,
    needsChromium,
    events: bus,
    proxies: pool,
    areProxiesShared: shared !== undefined,
    siteOf,
    tlsProfiles,
  })
}

async function openCheckedPool(parts: IdentityParts): Promise<ProxyPool | undefined> {
  const pool = await openPool(parts)
  try {
    await pool?.checkAll()
    return pool
  } catch (error) {
    // The pool has reported it. Pages of sites without proxies do not need them, and the others wait.
    if (Object.values(parts.ways.sites).some(({ proxies }) => proxies === 'off')) return pool
    if (parts.waitsForProxies === true && error instanceof ScrapeError && error.verdict !== 'halt') return pool
    pool?.[Symbol.dispose]()
    throw error
  }
}
