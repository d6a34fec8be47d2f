/** Extract: from a page's text to what a handler reads. */
import type { Anchor, DocumentSelection } from '../core/selection.ts'

export interface Extract {
  select(html: string, baseUrl: string): DocumentSelection
  /** The http(s) links a selector finds, absolute, in page order; what is left out is counted. */
  anchors(document: DocumentSelection, css: string): FoundAnchors
  /** A handler is done with its page: the next page may use its memory. */
  release(document: DocumentSelection): void
}

export interface FoundAnchors {
  anchors: Anchor[]
  /** Links that are not URLs. */
  bad: number
  /** Distinct links with a scheme that is not fetched: `mailto:`, `javascript:` … */
  otherSchemes: number
}
