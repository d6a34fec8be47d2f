/** All API handlers. */
import { Readable } from 'node:stream'
import type { Handlers } from '../../../server/api/server.ts'
import type { Server } from '../server/server.ts'
import { auditHandlers } from './audit.ts'
import { deadLetterHandlers } from './dead-letters.ts'
import { fleetHandlers } from './fleet.ts'
import { historyHandlers } from './history.ts'
import { analyticsHandlers, jobHandlers } from './jobs.ts'
import { onePageHandlers } from './one-page.ts'
import { runHandlers } from './runs.ts'
import { scheduleHandlers } from './schedules.ts'
import { webhookHandlers } from './webhooks.ts'

export function handlersOf(server: Server): Handlers {
  return {
    ...runHandlers(server),
    ...onePageHandlers(server),
    ...deadLetterHandlers(server),
    ...fleetHandlers(server),
    ...scheduleHandlers(server),
    ...historyHandlers(server),
    ...jobHandlers(server),
    ...analyticsHandlers(server),
    ...webhookHandlers(server),
    ...auditHandlers(server),
    livez: async () => ({ status: 'ok' }),
    healthz: async () => ({ status: 'ok' }),
    health: () => server.health.report(),
    async metrics() {
      const { contentType, text } = await server.health.metricsText()
      return { contentType, body: Readable.from([text]) }
    },
    readyz: async () => ({ status: 'ready', checks: await server.checks() }),
  }
}
