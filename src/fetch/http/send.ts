/** One hop of an exchange: puts a request on the wire and waits for its answer. */
import { ScrapeError } from '../../core/errors.ts'
import { transportError } from '../net/transport-error.ts'
import type { Deadline, Hop } from './deadline.ts'
import { headerOf, type RawHeaders } from './http-page.ts'

/** 103 Early Hints comes once or twice; a flood of 1xx is an attack. */
const INFORMATIONAL_MAX = 16

interface SentHop extends Hop {
  /** Resolves when there is an answer. Rejects with whatever went wrong, unmapped. */
  readonly done: Promise<void>
  /** The server may have closed this connection just as we wrote: the one failure that is no one's fault and worth another try. */
  readonly isStale: boolean
}

/** `dispatch` is asked anew for the second try: the first one's pool may have been put away meanwhile, and takes nothing more. */
export async function send<H extends SentHop>(dispatch: () => H, url: string, deadline: Deadline): Promise<H> {
  for (let isSecondTry = false; ; isSecondTry = true) {
    const hop = dispatch()
    deadline.watch(hop)
    try {
      await hop.done
      return hop
    } catch (error) {
      if (deadline.failure !== undefined) throw deadline.failure.reason
      if (!hop.isStale || isSecondTry) throw transportError(error, { url, hasResponse: hop.status !== 0 })
    }
  }
}

/** Of a normalised URL; a third of the price of parsing it. */
export function splitUrl(url: string): { origin: string; path: string } {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  return start === -1 ? { origin: url, path: '/' } : { origin: url.slice(0, start), path: url.slice(start) }
}

export function isLostConnection(error: unknown): boolean {
  const { code, message } = (error ?? {}) as NodeJS.ErrnoException
  return code === 'ECONNRESET' || code === 'EPIPE' || (code === 'UND_ERR_SOCKET' && !message?.startsWith('bad '))
}

export function checkInformational(count: number): void {
  if (count > INFORMATIONAL_MAX)
    throw new ScrapeError('E_PROTOCOL', `more than ${INFORMATIONAL_MAX} informational responses`)
}

/** Throws when it is unclear where the body ends. */
export function checkLength(headers: RawHeaders): void {
  const length = headers['content-length']
  if (length === undefined) return
  if (headers['transfer-encoding'] !== undefined)
    throw new ScrapeError('E_PROTOCOL', 'both Content-Length and Transfer-Encoding: it is unclear where the body ends')
  if (!/^\d{1,15}$/.test(headerOf(headers, 'content-length')!))
    throw new ScrapeError('E_PROTOCOL', `Content-Length ${JSON.stringify(length).slice(0, 50)}`)
}
