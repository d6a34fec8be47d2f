/** Schedules: runs that start at given times (cron). */
import type { Json } from '../../core/task.ts'

/** What to do if the previous run is still running. */
export const OVERLAPS = ['skip', 'queue', 'cancel-old'] as const
export type Overlap = (typeof OVERLAPS)[number]

/** The limits that can be set when a run is started. */
export interface RunLimits {
  pages?: number | undefined
  concurrency?: number | undefined
  retries?: number | undefined
  perHost?: { concurrency?: number | undefined; rps?: number | undefined } | undefined
}

export interface NewSchedule {
  name: string
  scraper: string
  args: Record<string, Json>
  limits: RunLimits
  /** Region of its runs; omitted: any worker takes them. */
  region?: string | undefined
  /** Five fields, or `hourly`, `daily`, `weekly`, `monthly`. */
  cron: string
  /** IANA name. */
  tz: string
  overlap: Overlap
  /** Each fire is delayed by up to this much, so that not all start at once. */
  jitterMs: number
  /** Fires missed while no server was running are made up for, by one run. */
  isCatchUp: boolean
}

export interface Schedule extends NewSchedule {
  id: string
  isPaused: boolean
  createdAtMs: number
  nextAtMs: number
}

/**
 * starting: claimed, its run is not known yet · queued: waits for the previous run · started · skipped: the previous run was
 * still running · missed: no server was running at the time · failed: its run could not be started.
 */
export type FireOutcome = 'starting' | 'queued' | 'started' | 'skipped' | 'missed' | 'failed'

export interface Fire {
  id: number
  scheduleId: string
  dueAtMs: number
  atMs: number
  outcome: FireOutcome
  runId: string | undefined
  reason: string | undefined
}
