/**
 * An identity: cookies, a proxy and a browser profile that belong together, as they do for a person. They never change during
 * its life; once a site rejects it, it is retired for good and replaced by another.
 *
 *   usable ──3 errors more than successes · 50 uses · 50 minutes · a block──▶ retired
 */
import type { AddressGuard } from '../net/address.ts'
import { type CookieKeeper, IdentityCookies } from './identity-cookies.ts'
import type { PooledProxy } from './pooled-proxy.ts'
import type { Profile } from './profiles.ts'

/** What the transport needs to know about an identity. */
export interface Identity {
  /** Short; for events and logs. */
  readonly id: string
  /** Undefined: we identify as ourselves. */
  readonly profile: Profile | undefined
  /** Undefined: a direct connection, or however the run connects. */
  readonly proxy: PooledProxy | undefined
  /** Connects through its proxy. */
  readonly guard: AddressGuard | undefined
  /** Undefined for a named user, whose cookies the run manages. */
  readonly cookies: CookieKeeper | undefined
}

export interface IdentityLimits {
  /** Default 3. */
  errorScoreMax: number
  /** Default 50. */
  usesMax: number
  /** Default 3000 s. */
  ageMsMax: number
}

export const IDENTITY_LIMITS: IdentityLimits = { errorScoreMax: 3, usesMax: 50, ageMsMax: 3_000_000 }

const BAD = 1
const GOOD = 0.5

interface IdentityParts {
  id: string
  profile: Profile | undefined
  proxy: PooledProxy | undefined
  bornAtMs: number
  /** The user it belongs to. */
  session?: string
}

export class PinnedIdentity implements Identity {
  readonly id: string
  readonly profile: Profile | undefined
  readonly proxy: PooledProxy | undefined
  readonly cookies: CookieKeeper | undefined
  readonly session: string | undefined
  errorScore = 0
  uses = 0
  isRetired = false
  readonly #bornAtMs: number

  constructor({ id, profile, proxy, bornAtMs, session }: IdentityParts) {
    this.id = id
    this.profile = profile
    this.proxy = proxy
    this.session = session
    this.cookies = session === undefined ? new IdentityCookies() : undefined
    this.#bornAtMs = bornAtMs
  }

  get guard(): AddressGuard | undefined {
    return this.proxy?.guard
  }

  onGood(): void {
    this.errorScore = Math.max(0, this.errorScore - GOOD)
  }

  onBad(): void {
    this.errorScore += BAD
  }

  /**
   * Why it must not be used any more; undefined while it may. Only imitated browsers wear out: a named user keeps theirs, and
   * we stay ourselves, however long it takes.
   */
  exhaustion({ errorScoreMax, usesMax, ageMsMax }: IdentityLimits, nowMs: number): string | undefined {
    if (this.errorScore >= errorScoreMax) return `error score ${this.errorScore}`
    if (this.session !== undefined || this.profile === undefined) return undefined
    if (this.uses >= usesMax) return `${this.uses} uses`
    return nowMs - this.#bornAtMs >= ageMsMax ? `${Math.round((nowMs - this.#bornAtMs) / 1000)} s old` : undefined
  }
}
