/** A task: one URL to visit in a run. It travels from a source or handler through the frontier to a worker. */

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** The lane of a task unless its route or source sets another. */
export const DEFAULT_LANE = 'bulk'

/** The lane of files. Its tasks are not pages: a claim returns them only if it asks for the lane by name. */
export const FILES_LANE = 'files'

/** `files`, and `files@SPOOL` for tasks that only the machine with that spool can process. */
export function isFileLane(lane: string): boolean {
  return lane === FILES_LANE || lane.startsWith(`${FILES_LANE}@`)
}

/** What a source or handler adds to the frontier. */
export interface NewTask {
  /** Absolute and already normalised (`core/url.ts`): the frontier hashes it as it is. */
  url: string
  /** Identity to use instead of the URL, for pages that share one URL (a POST search, a cursor). */
  key?: string
  /** The scraper's route that will read the page. */
  route: string
  /** The `data` of the route's handler; already checked against the route's schema. */
  data?: Json
  /** Number of links followed from a start task, which has 0. */
  depth: number
  /** Higher is claimed first. Default 0. */
  priority?: number
  /** Named queue. Default `bulk`. */
  lane?: string
  /** Not claimable before this time (epoch ms). Default: at once. */
  notBeforeMs?: number
  /** Pins all tasks with this name to one session (cookies, proxy, fingerprint). */
  session?: string
  /** W3C `traceparent` of the page that found it, prefixed with `~` if a new trace begins here; only in traced runs. */
  trace?: string
}

/** A task as returned by the frontier, with all defaults filled in. */
export interface Task {
  /** Hex SHA-256 of `key ?? url`: its identity in the run. */
  readonly id: string
  readonly url: string
  readonly route: string
  readonly data: Json
  readonly depth: number
  readonly priority: number
  readonly lane: string
  readonly session: string | undefined
  readonly trace?: string | undefined
}
