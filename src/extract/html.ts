/** The extract stage's door: `$` for handlers, links for crawls. */
import type { DocumentSelection } from '../core/selection.ts'
import { Document, Place } from './place.ts'

export { type AllLinksOptions, allLinks, anchors, LINKS_MAX, type PageLink } from './links.ts'

/** `$` of one page. `baseUrl` is where the page came from, after redirects. Nothing is read before the first question. */
export function select(html: string, baseUrl: string): DocumentSelection {
  return new Place(new Document(html, baseUrl), -1, '')
}

/**
 * Says that a handler is done with its page, so that the next page may use its memory. Always safe: a `$` that is used later
 * reads the page again.
 */
export function release($: DocumentSelection): void {
  if ($ instanceof Place) $.document.release()
}
