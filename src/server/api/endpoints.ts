/** Every route of the API, area by area. What is not here does not exist. */
import { analyticsEndpoints } from './areas/analytics.ts'
import { auditEndpoints } from './areas/audit.ts'
import { deadLetterEndpoints } from './areas/dead-letters.ts'
import { fleetEndpoints } from './areas/fleet.ts'
import { healthEndpoints } from './areas/health.ts'
import { historyEndpoints } from './areas/history.ts'
import { jobEndpoints } from './areas/jobs.ts'
import { onePageEndpoints } from './areas/one-page.ts'
import { runEndpoints } from './areas/runs.ts'
import { scheduleEndpoints } from './areas/schedules.ts'
import { webhookEndpoints } from './areas/webhooks.ts'

export const ENDPOINTS = {
  ...runEndpoints,
  ...onePageEndpoints,
  ...deadLetterEndpoints,
  ...fleetEndpoints,
  ...scheduleEndpoints,
  ...webhookEndpoints,
  ...historyEndpoints,
  ...jobEndpoints,
  ...analyticsEndpoints,
  ...auditEndpoints,
  ...healthEndpoints,
} as const

export type Endpoints = typeof ENDPOINTS
export type EndpointName = keyof Endpoints
