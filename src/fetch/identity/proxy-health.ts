/**
 * Which proxies of a pool are up.
 *
 *        connection or login fails               rest is over, and a check succeeds
 *   up ────────────────────────────▶ down ─────────────────────────────────────────▶ up
 *                                                              └─ check fails: rests again, longer
 *
 * With none up, all are checked every few seconds. One that answers a check is on trial: it is used, and counts as up once a
 * tunnel has been established. One that rejects our login is never used again; if all do, that is a configuration error
 * (`E_PROXY_REFUSED`).
 */

import { backoffMs, doubledMs } from '../../core/backoff.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { every } from '../../core/every.ts'
import { checkProxy } from '../net/proxy-check.ts'
import type { Member } from './pooled-proxy.ts'

export interface ProxyHealthOptions {
  events?: Pick<EventBus, 'emit'>
  /** A rest is drawn from 0 to this, doubled with each in a row. Default 5 minutes. */
  restMs?: number
  /** Default 1 hour. */
  restMsMax?: number
  /** How long all of them may be down before pages fail with `E_PROXIES_LOST`. Default: no limit. */
  downMsMax?: number
  /** How often those whose rest is over are checked, and all of them while none is up. Default 1 s. */
  recheckMs?: number
  now?: () => number
  random?: () => number
  check?: (url: string, timeoutMs: number) => Promise<number>
}

const CHECK_MS_MAX = 5000
const CHECKS_AT_ONCE_MAX = 64
const RECHECK_MS = 1000
/** The longest pause between two trials of a proxy that answers checks but lets no request through. */
const TRIAL_MS_MAX = 30_000
/** How often, at most, it is logged that all of them are down. */
const SAID_MS = 60_000

export class ProxyHealth implements Disposable {
  readonly #members: readonly Member[]
  readonly #options: ProxyHealthOptions
  readonly #now: () => number
  readonly #random: () => number
  readonly #sweeper: NodeJS.Timeout
  readonly #waiters = new Set<() => void>()
  #isDisposed = false
  /** None of them has let anything through since the last one failed. */
  areAllDown = false
  #downSinceMs = 0
  #saidDownMs = Number.NEGATIVE_INFINITY
  #hasSaidDown = false

  constructor(members: readonly Member[], options: ProxyHealthOptions) {
    this.#members = members
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#random = options.random ?? Math.random
    this.#sweeper = every(() => this.#sweep(), options.recheckMs ?? RECHECK_MS)
    this.#sweeper.unref()
  }

