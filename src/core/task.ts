/** A task: one URL to visit in a run. It travels from a source or handler through the frontier to a worker. */

/** What JSON can say. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** The lane a task waits in unless its route or source says otherwise. */
export const DEFAULT_LANE = 'bulk'

/** The lane of files. Its tasks are no pages: a claim gives them only to who asks for it by name. */
export const FILES_LANE = 'files'

/** `files`, and `files@SPOOL` for what only the machine with that spool can do. */
export function isFileLane(lane: string): boolean {
  return lane === FILES_LANE || lane.startsWith(`${FILES_LANE}@`)
}

/** What a source or handler hands to the frontier. */
export interface NewTask {
  /** Absolute and already normalised (`core/url.ts`): the frontier hashes it as it is. */
  url: string
  /** Identity in place of the URL, for pages that one URL serves many times (a POST search, a cursor). */
  key?: string
  /** The route of the scraper that will read the page. */
  route: string
  /** What the route's handler gets as `data`; already checked against the route's schema. */
  data?: Json
  /** Links followed from a start task; start tasks have 0. */
  depth: number
  /** Higher is claimed first. Default 0. */
  priority?: number
  /** Named queue. Default `bulk`. */
  lane?: string
  /** Not claimable before this time (epoch ms). Default: at once. */
  notBeforeMs?: number
  /** Pins all tasks of one name to one session (cookies, proxy, fingerprint). */
  session?: string
  /** W3C `traceparent` of the page that found it, after `~` when a new trace begins here; only in runs that are traced. */
  trace?: string
}

/** A task as the frontier gives it out: every default filled in. */
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
