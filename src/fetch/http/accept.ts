/** What a route accepts in addition to text pages with a 2xx status. */
import type { Accept, AcceptRules } from '../../core/scraper.ts'

/** For responses that are not read as pages: robots.txt and sitemaps may have any type, and may be empty. */
export const ANY_CONTENT: AcceptRules = { types: ['*/*'], empty: true }

export function rulesOf(accept: Accept | undefined): AcceptRules {
  if (accept === undefined) return {}
  return Array.isArray(accept) ? { status: accept } : (accept as AcceptRules)
}

export const acceptsStatus = (accept: Accept | undefined, status: number): boolean =>
  rulesOf(accept).status?.includes(status) === true

export function acceptsType({ types = [] }: AcceptRules, essence: string): boolean {
  const [group] = essence.split('/', 1)
  return types.some((type) => type === '*/*' || type === essence || type === `${group}/*`)
}
