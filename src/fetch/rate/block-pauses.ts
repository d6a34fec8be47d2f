/**
 * Handles blocks in a row: what to do when a host blocks one page after another.
 *
 * One blocked page is charged an attempt: it may be the only one. If the next response is a block too, and we have no other
 * identity, the host is paused: for 2 s, and twice as long with every block after a pause. While there are other identities
 * (proxies, browsers), pages continue with those until five in a row were blocked. Blocks of more than one page are the host's
 * fault, and cost no page an attempt. That must end: after five pauses (a minute) without any other response, blocks no longer
 * pause the host and cost an attempt again.
 */

import { LRUCache } from 'lru-cache'
import { type BackoffLimits, doubledMs } from '../../core/backoff.ts'
import type { ScrapeError } from '../../core/errors.ts'

/** The request that was blocked. */
export interface BlockedRequest {
  url: string
  startedMs: number
  /** The next attempt cannot use another identity or another engine. */
  isAlone: boolean
}

interface BlockPauses {
  onAnswer(host: string): void
  /** Sets in the error when to retry without being charged an attempt, or removes that time. */
  onBlocked(host: string, error: ScrapeError, request: BlockedRequest): void
}

const PAUSE: BackoffLimits = { delayMsMin: 2000, delayMsMax: 60_000 }
const PAUSES_MAX = 5
const IN_A_ROW_ALONE = 2
const IN_A_ROW = 5
const HOSTS_MAX = 10_000

interface HostBlocks {
  readonly firstUrl: string
  /** More than one page was blocked. */
  isMany: boolean
  inARow: number
  pauses: number
  pausedAtMs: number
  untilMs: number
}

export function createBlockPauses(
  pause: (host: string, untilMs: number, reason: string) => void,
  now: () => number,
): BlockPauses {
  const hosts = new LRUCache<string, HostBlocks>({ max: HOSTS_MAX })

  function blocksOf(host: string, firstUrl: string): HostBlocks {
    const known = hosts.get(host)
    if (known !== undefined) return known
    const pausedAtMs = Number.NEGATIVE_INFINITY
    const blocks = { firstUrl, isMany: false, inARow: 0, pauses: 0, pausedAtMs, untilMs: 0 }
    hosts.set(host, blocks)
    return blocks
  }

  function pauseFor(blocks: HostBlocks, host: string, error: ScrapeError): void {
    const nowMs = now()
    blocks.pauses++
    blocks.pausedAtMs = nowMs
    if (blocks.pauses > PAUSES_MAX) return
    const namedMs = Math.min(PAUSE.delayMsMax, error.details.retryAfterMs ?? 0)
    blocks.untilMs = nowMs + Math.max(doubledMs(blocks.pauses, PAUSE), namedMs)
    pause(host, blocks.untilMs, `${error.code}, ${blocks.inARow} blocks in a row`)
  }

  return {
    onAnswer(host) {
      if (hosts.size > 0) hosts.delete(host)
    },
    onBlocked(host, error, { url, startedMs, isAlone }) {
      const blocks = blocksOf(host, url)
      blocks.isMany ||= url !== blocks.firstUrl
      // Requests that were in flight when the pause began say nothing new.
      if (startedMs > blocks.pausedAtMs) {
        blocks.inARow++
        // A 403 without a sign of bot protection is most often about the page.
        const isTheHosts = isAlone && error.code !== 'E_FORBIDDEN'
        if (blocks.inARow >= (isTheHosts ? IN_A_ROW_ALONE : IN_A_ROW)) pauseFor(blocks, host, error)
      }
      const isFree = blocks.isMany && blocks.pauses > 0 && blocks.pauses <= PAUSES_MAX
      if (isFree) error.details.retryAfterMs = Math.max(0, blocks.untilMs - now())
      else delete error.details.retryAfterMs
    },
  }
}
