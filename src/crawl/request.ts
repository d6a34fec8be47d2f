/** From a task to what the fetch chain is asked: the route's headers, its browser, and whoever the page belongs to. */
import type { Task } from '../core/task.ts'
import type { FetchRequest } from '../fetch/contract.ts'
import type { CompiledScraper } from './compiled.ts'
import type { Sessions } from './contract.ts'

/** A promise only where there is a session to look up: most pages are nobody's. */
export function requestOf(
  { routes }: CompiledScraper,
  { url, route, session }: Task,
  sessions: Sessions,
): FetchRequest | Promise<FetchRequest> {
  const { headers, accept, fetch, browser } = routes.get(route)?.definition ?? {}
  const request = {
    url,
    ...(headers === undefined ? {} : { headers }),
    ...(accept === undefined ? {} : { accept }),
    ...(fetch === 'browser' ? { browser: { ...browser } } : {}),
  }
  return session === undefined ? request : ofSession({ ...request, session }, session, sessions)
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

export function needsBrowser({ routes }: CompiledScraper, { route }: Task): boolean {
  return routes.get(route)?.definition.fetch === 'browser'
}
