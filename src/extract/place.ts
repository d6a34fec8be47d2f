/** A place in a page, which is what `$` is. The index is built on first use; cheerio answers what the index cannot. */
import type { CheerioAPI } from 'cheerio'
import { ScrapeError } from '../core/errors.ts'
import type { DocumentSelection, Selection } from '../core/selection.ts'
import { attributeOf } from './attributes.ts'
import { type Dom, domOf, findWithCheerio } from './dom.ts'
import { parseJson } from './json.ts'
import { jsonLdNodes } from './json-ld.ts'
import { findAll, findFirst } from './match.ts'
import { firstNumber } from './number.ts'
import { indexPage, type PageIndex, recycle } from './page-index.ts'
import { type Base, baseOf, resolveUrl } from './resolve-url.ts'
import { compile } from './selector.ts'
import { innerHtmlOf, outerHtmlOf } from './serialize.ts'
import { rawTextOf, textOf } from './text.ts'
import { detached } from './text-builder.ts'

/** What all places of a page share; each part is built on first use. */
export class Document {
  readonly html: string
  readonly url: string
  #index: PageIndex | undefined
  #dom: Dom | undefined
  #base: Base | undefined | null = null

  constructor(html: string, url: string) {
    this.html = html
    this.url = url
  }

  get index(): PageIndex {
    this.#index ??= indexPage(this.html)
    return this.#index
  }

  get dom(): Dom {
    this.#dom ??= domOf(this.index)
    return this.#dom
  }

  /** The first base href if it is an http(s) URL; otherwise the page's own URL. */
  get base(): Base | undefined {
    if (this.#base === null) {
      const token = findFirst(this.index, compile('base[href]'), -1)
      const href = token === -1 ? undefined : attributeOf(this.index, token, 'href')
      this.#base = (href === undefined ? undefined : baseOf(href.trim(), this.url)) ?? baseOf(this.url)
    }
    return this.#base
  }

  resolve(link: string): string | undefined {
    return this.base === undefined ? URL.parse(link, this.url)?.href : resolveUrl(link, this.base)
  }

  first(css: string, scope: number): number {
    const selector = compile(css)
    return selector.alternatives !== undefined
      ? findFirst(this.index, selector, scope)
      : (findWithCheerio(this.dom, css, scope)[0] ?? -1)
  }

  all(css: string, scope: number): number[] {
    const selector = compile(css)
    return selector.alternatives !== undefined
      ? findAll(this.index, selector, scope)
      : findWithCheerio(this.dom, css, scope)
  }

  release(): void {
    if (this.#index !== undefined) recycle(this.#index)
    this.#index = undefined
    this.#dom = undefined
  }
}

interface Optional {
  optional?: boolean
}

/** The page (token -1) or one element of it. */
export class Place implements DocumentSelection {
  readonly document: Document
  readonly token: number
  /** For error messages: the selectors that led here. */
  readonly #path: string

  constructor(document: Document, token: number, path: string) {
    this.document = document
    this.token = token
    this.#path = path
  }

  text(css?: string): string
  text(css: string, options: { optional: true }): string | undefined
  text(css?: string, options?: Optional): string | undefined {
    const token = this.#find(css, options)
    return token === undefined ? undefined : textOf(this.document.index, token)
  }

  number(css: string): number
  number(css: string, options: { optional: true }): number | undefined
  number(css: string, options?: Optional): number | undefined {
    const token = this.#find(css, options)
    if (token === undefined) return undefined
    const text = rawTextOf(this.document.index, token)
    const number = firstNumber(text)
    if (number === undefined && options?.optional !== true) {
      throw this.#empty(css, `found no number, only ${JSON.stringify(text.trim().slice(0, 80))}`)
    }
    return number
  }

  attr(css: string, name: string): string
  attr(css: string, name: string, options: { optional: true }): string | undefined
  attr(css: string, name: string, options?: Optional): string | undefined {
    const { document } = this
    const wanted = name.toLowerCase()
    const isUrl = wanted === 'href' || wanted === 'src'
    // The first match nearly always has it; only if it does not is the search repeated for all of them.
    const first = document.first(css, this.token)
    let value = first === -1 ? undefined : this.#value(first, wanted, isUrl)
    if (value === undefined && first !== -1) {
      for (const token of document.all(css, this.token)) {
        value = this.#value(token, wanted, isUrl)
        if (value !== undefined) break
      }
    }
    if (value === undefined && options?.optional !== true) {
      throw this.#empty(css, first === -1 ? 'found nothing' : `found no element with a usable ${wanted}`)
    }
    return value
  }

  #value(token: number, name: string, isUrl: boolean): string | undefined {
    const value = attributeOf(this.document.index, token, name)
    if (value === undefined) return undefined
    return isUrl ? this.document.resolve(value) : detached(value)
  }

  ownAttr(name: string): string | undefined {
    if (this.token === -1) return undefined
    const value = attributeOf(this.document.index, this.token, name.toLowerCase())
    return value === undefined ? undefined : detached(value)
  }

  all(css: string): Selection[] {
    const path = this.#path === '' ? css : `${this.#path} ${css}`
    return this.document.all(css, this.token).map((token) => new Place(this.document, token, path))
  }

  exists(css: string): boolean {
    return this.document.first(css, this.token) !== -1
  }

  json<T = unknown>(css: string): T
  json<T = unknown>(css: string, options: { optional: true }): T | undefined
  json<T = unknown>(css: string, options?: Optional): T | undefined {
    const token = this.#find(css, options)
    if (token === undefined) return undefined
    return parseJson(rawTextOf(this.document.index, token), JSON.stringify(css), this.document.url) as T
  }

  html(css?: string): string {
    const token = this.#find(css)!
    return token === -1 ? this.document.html : detached(innerHtmlOf(this.document.index, token))
  }

  outerHtml(css?: string): string {
    const { index } = this.document
    const token = this.#find(css)!
    const root = () => index.tag.findIndex((tag) => tag !== -1)
    return detached(outerHtmlOf(index, token === -1 ? root() : token))
  }

  get cheerio(): CheerioAPI {
    return this.document.dom.cheerio
  }

  jsonLd(type?: string): Record<string, unknown>[] {
    const { index } = this.document
    return this.document
      .all('script[type^="application/ld+json"]', this.token)
      .flatMap((token) => jsonLdNodes(rawTextOf(index, token), type))
  }

  #find(css: string | undefined, options?: Optional): number | undefined {
    if (css === undefined) return this.token
    const token = this.document.first(css, this.token)
    if (token !== -1) return token
    if (options?.optional === true) return undefined
    throw this.#empty(css, 'found nothing')
  }

  #empty(css: string, what: string): ScrapeError {
    const where = this.#path === '' ? '' : ` inside ${JSON.stringify(this.#path)}`
    return new ScrapeError('E_SELECTOR_EMPTY', `${JSON.stringify(css)} ${what}${where}`, { url: this.document.url })
  }
}
