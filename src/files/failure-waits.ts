/**
 * How long a failed file waits before its next try: for the store or the records database while they are down, and for a host
 * that asks us to slow down. Failures that are not the file's fault get a `retryAfterMs`, which makes them cost no try
 * (`Decide`).
 */
import { ScrapeError } from '../core/errors.ts'
import type { EventBus } from '../core/events.ts'
import type { Task } from '../core/task.ts'
import { hostOf } from '../core/url.ts'
import type { RateLimit } from '../fetch/contract.ts'
import { ServiceBackoff, type ServiceBackoffLimits } from './service-backoff.ts'

interface FailureWaitsParts {
  rateLimit: Pick<RateLimit, 'pause'>
  bus: Pick<EventBus, 'emit'>
  patience: ServiceBackoffLimits
  retryAfterMsMax: number
  now: () => number
}

const SUSPECTS_MAX = 1000

export class FailureWaits {
  readonly #parts: FailureWaitsParts
  readonly #store: ServiceBackoff
  readonly #records: ServiceBackoff
  /** Tasks that were in a process when it died with several: they run alone next time. */
  readonly #suspects = new Set<string>()

  constructor(parts: FailureWaitsParts) {
    this.#parts = parts
    this.#store = new ServiceBackoff(parts.patience)
    this.#records = new ServiceBackoff(parts.patience)
  }

  /** How long to leave the store alone. */
  get storeWaitMs(): number {
    return this.#store.waitMs(this.#parts.now())
  }

  onStored(): void {
    this.#store.succeeded()
  }

  onRecorded(): void {
    this.#records.succeeded()
  }

  /** Whether the task must run alone this time; called once per try. */
  takeSuspect(taskId: string): boolean {
    return this.#suspects.delete(taskId)
  }

  /** The error with a `retryAfterMs`, if it has one. */
  onFailure(error: ScrapeError, task: Task): ScrapeError {
    const { now, rateLimit } = this.#parts
    const { retryAfterMs } = error.details
    if (error.code === 'E_FILE_STORE') return this.#onServiceFailure(this.#store, error)
    if (error.code === 'E_FILE_RECORD') return this.#onServiceFailure(this.#records, error)
    if (error.code === 'E_FILE_WORKER' && retryAfterMs !== undefined && this.#suspects.size < SUSPECTS_MAX)
      this.#suspects.add(task.id)
    if ((error.code === 'E_RATE_LIMITED' || error.code === 'E_SERVER') && retryAfterMs !== undefined)
      rateLimit.pause(hostOf(task.url), now() + retryAfterMs, error.message)
    return error
  }

  #onServiceFailure(service: ServiceBackoff, error: ScrapeError): ScrapeError {
    const { now, retryAfterMsMax } = this.#parts
    const isNews = service.waitMs(now()) === 0
    const waitMs = service.failed(now())
    if (isNews) this.#logAway(error, waitMs)
    if (waitMs === undefined) return error
    const retryAfterMs = Math.min(waitMs, retryAfterMsMax)
    return new ScrapeError(error.code, error.message, { ...error.details, retryAfterMs })
  }

  #logAway(error: ScrapeError, waitMs: number | undefined): void {
    const next =
      waitMs === undefined ? 'it has been away for too long' : `trying again in ${Math.round(waitMs / 1000)} s`
    this.#parts.bus.emit({ type: 'log', level: 'warn', message: `files wait: ${error.message}; ${next}` })
  }
}
