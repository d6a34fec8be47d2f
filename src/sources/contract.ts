/** What a source returns: URLs for the queue of a run, as they were found. */
import type { ErrorRecord } from '../core/errors.ts'

export interface FoundUrl {
  /** As written; it is checked when it is queued. */
  text: string
  /** Where it was found, for people to read: `line 12`, the URL of a sitemap. */
  from: string
  /**
   * The user typed its host and port, in the URL itself or in that of the sitemap that lists it. Such a host may be
   * private if it is an address and not a name. Entries of a list are never allowed this way.
   */
  isNamed: boolean
  priority?: number
  lane?: string
  /** Why it cannot be queued, if the source already knows. */
  error?: ErrorRecord
}
