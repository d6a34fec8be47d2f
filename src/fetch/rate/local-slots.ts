/** A worker's own share of every host's rate, for as long as it cannot reach the server. */
import { LRUCache } from 'lru-cache'
import { SLOT_HORIZON_MS, type SlotAsk, type SlotGrant } from './spacing.ts'

const HOSTS_MAX = 10_000

interface LocalSlots {
  /** Last known number of workers. Each keeps to its share, so together they keep to the rate. */
  workers: number
  take(ask: SlotAsk): SlotGrant
  /** Called when the server can be reached again. */
  forget(): void
}

export function createLocalSlots(now: () => number = () => performance.now()): LocalSlots {
  /** When the next request of a host may start. */
  const nextMs = new LRUCache<string, number>({ max: HOSTS_MAX })
  return {
    workers: 1,
    take({ host, intervalMs, count }) {
      if (intervalMs === 0) return { startsInMs: [], againInMs: 0, pausedMs: 0 }
      const nowMs = now()
      const shareMs = intervalMs * this.workers
      // The first one waits a whole interval: we do not know what other workers, or we ourselves, started just before.
      const firstMs = Math.max(nowMs, nextMs.get(host) ?? nowMs + shareMs)
      const roomMs = nowMs + SLOT_HORIZON_MS - firstMs
      const taken = roomMs < 0 ? 0 : Math.min(count, 1 + Math.floor(roomMs / shareMs))
      nextMs.set(host, firstMs + taken * shareMs)
      return {
        startsInMs: Array.from({ length: taken }, (_, i) => firstMs - nowMs + i * shareMs),
        againInMs: Math.max(1, -roomMs),
        pausedMs: 0,
      }
    },
    forget: () => nextMs.clear(),
  }
}
