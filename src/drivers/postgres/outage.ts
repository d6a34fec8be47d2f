/** Distinguishes transient errors (the server is down, two transactions conflict) from permanent ones. */
import { UNREACHABLE_CODES } from '../../core/network-errors.ts'

/** connection_exception, admin_shutdown, crash_shutdown, cannot_connect_now, too_many_connections, read_only (a failover). */
const OUTAGE_STATES = /^(?:08...|57P0[123]|53300|25006)$/
/** What `pg` reports in errors without a code. */
const OUTAGE_MESSAGES =
  /Connection terminated|timeout exceeded when trying to connect|Query read timeout|connection error and is not queryable|the database system is/

/** serialization_failure, deadlock_detected: the loser starts again. */
const CONFLICT_STATES = new Set(['40001', '40P01'])

export function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** The server is down, or not up yet. Waiting helps. */
export function isOutage(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isOutage) // one per address of the host
  const code = codeOf(error)
  if (code !== '') return OUTAGE_STATES.test(code) || UNREACHABLE_CODES.has(code)
  return error instanceof Error && OUTAGE_MESSAGES.test(error.message)
}

export function isConflict(error: unknown): boolean {
  return CONFLICT_STATES.has(codeOf(error))
}
