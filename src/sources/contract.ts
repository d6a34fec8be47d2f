/** What a source gives: URLs for the queue of a run, as they were found. */
import type { ErrorRecord } from '../core/errors.ts'

export interface FoundUrl {
  /** As it was written; whether it is a URL is found out when it is queued. */
  text: string
  /** Where, for a person: `line 12`, the address of a sitemap. */
  from: string
  /**
   * The user typed its host and port, in the URL itself or in that of the sitemap that lists it. Such a host may be
   * private if it is an address and not a name. Entries of a list are never allowed this way.
   */
  isNamed: boolean
  priority?: number
  lane?: string
  /** Why it cannot be queued, when the source knows already. */
  error?: ErrorRecord
}
