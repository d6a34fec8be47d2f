/** The entry on the errors stream for a message that could not be read. */
import { type ErrorMessage, MESSAGE_VERSION } from './messages.ts'
import type { Entry } from './redis-group-reader.ts'
import { shownMessage } from './shown.ts'

type Refused = Pick<Entry, 'stream' | 'id' | 'message'>

export function refusalText({ stream, id, message }: Refused, reason: string, readerId: string): string {
  return errorMessageText({
    error_code: 'E_MESSAGE_FOREIGN',
    error_message: reason,
    worker_id: readerId,
    stream,
    entry_id: id,
    refused: message === undefined ? null : shownMessage(message),
  })
}

export function errorMessageText(
  error: Pick<ErrorMessage, 'error_code' | 'error_message'> & Partial<ErrorMessage>,
): string {
  return JSON.stringify({ version: MESSAGE_VERSION, occurred_at: new Date().toISOString(), ...error })
}
