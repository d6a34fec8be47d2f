/** A run: one execution of a scraper. `run.json` in its folder is this object. */
import type { NotFetchedCounts } from './not-fetched.ts'
import type { Limits } from './options.ts'
import type { Json } from './task.ts'

/**
 * finished: nothing left to do, and within its thresholds · stopped: ended early, resumable · failed: over `failAt` or below
 * `expect`, or halted by an error and resumable once that is fixed (`isComplete` tells which).
 */
export type RunState = 'running' | 'finished' | 'stopped' | 'failed'

/** Valid region names. */
export const REGION_NAME = { pattern: /^[a-z0-9-]{1,40}$/, rule: 'must be small letters, digits and -, at most 40' }

/** Everything known about a run: its `run.json`, and `GET /v1/runs/:id`. */
export interface RunRecord {
  id: string
  scraper: string
  state: RunState
  /** Why it makes no progress or how it ended, for the user. */
  reason: string | null
  /** As given, without defaults. */
  args: Json
  /** Limits set outside the scraper, which also apply when the run is resumed. For a fleet run, the store keeps them. */
  limits?: Limits
  /** A server executed it last and resumes it after a restart. */
  isServed?: boolean
  /** Only workers of this region take it. Undefined: all do. */
  region?: string
  /** The scraper as the user named it: a name, or the path of its file. */
  source: string
  /** Process exit code once it ended; see docs/reference/errors.md. */
  exitCode: number | null
  /** It ended with nothing left to do. If it `failed`, it exceeded its thresholds. */
  isComplete?: boolean
  startedAt: string
  finishedAt: string | null
  /** Working time across all resumes. */
  durationMs: number
  /** Where the queue is: `sqlite:` in the run's own folder, or a URL. */
  frontier: string
  pages: {
    ok: number
    failed: number
    retried: number
    postponed: number
    remaining: number
    dead: number
    /** How many of those ok look like a block page or an empty shell. Undefined: none. */
    suspect?: number
  }
  items: { new: number; same: number; changed: number; invalid: number }
  files: FileCounts
  /** Fields of its items, from the scraper's schema; omitted if the schema does not list them. */
  fields?: string[]
  /** Share of the emitted items in which each field has a value. */
  fieldFill: Record<string, number>
  bytes: number
  latencyMs: { p50: number; p95: number }
  rssBytesMax: number
  cpuMs: number
  errors: { code: string; class: string; count: number; example: string }[]
  /** Links and pages the run found but did not fetch, by reason. */
  notFetched: NotFetchedCounts
  outputs: { sink: string; target: string; rows: number; bytes: number }[]
  warnings: string[]
}

/** Whether nothing was left to do when the run ended, successfully or not. */
export function isComplete({ state, isComplete }: Pick<RunRecord, 'state' | 'isComplete'>): boolean {
  return state === 'finished' || (state === 'failed' && isComplete === true)
}

/** File tasks by how they ended. */
export interface FileCounts {
  stored: number
  /** Their bytes were already stored. */
  same: number
  /** Recorded in the database. */
  recorded: number
  failed: number
  retried: number
  /** Bytes of the stored files. */
  bytes: number
}

export const NO_FILES: FileCounts = { stored: 0, same: 0, recorded: 0, failed: 0, retried: 0, bytes: 0 }

/** The work of one or several processes in a run, which `RunRecord` adds up. */
export interface WorkTally {
  /** Tries by outcome. */
  pages: { ok: number; failed: number; retried: number; postponed: number }
  items: RunRecord['items']
  files: FileCounts
  fieldFill: RunRecord['fieldFill']
  bytes: number
  latencyMs: RunRecord['latencyMs']
  rssBytesMax: number
  cpuMs: number
  errors: RunRecord['errors']
}

/** `20261115_113501_x7k2`: sorts by time, and two runs started in the same second differ. */
export function newRunId(nowMs: number, random: () => number = Math.random): string {
  const time = new Date(nowMs)
  const stamp = time.toISOString().replace(/[-:]/g, '').replace('T', '_').slice(0, 15)
  const within = time.getUTCMilliseconds().toString(36).padStart(2, '0') // so that runs of the same second sort by time
  const chance = Math.floor(random() * 36 ** 2)
    .toString(36)
    .padStart(2, '0')
  return `${stamp}_${within}${chance}`
}
