/** Distinguishes transient from permanent errors of the broker, and describes them in our words. */
import { ScrapeError } from '../../core/errors.ts'
import { rabbit } from './client.ts'

/** Wrong password, no such virtual host, no permission, a queue of that name with other arguments: a person has to fix it. */
const REFUSALS = new Set(['ACCESS_REFUSED', 'NOT_ALLOWED', 'PRECONDITION_FAILED', 'RESOURCE_LOCKED'])

export function isRefusal(error: unknown): boolean {
  return REFUSALS.has(String((error as { code?: unknown }).code))
}

/** The connection or channel of an operation is lost; it may succeed on a new one. */
export function isConnectionLoss(error: unknown): boolean {
  return (
    error instanceof rabbit.AMQPError ||
    ['ECONNRESET', 'EPIPE', 'ERR_STREAM_DESTROYED'].includes(String((error as { code?: unknown }).code))
  )
}

export function unreachable(place: string, cause: Error): ScrapeError {
  const isCut = /ECONNRESET|closed unexpectedly|hang up|timed out/i.test(cause.message)
  return new ScrapeError('E_SERVICE', `${place} is unreachable: ${cause.message}`, {
    cause,
    ...(isCut
      ? { fix: 'Start it, or correct its URL; if this port speaks TLS, write amqps:// instead of amqp://.' }
      : {}),
  })
}

export function refused(place: string, cause: Error): ScrapeError {
  const isOther = (cause as { code?: string }).code === 'PRECONDITION_FAILED'
  return new ScrapeError('E_SERVICE', `${place} refuses: ${cause.message}`, {
    cause,
    fix: isOther
      ? 'A queue or exchange of that name was declared otherwise. Work it off and delete it, or give the run another virtual host.'
      : 'Check the URL of the broker and the rights of its user.',
  })
}
