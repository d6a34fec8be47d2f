/** Turns a task into a request for the fetch chain: the route's headers, its browser, and the session of its user. */
import { ScrapeError } from '../core/errors.ts'
import type { Json } from '../core/task.ts'
import type { FetchRequest } from '../fetch/contract.ts'
import type { Lease } from '../frontier/contract.ts'
import type { CompiledScraper } from './compile-scraper.ts'
import type { Sessions } from './contract.ts'

interface RequestParts {
  compiled: CompiledScraper
  isInBrowser: boolean
  /** Its first tasks come from a list of pages, not from the scraper's `start`. Default false. */
  startsFromList?: boolean | undefined
}

/** Returns a promise only if there is a session to look up: most pages have none. */
export function requestOf(
  { compiled: { routes }, isInBrowser, startsFromList = false }: RequestParts,
  { task: { id, url, route, session, data, depth }, attempt }: Pick<Lease, 'task' | 'attempt'>,
  sessions: Sessions,
): FetchRequest | Promise<FetchRequest> {
  const { headers, accept, browser, post, fallback } = routes.get(route)?.definition ?? {}
  const request = {
    url,
    task: { id, attempt },
    ...(headers === undefined ? {} : { headers }),
    ...(accept === undefined ? {} : { accept }),
    ...(depth === 0 && !startsFromList ? { isStart: true as const } : {}),
    ...(isInBrowser ? { browser: { ...browser } } : fallback === 'browser' ? { hasFallback: true as const } : {}),
    ...(post === undefined ? {} : { post: postOf(data, post, url) }),
  }
  return session === undefined ? request : ofSession({ ...request, session }, session, sessions)
}

/** Whether the route skips URLs that turn out to be files. */
export function skipsFiles({ routes }: CompiledScraper, route: string): boolean {
  const accept = routes.get(route)?.definition.accept
  return accept !== undefined && 'files' in accept && accept.files === 'skip'
}

/** The body that a route with `post` sends. Throws `E_ROUTE_DATA` if its data has no such field. */
export function postOf(data: Json | undefined, field: string, url: string): Json {
  const fields = typeof data === 'object' && data !== null && !Array.isArray(data) ? data : {}
  const body = Object.hasOwn(fields, field) ? fields[field] : undefined
  if (body !== undefined) return body
  throw new ScrapeError('E_ROUTE_DATA', `nothing to POST: the task's data has no field "${field}"`, { url })
}

async function ofSession(request: FetchRequest, session: string, sessions: Sessions): Promise<FetchRequest> {
  const state = await sessions.get(session)
  if (state === undefined) return request
  if (request.browser !== undefined) return { ...request, browser: { ...request.browser, state } }
  const { cookie, ...own } = request.headers ?? {}
  const kept = sessions.headers(state, request.url)
  const cookies = [cookie, kept['cookie']].filter((text) => text !== undefined).join('; ')
  return { ...request, headers: { ...own, ...kept, ...(cookies === '' ? {} : { cookie: cookies }) } }
}
