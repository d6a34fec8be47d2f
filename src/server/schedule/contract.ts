/** Schedules: runs that begin by the clock. */
import type { Json } from '../../core/task.ts'

/** What to do when the run before is still going on. */
export const OVERLAPS = ['skip', 'queue', 'cancel-old'] as const
export type Overlap = (typeof OVERLAPS)[number]

/** What whoever orders a run may set of its limits. */
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
  /** Of its runs; left out: any worker takes them. */
  region?: string | undefined
  /** Five fields, or `hourly`, `daily`, `weekly`, `monthly`. */
  cron: string
  /** IANA name. */
  tz: string
  overlap: Overlap
  /** Each fire comes up to this much later, so that not all begin at once. */
  jitterMs: number
  /** Fires that nobody was there for are made up for, by one run. */
  isCatchUp: boolean
}

export interface Schedule extends NewSchedule {
  id: string
  isPaused: boolean
  createdAtMs: number
  nextAtMs: number
}

/**
 * starting: claimed, its run is not known yet · queued: waits for the run before · started · skipped: the run before still went
 * on · missed: nobody was there in time · failed: its run could not be started.
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
