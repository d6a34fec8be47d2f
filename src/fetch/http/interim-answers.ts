/**
 * Works around how undici's parser handles odd status lines. It treats an unsolicited `100 Continue` as a broken connection, but
 * skips every other 1xx and waits for the response, so it is shown a 103 instead of a 100. A status below 100 makes one of its
 * assertions fail.
 */
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { ScrapeError } from '../../core/errors.ts'

const { kParser } = createRequire(import.meta.url)('undici/lib/core/symbols.js') as { kParser: symbol }

interface Parser {
  onHeadersComplete(status: number, ...rest: unknown[]): number
}

const EARLY_HINTS = 103

/** Call it before undici gets the socket and attaches its parser. The exchange limits the number of 1xx responses. */
export function takeInterimAnswers(socket: Socket): void {
  let parser: Parser | null = null
  Object.defineProperty(socket, kParser, {
    configurable: true,
    get: () => parser,
    set(given: Parser | null) {
      parser = given
      if (given !== null) correct(given)
    },
  })
}

function correct(parser: Parser): void {
  const { onHeadersComplete } = parser
  parser.onHeadersComplete = (status, ...rest) => {
    if (status < 100)
      throw new ScrapeError('E_PROTOCOL', `status ${String(status).padStart(3, '0')} is not a valid HTTP status`)
    return onHeadersComplete.call(parser, status === 100 ? EARLY_HINTS : status, ...rest)
  }
}
