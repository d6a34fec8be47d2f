/** `$`: how a handler reads a page. `extract/` implements it. */
import type { CheerioAPI } from 'cheerio'

/**
 * A place in the page: the whole document, or one element of `all()`. Selectors look inside it. Text is trimmed and its white
 * space folded. Where nothing matches, everything but `all` and `exists` throws `E_SELECTOR_EMPTY` with the selector's name,
 * unless called with `{ optional: true }`.
 */
export interface Selection {
  /** Text of the first match; without a selector, of this place itself. */
  text(css?: string): string
  text(css: string, options: { optional: true }): string | undefined
  /** The first number in the text of the first match: "£1,234.50" is 1234.5. */
  number(css: string): number
  number(css: string, options: { optional: true }): number | undefined
  /** An attribute of the first match that has it. `href` and `src` come back as absolute URLs, resolved against base href. */
  attr(css: string, name: string): string
  attr(css: string, name: string, options: { optional: true }): string | undefined
  /** An attribute of this element itself, as it stands in the page. */
  ownAttr(name: string): string | undefined
  all(css: string): Selection[]
  exists(css: string): boolean
  /** The first match's text parsed as JSON (`script#data`). */
  json<T = unknown>(css: string): T
  json<T = unknown>(css: string, options: { optional: true }): T | undefined
  /** Inner HTML of the first match; without a selector, of this place. */
  html(css?: string): string
}

/** The document's own selection. */
export interface DocumentSelection extends Selection {
  /**
   * Everything else: cheerio on the same page (htmlparser2's tree), built on first use. It makes an object of every tag and text:
   * with a page of 10 MB the process grows to 600 MB, where the other methods of `$` keep it at 200 MB.
   */
  readonly cheerio: CheerioAPI
  /** Every JSON-LD block of the page, flattened (`@graph` and arrays opened); blocks that do not parse are left out. */
  jsonLd(type?: string): Record<string, unknown>[]
}

/** A link as `enqueue.links` hands it to its mapper. */
export interface Anchor {
  /** Absolute. */
  readonly href: string
  readonly text: string
  attr(name: string): string | undefined
}
