/** What a source gives: URLs for the queue of a run, as they were found. */
import type { ErrorRecord } from '../core/errors.ts'

export interface FoundUrl {
  /** As it was written; whether it is a URL is found out when it is queued. */
  text: string
  /** Where, for a person: `line 12`, the address of a sitemap. */
  from: string
  /**
   * The user named its host: the URL itself, or the file on that host and port that lists it. Only such a host may be reached
   * although it is private; what a remote file lists on its own account opens no door.
   */
  isNamed: boolean
  priority?: number
  lane?: string
  /** Why it cannot be queued, when the source knows already. */
  error?: ErrorRecord
}
