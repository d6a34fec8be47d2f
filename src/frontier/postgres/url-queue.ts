/** A URL work queue with five operations, for programs that have their own workers. A thin wrapper around the frontier. */
import { type BackoffLimits, steadyBackoffMs } from '../../core/backoff.ts'
import { toErrorRecord, toScrapeError } from '../../core/errors.ts'
import { normaliseUrl } from '../../core/url.ts'
import type { Added, Frontier, Lease } from '../contract.ts'
import { openPostgresFrontier, type PostgresFrontierOptions } from './engine.ts'

const LEASE_MS = 300_000
const RETRIES = 3
const ROUTE = 'page'
const RETRY: BackoffLimits = { delayMsMin: 1000, delayMsMax: 60_000 }

/** Which queue, and how often its URLs are tried. */
export interface UrlQueueOptions extends Pick<PostgresFrontierOptions, 'now' | 'fresh' | 'outageMs' | 'onOutage'> {
  /** The run that owns the URLs. */
  runId: string
  /** Retries and lost leases allowed before a URL is given up. Default 3. */
  retries?: number
}

/** A queue of URLs for programs that do their own fetching. */
export interface UrlQueue extends AsyncDisposable {
  /** Any number; each normalised URL once per run. */
  enqueueUrls(urls: Iterable<string>): Promise<Added>
  /** At most `batchSize`, none with another live lease. Default lease: 300 s. */
  claimBatch(workerId: string, batchSize: number, leaseMs?: number): Promise<Lease[]>
  /** With an `error` it is retried, later each time, or becomes a dead letter. False: the lease was lost, nothing changed. */
  completeUrl(lease: Lease, outcome?: { error?: unknown }): Promise<boolean>
  /** Returns URLs of lost workers to the queue, or at the limit to the dead letters. They are then claimed alone (ADR 0005). */
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