  /** Looks at all of them; those that do not answer are down. Throws `E_PROXY` when none does. */
  async checkAll(): Promise<void> {
    const left = [...this.#members]
    const work = async () => {
      for (let member = left.pop(); member !== undefined; member = left.pop()) {
        try {
          member.latencyMs = await this.#look(member)
        } catch (error) {
          this.fail(member, namedReason(member, error), error)
        }
      }
    }
    await Promise.all(Array.from({ length: CHECKS_AT_ONCE_MAX }, work))
    if (this.#members.some(({ restUntilMs }) => restUntilMs === 0)) return
    this.throwIfRefused()
    const { message, notes } = this.#reasons(`none of the ${this.#members.length} proxies can be reached`)
    throw new ScrapeError('E_PROXY', message, { notes })
  }

  /** It could not be reached, or did not let us through. */
  fail(member: Member, reason: string, error: unknown): void {
    if (error instanceof ScrapeError && error.details.isLoginRefused === true) this.#refuse(member, reason)
    else this.#down(member, reason)
  }

  /** A tunnel through it was established, after `ms`. */
  onTunnel(member: Member, ms: number): void {
    member.onTunnel(ms)
    if (member.isRefused) return
    if (member.isOnTrial || !member.isUp) this.#tell(member, 'up', 'lets us through again')
    member.restUntilMs = 0
    member.isOnTrial = false
    member.failedTrials = 0
    if (!this.areAllDown) return
    this.areAllDown = false
    if (this.#hasSaidDown) this.#log('info', `the proxy ${member.name} is back: fetching continues`)
  }

  /** With `E_PROXY_REFUSED`, when all of them reject our logins. */
  throwIfRefused(): void {
    if (!this.#members.every(({ isRefused }) => isRefused)) return
    const { message, notes } = this.#reasons(`all ${this.#members.length} proxies reject our logins`)
    throw new ScrapeError('E_PROXY_REFUSED', message, { notes })
  }

  /** With `E_PROXIES_LOST`, when all of them have been down for too long. */
  throwIfLost(): void {
    if (this.#now() < this.lostAtMs) return
    const downMs = this.#now() - this.#downSinceMs
    const { message, details } = this.downError()
    const notes = { notes: details.notes ?? [] }
    throw new ScrapeError('E_PROXIES_LOST', `no proxy has worked for ${Math.round(downMs / 1000)} s: ${message}`, notes)
  }

  downError(): ScrapeError {
    const retryAfterMs = 5 * (this.#options.recheckMs ?? RECHECK_MS)
    const { message, notes } = this.#reasons(`none of the ${this.#members.length} proxies is up`)
    return new ScrapeError('E_PROXIES_DOWN', message, { retryAfterMs, notes })
  }

  /** For an error: the reason of the only proxy, or what is said of many, and the reasons of the first ten. */
  #reasons(ofMany: string): { message: string; notes: string[] } {
    const notes = this.#members.slice(0, 10).map(({ name, reason }) => `${name}: ${reason}`)
    return { message: this.#members.length === 1 ? this.#members[0]!.reason : ofMany, notes }
  }

  /** When waiting for them is over. */
  get lostAtMs(): number {
    return this.areAllDown
      ? this.#downSinceMs + (this.#options.downMsMax ?? Number.POSITIVE_INFINITY) + 1
      : Number.POSITIVE_INFINITY
  }

  /** Resolves when a proxy comes up or is refused, or `ms` have passed. */
  untilChange(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        this.#waiters.delete(done)
        resolve()
      }
      const timer = setTimeout(done, Math.max(1, ms))
      signal.addEventListener('abort', done, { once: true })
      this.#waiters.add(done)
    })
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    clearInterval(this.#sweeper)
    this.#wake()
  }

  /** How long one rests that has failed so many times in a row. */
  readonly restMs = (inARow: number): number => {
    const { restMs = 300_000, restMsMax = 3_600_000 } = this.#options
    return Math.max(1, backoffMs(inARow + 1, { delayMsMin: restMs, delayMsMax: restMsMax }, this.#random))
  }

  /** Permanently: no check will make our login valid. */
  #refuse(member: Member, reason: string): void {
    if (member.isRefused) return
    member.isRefused = true
    member.isOnTrial = false
    member.restUntilMs = Number.POSITIVE_INFINITY
    member.reason = reason
    this.#tell(member, 'down', reason)
    if (this.#members.length > 1) this.#log('warn', `${reason}: ${member.name} is not used again`)
    this.#noteIfAllDown(reason)
    this.#wake()
  }

  #down(member: Member, reason: string): void {
    if (member.isRefused) return
    member.rate(0)
    const wasUp = member.restUntilMs === 0 && !member.isOnTrial
    if (member.isOnTrial) member.failedTrials++
    member.isOnTrial = false
    member.restUntilMs = this.#now() + this.restMs(member.downs++)
    member.reason = reason
    if (wasUp) this.#tell(member, 'down', reason, { untilMs: member.restUntilMs })
    this.#noteIfAllDown(reason)
  }

  #noteIfAllDown(reason: string): void {
    if (this.areAllDown || this.#members.some((one) => one.restUntilMs === 0)) return
    this.areAllDown = true
    this.#downSinceMs = this.#now()
    const isHopeless = this.#members.every(({ isRefused }) => isRefused) // the next page ends the run instead
    this.#hasSaidDown = !isHopeless && this.#now() - this.#saidDownMs >= SAID_MS
    if (this.#hasSaidDown) {
      this.#saidDownMs = this.#now()
      const count = this.#members.length === 1 ? 'the proxy is' : `all ${this.#members.length} proxies are`
      this.#log('warn', `${count} down (${reason}): pages wait, and nothing is sent directly`)
    }
    this.#sweep()
  }

  /** It answers a check. The next tunnel shows whether it lets us through. */
  #try(member: Member): void {
    member.isOnTrial = true
    member.restUntilMs = 0
    member.failures = 0
    // Not behind by all the turns it missed: it would be the only one picked until it had caught up.
    member.turn = Math.max(member.turn, ...this.#members.filter((one) => one !== member).map((one) => one.turn))
    this.#wake()
  }

  #sweep(): void {
    const nowMs = this.#now()
    for (const member of this.#members) {
      if (member.restUntilMs === 0 || member.isChecking || member.isRefused) continue
      if (this.areAllDown ? this.#isTrialDue(member, nowMs) : member.restUntilMs <= nowMs) void this.#check(member)
    }
  }

  /** At once, and then after a pause that doubles with each failed trial. */
  #isTrialDue({ failedTrials, checkedAtMs }: Member, nowMs: number): boolean {
    if (failedTrials === 0) return true
    const { recheckMs = RECHECK_MS } = this.#options
    return nowMs - checkedAtMs >= doubledMs(failedTrials + 1, { delayMsMin: recheckMs, delayMsMax: TRIAL_MS_MAX })
  }

  async #check(member: Member): Promise<void> {
    member.isChecking = true
    try {
      await this.#look(member)
      member.checkedAtMs = this.#now()
      if (!this.#isDisposed) this.#try(member)
    } catch (error) {
      if (this.#isDisposed) return
      if (error instanceof ScrapeError && error.details.isLoginRefused === true) {
        this.#refuse(member, namedReason(member, error))
        return
      }
      member.reason = namedReason(member, error)
      // While none is up, repeated requests do not lengthen their rest.
      if (!this.areAllDown) member.restUntilMs = this.#now() + this.restMs(member.downs++)
    } finally {
      member.isChecking = false
    }
  }

  #look(member: Member): Promise<number> {
    return (this.#options.check ?? checkProxy)(member.url, CHECK_MS_MAX)
  }

  #wake(): void {
    for (const done of [...this.#waiters]) done()
  }

  #tell(member: Member, state: 'up' | 'down', reason: string, more: { untilMs?: number } = {}): void {
    this.#options.events?.emit({ type: 'proxy', proxy: member.name, state, reason, ...more })
  }

  #log(level: 'info' | 'warn', message: string): void {
    this.#options.events?.emit({ type: 'log', level, message })
  }
}

/** A check knows no name. */
function namedReason({ name }: Member, error: unknown): string {
  return (error as Error).message.replace(/^the proxy /, `the proxy ${name} `)
}
