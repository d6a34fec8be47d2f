/** What goes on the stream of errors in place of a message nobody could read. */
import { withoutLogins } from './logins.ts'
import { type ErrorMessage, MESSAGE_VERSION } from './messages.ts'
import type { Entry } from './redis/group-reader.ts'

/** Of a refused message; enough to see what it was. */
const REFUSED_SHOWN_MAX = 2_000

export function refusalText({ stream, id, message }: Entry, reason: string, readerId: string): string {
  return errorMessageText({
    error_code: 'E_MESSAGE_FOREIGN',
    error_message: reason,
    worker_id: readerId,
    stream,
    entry_id: id,
    refused: message === undefined ? null : withoutLogins(message.slice(0, REFUSED_SHOWN_MAX)),
  })
}

export function errorMessageText(
  error: Pick<ErrorMessage, 'error_code' | 'error_message'> & Partial<ErrorMessage>,
): string {
  return JSON.stringify({ version: MESSAGE_VERSION, occurred_at: new Date().toISOString(), ...error })
}
