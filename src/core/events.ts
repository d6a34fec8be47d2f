/** What happens in a run, for logs, metrics, progress and the live feed. Stages emit; `observe/` listens. */
import type { ErrorRecord } from './errors.ts'
import type { NotFetchedCounts } from './not-fetched.ts'

/** What happens in a run. */
export type RunEvent =
  | { type: 'run.started'; runId: string; scraper: string; resumed: boolean }
  | { type: 'run.finished'; runId: string; scraper: string; state: string; reason?: string }
  /** One try at a task ended. `outcome` says how (skipped: we are not allowed to fetch it); times are in milliseconds. */
  | {
      type: 'page'
      outcome: 'ok' | 'retried' | 'postponed' | 'failed' | 'skipped' | 'stale'
      url: string
      host: string
      route: string
      attempt: number
      status?: number
      bytes?: number
      fromCache?: boolean
      queueMs?: number
      fetchMs?: number
      parseMs?: number
      items?: number
      tasks?: number
      error?: ErrorRecord
      /** Why it looks like a block page although none was recognised. */
      suspicion?: string
      retryAtMs?: number
      snapshot?: string
      /** Only in traced runs, and only for pages whose trace is kept. */
      trace?: PageTrace
    }
  /** A batch was committed. */
  | {
      type: 'committed'
      outcomes: number
      added: number
      itemsNew: number
      itemsSame: number
      itemsChanged: number
      backlog: number
      ms: number
    }
  /** Links of this page that were skipped, or the page itself, by reason; emitted once the commit has counted them. */
  | { type: 'not-fetched'; url: string; counts: NotFetchedCounts }
  | { type: 'item.invalid'; url: string; route: string; problems: string[]; item: string }
  /** How many of the items accepted for commit have each field: field → count. */
  | { type: 'fields'; items: number; filled: Record<string, number> }
  | { type: 'throttled'; host: string; untilMs: number; reason: string }
  /** A block page, challenge or wall was recognised; `signal` says by what. */
  | { type: 'blocked'; url: string; host: string; class: string; vendor: string; signal: string }
  | { type: 'circuit'; host: string; state: 'open' | 'half-open' | 'closed'; reason: string; untilMs?: number }
  /** `proxy` is `host:port`, never with a login. `host`: only for that site. */
  | { type: 'proxy'; proxy: string; state: 'up' | 'down'; reason: string; host?: string; untilMs?: number }
  /** An identity (cookies, proxy, browser profile) is no longer used. */
  | { type: 'identity.retired'; id: string; reason: string }
  | { type: 'lease.lost'; url: string; count: number }
  | { type: 'leases.expired'; returned: number; dead: number }
  | { type: 'sinks.flushed'; items: number; ms: number; backlog: number }
  /** One try at a file task ended. same: its bytes were already stored. */
  | {
      type: 'file'
      outcome: 'stored' | 'same' | 'recorded' | 'retried' | 'postponed' | 'failed' | 'skipped' | 'stale'
      order: 'download' | 'upload' | 'db_update'
      url: string
      host: string
      attempt: number
      ms: number
      bytes?: number
      where?: string
      error?: ErrorRecord
      retryAtMs?: number
    }
  | { type: 'browser'; what: 'launched' | 'recycled' | 'crashed' | 'hung' | 'closed'; reason: string; pid?: number }
  /** A pool or batch was resized; `reason` is for the user. */
  | { type: 'scaled'; what: 'file-workers' | 'browser-pages' | 'batch'; from: number; to: number; reason: string }
  /** The pools of a worker; pages are omitted if it has no browsers. */
  | { type: 'pools'; workerId: string; pagesOpen?: number; pagesFree?: number; fileWorkers: number }
  | { type: 'worker.in-flight'; workerId: string; inFlight: number; rssBytes: number; cpuMs: number }
  | { type: 'log'; level: 'debug' | 'info' | 'warn' | 'error'; message: string; url?: string; extra?: object }

/** The position of a try at a page in its trace, and when its steps took place (epoch milliseconds). */
export interface PageTrace {
  /** W3C `traceparent` of this try; the tasks it finds carry it. */
  readonly own: string
  /** `traceparent` of the page that found it; undefined at the start of a trace. */
  readonly parent?: string
  /** `traceparent` of the previous page in another trace: a list page that was found on a list page. */
  readonly link?: string
  readonly startedAtMs: number
  readonly itemKeys: readonly string[]
  commitStartedAtMs?: number
  commitEndedAtMs?: number
}

export type EventOf<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

export interface EventBus {
  emit(event: RunEvent): void
  /** Returns a function that stops listening. A listener must not throw or block. */
  on(listener: (event: RunEvent) => void): () => void
}

export function createEventBus(): EventBus {
  const listeners = new Set<(event: RunEvent) => void>()
  return {
    emit(event) {
      for (const listener of listeners) listener(event)
    },
    on(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
