/** The work queue of URLs in five operations, for programs that bring their own workers. A thin face of the frontier. */
import { type BackoffLimits, steadyBackoffMs } from '../../core/backoff.ts'
import { toErrorRecord, toScrapeError } from '../../core/errors.ts'
import { normaliseUrl } from '../../core/url.ts'
import type { Added, Frontier, Lease } from '../contract.ts'
import { openPostgresFrontier, type PostgresFrontierOptions } from './engine.ts'

const LEASE_MS = 300_000
const RETRIES = 3
const ROUTE = 'page'
const RETRY: BackoffLimits = { delayMsMin: 1000, delayMsMax: 60_000 }

/** Whose queue, and how long its claims last. */
export interface UrlQueueOptions extends Pick<PostgresFrontierOptions, 'now' | 'fresh' | 'outageMs' | 'onOutage'> {
  /** The run whose URLs these are. */
  runId: string
  /** Tries after the first one, and lost leases, before a URL is given up. Default 3. */
  retries?: number
}

/** A queue of URLs for programs that fetch by their own means. */
export interface UrlQueue extends AsyncDisposable {
  /** Any number; each URL once per run, in its normal spelling. */
  enqueueUrls(urls: Iterable<string>): Promise<Added>
  /** At most `batchSize`, each with no other live lease. Default lease: 300 s. */
  claimBatch(workerId: string, batchSize: number, leaseMs?: number): Promise<Lease[]>
  /** With an `error` it is tried again, later each time, or becomes a dead letter. False: the lease was lost, nothing has changed. */
  completeUrl(lease: Lease, outcome?: { error?: unknown }): Promise<boolean>
  /** URLs whose worker is gone go back, or to the dead letters at the limit. They are then claimed one at a time (ADR 0005). */
  releaseExpiredLeases(): Promise<{ returned: number; dead: number }>
  getQueueStats(): Promise<{ pending: number; claimed: number; completed: number; failed: number; remaining: number }>
}

export async function openUrlQueue(url: string, { retries = RETRIES, ...options }: UrlQueueOptions): Promise<UrlQueue> {
  const frontier = await openPostgresFrontier(url, options)
  await frontier.setMeta('retries', String(retries))
  return queueOn(frontier, { retries, now: options.now ?? Date.now })
}

function queueOn(frontier: Frontier, { retries, now }: { retries: number; now: () => number }): UrlQueue {
  return {
    enqueueUrls: (urls) =>
      frontier.add(Iterator.from(urls).map((url) => ({ url: normaliseUrl(url), route: ROUTE, depth: 0 }))),

    claimBatch: (workerId, batchSize, leaseMs = LEASE_MS) => frontier.claim({ max: batchSize, workerId, leaseMs }),

    async completeUrl(lease, { error } = {}) {
      const { settled } = await frontier.commit([error === undefined ? { kind: 'done', lease } : failed(lease, error)])
      return settled === 1
    },

    releaseExpiredLeases: () => frontier.sweep({ lossesMax: retries }),

    async getQueueStats() {
      const { pending, claimed, completed, failed: given, remaining } = await frontier.stats()
      return { pending, claimed, completed, failed: given, remaining }
    },

    [Symbol.asyncDispose]: () => frontier[Symbol.asyncDispose](),
  }

  function failed(lease: Lease, cause: unknown) {
    const error = toErrorRecord(toScrapeError(cause, 'E_HANDLER', { url: lease.task.url }))
    if (lease.attempt > retries) return { kind: 'dead' as const, lease, error }
    return { kind: 'retry' as const, lease, error, atMs: now() + steadyBackoffMs(lease.attempt, RETRY) }
  }
}
