/** Every route of the API, area by area. A route that is not listed here does not exist. */
import { analyticsEndpoints } from './analytics.ts'
import { auditEndpoints } from './audit.ts'
import { deadLetterEndpoints } from './dead-letters.ts'
import { fleetEndpoints } from './fleet.ts'
import { healthEndpoints } from './health.ts'
import { historyEndpoints } from './history.ts'
import { jobEndpoints } from './jobs.ts'
import { onePageEndpoints } from './one-page.ts'
import { runEndpoints } from './runs.ts'
import { scheduleEndpoints } from './schedules.ts'
import { webhookEndpoints } from './webhooks.ts'

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
