/**
 * Retry manager: what happens to a task that failed.
 *
 *   verdict        attempts left           no attempts left
 *   retry          retry                   dead
 *   later, rotate  postpone (no attempt)   postpone (no attempt)    while a time is named
 *   later, rotate  retry                   dead                     if none is
 *   drop           dead                    dead
 *   halt           halt                    halt
 *
 * A postponement costs no attempt, and a lease does not count them, so they are limited elsewhere: `later` and `rotate` are free
 * only while the error names a time (`retryAfterMs`) within `retryAfterMax`. The fetch chain names one as long as the host may
 * be expected to recover; once the host has answered nothing but 429 or blocks several pauses in a row it stops naming one, and
 * from then on every response costs an attempt. A Retry-After beyond the limit does too: we come back before the server wants
 * us to. A page that was not sent (no status: its host is paused, its circuit open, or robots.txt fails) pays for neither.
 */

import { backoffMs } from '../core/backoff.ts'
import type { ErrorKind } from '../core/error-table.ts'
import type { ScrapeError } from '../core/errors.ts'
import type { ResolvedLimits } from '../core/options.ts'

type Decision =
  | { kind: 'retry'; atMs: number }
  | { kind: 'postpone'; atMs: number }
  | { kind: 'dead' }
  | { kind: 'halt' }

export type RetryLimits = Pick<ResolvedLimits, 'retries' | 'backoff' | 'backoffMax' | 'retryAfterMax'>

export function decide(
  error: ScrapeError,
  lease: { readonly attempt: number },
  limits: RetryLimits,
  nowMs: number,
  random: () => number = Math.random,
): Decision {
  switch (error.verdict) {
    case 'retry':
      return retryOrDead(error, lease, limits, nowMs, random)
    case 'rotate':
    case 'later': {
      const { retryAfterMs, status } = error.details
      if (retryAfterMs === undefined || (status !== undefined && retryAfterMs > limits.retryAfterMax)) {
        return retryOrDead(error, lease, limits, nowMs, random)
      }
      return { kind: 'postpone', atMs: nowMs + Math.max(0, retryAfterMs) }
    }
    case 'drop':
      return { kind: 'dead' }
    case 'halt':
      return { kind: 'halt' }
    default:
      return error.verdict satisfies never
  }
}

function retryOrDead(
  error: ScrapeError,
  lease: { readonly attempt: number },
  limits: RetryLimits,
  nowMs: number,
  random: () => number,
): Decision {
  const kind: ErrorKind = error.kind
  const triesMax = Math.min(limits.retries + 1, kind.triesMax ?? Number.POSITIVE_INFINITY)
  if (lease.attempt >= triesMax) return { kind: 'dead' }
  const waitMs = backoffMs(lease.attempt, { delayMsMin: limits.backoff, delayMsMax: limits.backoffMax }, random)
  const floorMs = Math.min(error.details.retryAfterMs ?? 0, limits.retryAfterMax) // what the server asked for, within reason
  return { kind: 'retry', atMs: nowMs + Math.max(waitMs, floorMs) }
}
