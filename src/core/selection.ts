/** `$`: how a handler reads a page. Implemented in `extract/`. */
import type { CheerioAPI } from 'cheerio'

/**
 * A place in the page: the whole document, or one element of `all()`. Selectors search inside it. Text is trimmed and its white
 * space collapsed. If nothing matches, everything but `all` and `exists` throws `E_SELECTOR_EMPTY` with the selector's name,
 * unless called with `{ optional: true }`.
 */
export interface Selection {
  /** Text of the first match; without a selector, of this place itself. */
  text(css?: string): string
  text(css: string, options: { optional: true }): string | undefined
  /** The first number in the text of the first match: "£1,234.50" is 1234.5. */
  number(css: string): number
  number(css: string, options: { optional: true }): number | undefined
  /** An attribute of the first match that has it. `href` and `src` are returned as absolute URLs, resolved against base href. */
  attr(css: string, name: string): string
  attr(css: string, name: string, options: { optional: true }): string | undefined
  /** An attribute of this element itself, as written in the page. */
  ownAttr(name: string): string | undefined
  all(css: string): Selection[]
  exists(css: string): boolean
  /** The text of the first match, parsed as JSON (`script#data`). */
  json<T = unknown>(css: string): T
  json<T = unknown>(css: string, options: { optional: true }): T | undefined
  /** Inner HTML of the first match, as a browser's `innerHTML`; without a selector, of this place, and of the document the page as it came. */
  html(css?: string): string
  /** Outer HTML of the first match, as a browser's `outerHTML`; without a selector, of this place, and of the document that of `html`. */
  outerHtml(css?: string): string
}

/** The selection of the whole document. */
export interface DocumentSelection extends Selection {
  /**
   * For everything else: cheerio on the same tree, built on first use. It creates an object for every tag
   * and text: with a page of 10 MB the process grows to 600 MB, while the other methods of `$` keep it at 200 MB.
   */
  readonly cheerio: CheerioAPI
  /** All JSON-LD blocks of the page, flattened (`@graph` and arrays expanded); blocks that do not parse are omitted. */
  jsonLd(type?: string): Record<string, unknown>[]
}

/** A link as passed to the mapper of `enqueue.links`. */
export interface Anchor {
  /** Absolute. */
  readonly href: string
  readonly text: string
  attr(name: string): string | undefined
}
