/** The error for an unknown route: the path exists with another method (405), or not at all (404). */

import { Problem } from './problem.ts'
import { ENDPOINTS } from './routes/endpoints.ts'

const PATHS = Object.values(ENDPOINTS).map(({ method, path }) => ({
  method,
  pattern: new RegExp(`^${path.split('/').map(segmentPattern).join('/')}/?$`),
}))

function segmentPattern(segment: string): string {
  return segment.startsWith(':') ? '[^/]+' : RegExp.escape(segment)
}

export function noRoute(method: string, path: string): Problem {
  const methods = PATHS.flatMap((one) => (one.pattern.test(path) ? [one.method] : []))
  if (methods.length === 0) return new Problem(404, 'E_NO_ROUTE', `no route ${method} ${path}`, { hint: 'See /docs.' })
  return new Problem(405, 'E_METHOD', `${path} takes ${methods.join(', ')}`, { headers: { allow: methods.join(', ') } })
}
