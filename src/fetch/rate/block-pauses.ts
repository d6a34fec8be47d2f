/**
 * Blocks in a row: what it means for a host that it turns one page after another away.
 *
 * One page that is turned away pays a try: it may be the only one. When the next answer is a block, too, and we have nobody else
 * to be, the host pauses: 2 s, twice as long with every block after a pause. While there are others (proxies, browsers), pages go
 * on as those, until five in a row were turned away. Blocks that more than one page met are the host's, and cost nobody a try.
 * That must end: after five pauses (a minute) without any other answer, blocks pause nobody and cost a try again.
 */

import { LRUCache } from 'lru-cache'
import { type BackoffLimits, doubledMs } from '../../core/backoff.ts'
import type { ScrapeError } from '../../core/errors.ts'

/** The request that was turned away. */
export interface BlockedRequest {
  url: string
  startedMs: number
  /** The next try could be made neither as somebody else nor another way. */
  isAlone: boolean
}

interface BlockPauses {
  onAnswer(host: string): void
  /** Names in the error when to come again at no cost, or no time. */
  onBlocked(host: string, error: ScrapeError, request: BlockedRequest): void
}

const PAUSE: BackoffLimits = { delayMsMin: 2000, delayMsMax: 60_000 }
const PAUSES_MAX = 5
const IN_A_ROW_ALONE = 2
const IN_A_ROW = 5
const HOSTS_MAX = 10_000

interface HostBlocks {
  readonly firstUrl: string
  /** More than one page met them. */
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
      // What was under way when the pause began says nothing new.
      if (startedMs > blocks.pausedAtMs) {
        blocks.inARow++
        // A 403 without a sign of a guard is most often about the page.
        const isTheHosts = isAlone && error.code !== 'E_FORBIDDEN'
        if (blocks.inARow >= (isTheHosts ? IN_A_ROW_ALONE : IN_A_ROW)) pauseFor(blocks, host, error)
      }
      const isFree = blocks.isMany && blocks.pauses > 0 && blocks.pauses <= PAUSES_MAX
      if (isFree) error.details.retryAfterMs = Math.max(0, blocks.untilMs - now())
      else delete error.details.retryAfterMs
    },
  }
}
