/** Sends one POST to a receiver that asked for it: checked addresses, no redirects, no cookies, and a bounded answer. */
import type { AddressOptions } from '../net/address.ts'
import { transportError } from '../net/transport-error.ts'
import { Exchange } from './exchange.ts'
import { openPools } from './pools.ts'

interface PosterOptions extends AddressOptions {
  userAgent: string
}

export interface Poster extends AsyncDisposable {
  /** Any status is an answer, whatever happens to its body. Throws `ScrapeError`, or the signal's reason. */
  post(request: PostedRequest, signal: AbortSignal): Promise<{ status: number; body: string }>
}

interface PostedRequest {
  url: string
  headers: Readonly<Record<string, string>>
  body: string
}

const CONNECTIONS_PER_HOST = 64
const ANSWER_BYTES_MAX = 65_536

export function openPoster(options: PosterOptions): Poster {
  const pools = openPools({ ...options, connectionsPerHost: CONNECTIONS_PER_HOST })

  async function send({ url, headers, body }: PostedRequest, signal: AbortSignal): Promise<Exchange> {
    const { origin, pathname, search } = new URL(url)
    const message = {
      path: pathname + search,
      method: 'POST' as const,
      headers: Object.entries({ 'user-agent': options.userAgent, ...headers }).flat(),
      body,
    }
    for (let isSecondTry = false; ; isSecondTry = true) {
      const hop = new Exchange({ url }, ANSWER_BYTES_MAX)
      const onAbort = () => hop.cancel(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        pools.get(origin).dispatch(message, hop)
        await hop.done
        return hop
      } catch (error) {
        if (hop.status !== 0) return hop
        signal.throwIfAborted()
        if (!hop.isStale || isSecondTry) throw transportError(error, { url, hasResponse: false })
      } finally {
        signal.removeEventListener('abort', onAbort)
      }
    }
  }

  return {
    async post(request, signal) {
      signal.throwIfAborted()
      const hop = await send(request, signal)
      if (hop.outcome === 'redirect') hop.dropBody()
      return { status: hop.status, body: hop.takeBody().toString('utf8') }
    },
    [Symbol.asyncDispose]: () => pools[Symbol.asyncDispose](),
  }
}
