/**
 * Detects a stalled run: can it still make progress? Checked while a worker has nothing in flight.
 *
 *   a host that is not paused has tasks · another worker is busy · the run is paused manually   → yes
 *   all remaining tasks wait for longer than `waitMs`                        → no: nothing would happen for too long
 *   all remaining hosts are paused, and no page was settled for `waitMs`     → no: probing does not help
 *
 * A run that cannot make progress stops with `E_STALLED` and can be resumed; no page is given up. Hosts stay paused when it is
 * resumed.
 */
import { ScrapeError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import type { HostPause, RateLimit } from '../fetch/contract.ts'
import type { Frontier, FrontierStats } from '../frontier/contract.ts'

interface StallParts {
  frontier: Pick<Frontier, 'stats' | 'nextDueMs' | 'setMeta'>
  rateLimit: Pick<RateLimit, 'pauses'>
  /** Infinity: wait as long as it takes. */
  waitMs: number
  /** Waiting for a retry for up to this long is not a stall. */
  backoffMsMax: number
  /** True while more tasks may be added. */
  isOpenEnded?: () => Promise<boolean>
  now: () => number
  monotonicNow?: () => number
}

const META = 'hostPauses'
const PAUSES_KEPT_MAX = 1000

export class StallWatch {
  readonly #parts: StallParts
  readonly #monotonicNow: () => number
  #isAsking = false
  #settled = -1
  /** When a page was last seen to be settled, by any worker. */
  #movedAtMs: number

  constructor(parts: StallParts) {
    this.#parts = parts
    this.#monotonicNow = parts.monotonicNow ?? (() => performance.now())
    this.#movedAtMs = this.#monotonicNow()
  }

  /** Why the run is stalled; undefined while it is not. `heldHosts`: hosts of tasks this worker has claimed but not started. */
  async check(heldHosts: readonly string[]): Promise<ScrapeError | undefined> {
    const { frontier, rateLimit, waitMs, isOpenEnded } = this.#parts
    if (!Number.isFinite(waitMs) || this.#isAsking) return undefined
    this.#isAsking = true
    const stats = await frontier.stats().finally(() => {
      this.#isAsking = false
    })
    if (stats.completed + stats.failed !== this.#settled || stats.isPaused) {
      this.#settled = stats.completed + stats.failed
      this.#movedAtMs = this.#monotonicNow()
    }
    if (stats.remaining === 0 || stats.isPaused) return undefined
    const pauses = rateLimit.pauses()
    const reason = this.#pausedReason(stats, heldHosts, pauses) ?? (await this.#dueReason(stats))
    if (reason === undefined || (await isOpenEnded?.())) return undefined
    await frontier.setMeta(META, JSON.stringify(pauses.slice(0, PAUSES_KEPT_MAX)))
    return new ScrapeError('E_STALLED', `${pagesText(stats)} ${reason}`)
  }

  #pausedReason(
    { hosts, claimed, pending }: FrontierStats,
    heldHosts: readonly string[],
    pauses: readonly HostPause[],
  ): string | undefined {
    const { waitMs, now } = this.#parts
    const byHost = new Map(pauses.map((pause) => [pause.host, pause]))
    const names = new Set([...heldHosts, ...hosts.filter(({ pending }) => pending > 0).map(({ host }) => host)])
    const waiting = [...names].map((host) => byHost.get(host))
    if (waiting.length === 0 || !waiting.every((pause) => pause !== undefined)) return undefined
    const ofPaused = hosts.reduce((sum, host) => sum + (byHost.has(host.host) ? host.claimed : 0), 0)
    if (claimed - ofPaused > 0) return undefined // another worker is busy with another host
    const [first, ...others] = waiting.toSorted((one, other) => one.untilMs - other.untilMs)
    const why = `${first!.host}: ${first!.reason}${moreHosts(others)}`
    // With many hosts, the queue names only some of them. For the others we only know that no page has succeeded.
    const areAllNamed = hosts.reduce((sum, host) => sum + host.pending, 0) >= pending
    if (areAllNamed && first!.untilMs - now() > waitMs) return `must wait until ${timeText(first!.untilMs)}: ${why}`
    const idleMs = this.#monotonicNow() - this.#movedAtMs
    return idleMs > waitMs ? `must wait, and none has succeeded for ${Math.round(idleMs / 1000)} s: ${why}` : undefined
  }

  /** No worker is busy, and the first task is due much later. */
  async #dueReason({ claimed }: FrontierStats): Promise<string | undefined> {
    const { frontier, waitMs, backoffMsMax, now } = this.#parts
    if (claimed > 0) return undefined
    const dueMs = await frontier.nextDueMs()
    if (dueMs === undefined || dueMs - now() <= Math.max(waitMs, backoffMsMax)) return undefined
    return `must wait until ${timeText(dueMs)}`
  }
}

/** A run that stopped because its hosts asked it to wait must still wait when it is resumed. Logs what it waits for. */
export async function restorePauses({
  frontier,
  rateLimit,
  bus,
  now,
}: {
  frontier: Pick<Frontier, 'getMeta'>
  rateLimit: Pick<RateLimit, 'pause'>
  bus: Pick<EventBus, 'emit'>
  now: () => number
}): Promise<void> {
  const kept = JSON.parse((await frontier.getMeta(META)) || '[]') as HostPause[]
  for (const { host, untilMs, reason } of kept) rateLimit.pause(host, untilMs, reason)
  const [first, ...others] = kept.filter(({ untilMs }) => untilMs > now())
  if (first === undefined) return
  const message = `${first.host} is still paused until ${timeText(first.untilMs)}: ${first.reason}${moreHosts(others)}`
  bus.emit({ type: 'log', level: 'warn', message })
}

const pagesText = ({ remaining }: FrontierStats) =>
  remaining === 1 ? 'the 1 page left' : `all ${remaining} pages left`

const moreHosts = ({ length }: readonly unknown[]) =>
  length === 0 ? '' : `, and ${length} more ${length === 1 ? 'host' : 'hosts'}`

const timeText = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`
