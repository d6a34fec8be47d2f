/** A loaded page, and the names a user at a prompt inspects it by. */
import { existsSync, readFileSync } from 'node:fs'
import { inspect } from 'node:util'
import type { Config } from '../../config/config.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { Page } from '../../core/page.ts'
import type { DocumentSelection } from '../../core/selection.ts'
import { normaliseUrl } from '../../core/url.ts'
import { allLinks, anchors, select } from '../../extract/html.ts'
import { parseJson } from '../../extract/json.ts'
import { Place } from '../../extract/place.ts'
import { decodeText, detectCharset, parseContentType } from '../../fetch/http/charset.ts'
import { printable } from '../../observe/terminal.ts'
import { limitsOf, openOnePage, unhurriedLimits, urlArgument } from './one-page.ts'

interface ShellPage {
  url: string
  html: string
  /** undefined for a file. */
  page: Page | undefined
  $: DocumentSelection
  /** The page came with an error status, and is shown anyway. */
  error: ScrapeError | undefined
}

export interface PageShell extends AsyncDisposable {
  readonly current: ShellPage
  /** Names available at the prompt; getters, so that `fetch` changes their values. */
  readonly names: PropertyDescriptorMap
}

interface PageShellOptions {
  /** A URL, or the path of a saved page. */
  target: string
  /** The original URL of a saved page. */
  base: string | undefined
  config: Config
}

export async function openPageShell({ target, base, config }: PageShellOptions): Promise<PageShell> {
  showPlacesShort()
  const file = fileOf(target)
  const url = file === undefined ? urlArgument(target) : undefined
  const limits = unhurriedLimits(limitsOf(config.limits), config.limits)
  const chain = await openOnePage({ config, limits, typed: url === undefined ? [] : [url] })
  const go = async (to: string): Promise<ShellPage> => {
    const { page, error } = await chain.visit({ url: to })
    if (page === undefined) throw error
    return { url: page.url, html: page.text, page, $: select(page.text, page.url), error }
  }
  try {
    let current = url === undefined ? readFile(file!, base) : await go(url)
    const visit = async (to: string | URL) => {
      current = await go(normaliseUrl(to, current.url))
      return current.page
    }
    return {
      get current() {
        return current
      },
      names: namesFor(() => current, visit),
      [Symbol.asyncDispose]: () => chain[Symbol.asyncDispose](),
    }
  } catch (error) {
    await chain[Symbol.asyncDispose]()
    throw error
  }
}

/** The path of a saved page, or undefined for a URL or what should be one. */
function fileOf(target: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(target)) return undefined
  if (existsSync(target)) return target
  if (!/^[./~]|^[^/]+\.html?$/i.test(target)) return undefined
  throw new ScrapeError('E_USAGE', `no file ${target}`, { fix: 'Give the path of a saved page, or an absolute URL.' })
}

function readFile(path: string, base: string | undefined): ShellPage {
  const body = readFileSync(path)
  const type = parseContentType('text/html')
  const html = decodeText(body, detectCharset(body, type))
  const url = base === undefined ? `file:${path}` : urlArgument(base)
  return { url, html, page: undefined, $: select(html, url), error: undefined }
}

function namesFor(
  current: () => ShellPage,
  visit: (url: string | URL) => Promise<Page | undefined>,
): PropertyDescriptorMap {
  const value = (what: unknown) => ({ value: what, enumerable: true, writable: true, configurable: true })
  const getter = (get: () => unknown) => ({ get, enumerable: true, configurable: true })
  return {
    $: getter(() => current().$),
    html: getter(() => current().html),
    url: getter(() => current().url),
    page: getter(() => current().page),
    json: value(() => parseJson(current().html, 'the page', current().url)),
    links: value((css?: string) => linksOf(current(), css)),
    fetch: value(visit),
  }
}

function linksOf({ $, url }: ShellPage, css: string | undefined): string[] {
  const found =
    css === undefined ? allLinks($, url).map((link) => link.url) : anchors($, css).anchors.map((a) => a.href)
  return [...new Set(found)]
}

const SHOWN_CHARS_MAX = 120

/**
 * At a prompt, an element is shown as its tag and some of its text, and in JSON as its text; otherwise the whole page would be
 * printed.
 */
function showPlacesShort(): void {
  Object.defineProperty(Place.prototype, 'toJSON', {
    configurable: true,
    value(this: Place) {
      return this.text()
    },
  })
  Object.defineProperty(Place.prototype, inspect.custom, {
    configurable: true,
    value(this: Place) {
      const { index, url } = this.document
      if (this.token === -1) return `[the page ${url}]`
      const tag = index.html.slice(index.start[this.token], index.end[this.token])
      const text = this.text()
      const rest = text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text
      const start = tag.length > SHOWN_CHARS_MAX ? `${tag.slice(0, SHOWN_CHARS_MAX)}…>` : tag
      return printable(rest === '' ? start : `${start} ${rest}`)
    },
  })
}
