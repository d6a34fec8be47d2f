/** The entry point of the extract stage: `$` for handlers, links for crawls. */
import type { DocumentSelection } from '../core/selection.ts'
import { Document, Place } from './place.ts'

export { type AllLinksOptions, allLinks, anchors, LINKS_MAX, type PageLink } from './links.ts'

/** `$` of one page. `baseUrl` is the page's URL after redirects. Nothing is parsed before the first call. */
export function select(html: string, baseUrl: string): DocumentSelection {
  return new Place(new Document(html, baseUrl), -1, '')
}

/**
 * Called when a handler is done with its page, so that the next page can reuse its memory. Always safe: a `$` that is used later
 * indexes the page again.
 */
export function release($: DocumentSelection): void {
  if ($ instanceof Place) $.document.release()
}
