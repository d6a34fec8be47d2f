/** One hop of an exchange: sends a request and waits for its response. */
import { ScrapeError } from '../../core/errors.ts'
import { transportError } from '../net/transport-error.ts'
import type { Deadline, Hop } from './deadline.ts'
import { headerOf, type RawHeaders } from './http-page.ts'

/** 103 Early Hints comes once or twice; a flood of 1xx responses is an attack. */
const INFORMATIONAL_MAX = 16

interface SentHop extends Hop {
  /** Resolves when there is a response. Rejects with the original error, unmapped. */
  readonly done: Promise<void>
  /** The server may have closed this connection just as we wrote: the one failure that is no one's fault and worth a retry. */
  readonly isStale: boolean
}

/** `dispatch` is called again for the retry: the pool of the first attempt may have been closed, and accepts no more requests. */
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

/** For a normalised URL; takes a third of the time of parsing it. */
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

/** Throws if it is unclear where the body ends. */
export function checkLength(headers: RawHeaders): void {
  const length = headers['content-length']
  if (length === undefined) return
  if (headers['transfer-encoding'] !== undefined)
    throw new ScrapeError('E_PROTOCOL', 'both Content-Length and Transfer-Encoding: it is unclear where the body ends')
  if (!/^\d{1,15}$/.test(headerOf(headers, 'content-length')!))
    throw new ScrapeError('E_PROTOCOL', `Content-Length ${JSON.stringify(length).slice(0, 50)}`)
}
