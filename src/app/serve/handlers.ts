/** What the API can be asked, and who answers it. */
import { Readable } from 'node:stream'
import type { Handlers } from '../../server/api/server.ts'
import { auditHandlers } from './areas/audit.ts'
import { deadLetterHandlers } from './areas/dead-letters.ts'
import { fleetHandlers } from './areas/fleet.ts'
import { historyHandlers } from './areas/history.ts'
import { analyticsHandlers, jobHandlers } from './areas/jobs.ts'
import { onePageHandlers } from './areas/one-page.ts'
import { runHandlers } from './areas/runs.ts'
import { scheduleHandlers } from './areas/schedules.ts'
import { webhookHandlers } from './areas/webhooks.ts'
import type { Server } from './serve.ts'

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
