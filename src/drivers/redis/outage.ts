/** Distinguishes transient errors of Redis (it is down, it is starting) from permanent ones. */
import { UNREACHABLE_CODES } from '../../core/network-errors.ts'

/** Messages of ioredis errors without a code; the last one is for bytes that are not valid protocol. */
const OUTAGE_MESSAGES =
  /Connection is closed|Stream isn't writeable|Command timed out|Socket timeout|max retries per request|Socket closed|Please report this/
/** Replies of a server that is loading its file, failing over, or busy. */
const BUSY_MESSAGES = /^(?:LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY) /
/** Wrong password, no permission, full memory: a person has to fix it. */
const REFUSALS = /^(?:NOAUTH|WRONGPASS|NOPERM|OOM|MISCONF) |invalid password|DB index is out of range/

/** A reply that does not belong to its call: bytes were lost or repeated on the way, and later replies cannot be trusted. */
export class GarbledReply extends Error {
  constructor(call: string) {
    super(`the reply to "${call}" is corrupt: bytes were lost or repeated on the way`)
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** The server is down, or not up yet. Waiting helps. */
export function isOutage(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && UNREACHABLE_CODES.has(code)) return true
  if (error instanceof GarbledReply) return true
  return (error instanceof Error && OUTAGE_MESSAGES.test(error.message)) || isBusy(error)
}

/** The server is up, but reports that it cannot answer for now. */
export function isBusy(error: unknown): boolean {
  return error instanceof Error && BUSY_MESSAGES.test(error.message)
}

/** Its reply may still arrive, and would be mistaken for that of the next call. */
export function isLate(error: unknown): boolean {
  return /^Command timed out/.test(messageOf(error))
}

export function isRefusal(error: unknown): boolean {
  return REFUSALS.test(messageOf(error))
}

/** Another program stores something else under this name. The server itself is fine. */
export function isForeign(error: unknown): boolean {
  return /^WRONGTYPE |is not an integer/.test(messageOf(error))
}

export function reasonOf(error: unknown): string {
  const { previousErrors } = error as { previousErrors?: readonly unknown[] }
  return messageOf(previousErrors?.at(-1) ?? error)
}
