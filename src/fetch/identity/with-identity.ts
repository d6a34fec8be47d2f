/** Makes a request with an identity, and with another one if a proxy fails: a proxy that is down costs the page no attempt. */
import { ScrapeError } from '../../core/errors.ts'
import type { Page } from '../../core/page.ts'
import type { FetchRequest } from '../contract.ts'
import type { Identities } from './identities.ts'
import type { Identity } from './identity.ts'

/** A page that fails through this many proxies may itself be to blame. */
const PROXIES_PER_TRY_MAX = 5
const PUT_OFF_MS = 5000

const identities = new WeakMap<Page | ScrapeError, Identity>()

/** The identity that fetched a page, or met its failure; undefined if there are no identities. */
export function identityOf(result: Page | ScrapeError): Identity | undefined {
  return identities.get(result)
}

/** While no proxy works, the page is not requested, so this costs it no attempt. */
function putOff({ message }: ScrapeError): ScrapeError {
  return new ScrapeError('E_PROXIES_DOWN', message, { retryAfterMs: PUT_OFF_MS })
}

/** Throws whatever `fetchAs` does, and `E_PROXIES_DOWN`. */
export async function withIdentity(
  pool: Identities,
  request: FetchRequest,
  signal: AbortSignal,
  fetchAs: (identity: Identity) => Promise<Page>,
): Promise<Page> {
  for (let tries = 1; ; tries++) {
    const identity = await pool.take(request, signal)
    try {
      const page = await fetchAs(identity)
      pool.onGood(identity, request.url)
      identities.set(page, identity)
      return page
    } catch (error) {
      if (!(error instanceof ScrapeError)) throw error
      pool.onError(identity, request.url, error)
      identities.set(error, identity)
      if (error.code !== 'E_PROXY' || identity.proxy === undefined) throw error
      if (tries === PROXIES_PER_TRY_MAX) throw pool.proxies?.areAllDown === true ? putOff(error) : error
    }
  }
}
