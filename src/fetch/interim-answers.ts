/**
 * What undici's parser makes of odd status lines, put right. It takes an unasked `100 Continue` for a broken connection; to every
 * other 1xx it listens and waits for the answer itself, so a 100 is shown to it as a 103. And a status below 100 ends in an
 * assertion of its own.
 */
import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { ScrapeError } from '../core/errors.ts'

const { kParser } = createRequire(import.meta.url)('undici/lib/core/symbols.js') as { kParser: symbol }

interface Parser {
  onHeadersComplete(status: number, ...rest: unknown[]): number
}

const EARLY_HINTS = 103

/** Call it before undici has the socket: it gives it its parser then. How many 1xx there may be is counted by the exchange. */
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
