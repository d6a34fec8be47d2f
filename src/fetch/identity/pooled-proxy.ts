/** One proxy of a pool: how well it works, and which sites block it. */
import { LRUCache } from 'lru-cache'
import type { AddressGuard } from '../net/address.ts'

export interface PooledProxy {
  /** `host:port`. */
  readonly name: string
  readonly tier: number
  readonly guard: AddressGuard
}

export interface ProxyStatus {
  proxy: string
  tier: number
  isUp: boolean
  /** Moving average of the success rate, 0 to 1. */
  success: number
  latencyMs: number
  failuresInARow: number
  /** Why it is down. */
  reason: string
}

const EWMA_ALPHA = 0.1
/** The lowest possible score: a proxy must get a chance to show that it has recovered. */
const SCORE_MIN = 0.05
/** A proxy this slow gets half the score. */
const SLOW_MS = 3000
/** Sites that are remembered as blocking a proxy. */
const BLOCKS_MAX = 1000

export class Member implements PooledProxy {
  readonly name: string
  readonly url: string
  readonly tier: number
  guard!: AddressGuard
  success = 1
  latencyMs = 0
  failures = 0
  /** Outages in a row, without a success between them. */
  downs = 0
  /** 0 while it is up. */
  restUntilMs = 0
  reason = ''
  isChecking = false
  /** It rejects our login and is not used again. */
  isRefused = false
  /** When a check last succeeded (epoch ms). */
  checkedAtMs = 0
  /** It answers again, but no tunnel has been established yet. */
  isOnTrial = false
  /** Trials in a row that failed. */
  failedTrials = 0
  /** Grows by the inverse of the score with every pick; the lowest is picked next, so good proxies are picked more often. */
  turn = 0
  readonly #rests = new LRUCache<string, { count: number; untilMs: number; isBlock: boolean }>({ max: BLOCKS_MAX })

  constructor(name: string, url: string, tier: number) {
    this.name = name
    this.url = url
    this.tier = tier
  }

  get score(): number {
    const speed = SLOW_MS / (SLOW_MS + this.latencyMs)
    return Math.max(SCORE_MIN, (this.success * speed) / (1 + this.failures))
  }

  get status(): ProxyStatus {
    const { name, tier, isUp, success, latencyMs, failures, reason } = this
    return { proxy: name, tier, isUp, success, latencyMs, failuresInARow: failures, reason }
  }

  get isUp(): boolean {
    return this.restUntilMs === 0
  }

  /** Avoid the proxy for this site until then, if possible; 0 if it may be used. */
  restUntilMsFor(host: string, nowMs: number): number {
    const untilMs = this.#rests.size === 0 ? 0 : (this.#rests.get(host)?.untilMs ?? 0)
    return untilMs > nowMs ? untilMs : 0
  }

  /** It rests because the site blocked it. */
  isBlockedBy(host: string, nowMs: number): boolean {
    return this.restUntilMsFor(host, nowMs) > 0 && this.#rests.get(host)?.isBlock === true
  }

  /** Rests the proxy for this site; `restMs` gets the number of earlier rests. Undefined: it already rests because of a block. */
  rest(host: string, nowMs: number, isBlock: boolean, restMs: (inARow: number) => number): number | undefined {
    if (this.isBlockedBy(host, nowMs)) return undefined // a response to a request that was in flight
    const count = this.#rests.get(host)?.count ?? 0
    const untilMs = nowMs + restMs(count)
    this.#rests.set(host, { count: count + 1, untilMs, isBlock })
    return untilMs
  }

  /** Called when the site has accepted it. */
  forgive(host: string): void {
    if (this.#rests.size > 0) this.#rests.delete(host)
  }

  rate(result: 0 | 1): void {
    this.success += EWMA_ALPHA * (result - this.success)
    if (result === 1) this.failures = 0
    else this.failures++
  }

  /** Called when a tunnel is established. */
  onTunnel(ms: number): void {
    this.latencyMs = this.latencyMs === 0 ? ms : this.latencyMs + EWMA_ALPHA * (ms - this.latencyMs)
    this.failures = 0
    this.downs = 0
  }
}

/** Gateways sell many exits at one address, distinguished by user name. */
export function uniqueName(name: string, seen: Map<string, number>): string {
  const count = (seen.get(name) ?? 0) + 1
  seen.set(name, count)
  return count === 1 ? name : `${name}#${count}`
}

/** FNV-1a with MurmurHash's finalizer: spreads well, and needs no secret. */
export function hash32(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
