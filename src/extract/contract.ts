/** Extract: from a page's text to what a handler reads. */
import type { Anchor, DocumentSelection } from '../core/selection.ts'

export interface Extract {
  select(html: string, baseUrl: string): DocumentSelection
  /** The links a selector finds, absolute, in page order; links that are no URL are left out and counted. */
  anchors(document: DocumentSelection, css: string): { anchors: Anchor[]; bad: number }
  /** A handler is done with its page: the next page may use its memory. */
  release(document: DocumentSelection): void
}
