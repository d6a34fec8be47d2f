/** Which part of a server this process is. */
import type { FastifyInstance } from 'fastify'
import { Problem } from '../../../server/api/problem.ts'

/** all · api: only answers requests · scheduler: runs schedules and webhooks, and answers only health checks. */
export const SERVER_ROLES = ['all', 'api', 'scheduler'] as const
export type ServerRole = (typeof SERVER_ROLES)[number]

const HEALTH_PATHS = ['/livez', '/healthz', '/readyz', '/metrics']

/** All other requests are left to API servers. */
export function answerForHealthOnly(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ url }) => {
    if (HEALTH_PATHS.includes(url.split('?', 1)[0]!)) return
    throw new Problem(
      404,
      'E_NO_ROUTE',
      `this server has the role scheduler: it answers ${HEALTH_PATHS.join(', ')} only`,
      {
        hint: 'Ask a server with --role api, or one without --role.',
      },
    )
  })
}
