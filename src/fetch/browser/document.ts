/** The document a page shows: how the page got there, its response, and its text. */
import type { Page as DriverPage, HTTPRequest, HTTPResponse, Realm } from 'puppeteer-core'
import { ScrapeError } from '../../core/errors.ts'
import { detectCharset, parseContentType } from '../http/charset.ts'
import { headerOf, type RawHeaders } from '../http/http-page.ts'

/** A document the page has shown, and how it got there. */
interface Shown {
  request: HTTPRequest
  response: HTTPResponse | undefined
  firstByteAtMs: number
  passed: number
}

/**
 * The main frame's document requests and their responses, from the first URL on; `onChange` is called for each further request
 * and for failures. A navigation that ends without a document (a download, a 204) leaves the page as it was, and is dropped.
 */
export class Trail {
  /** The response of the latest document; redirects are not documents. */
  response: HTTPResponse | undefined
  firstByteAtMs = 0
  /** The latest request of the main frame for a document, and its error once it has failed. */
  request: HTTPRequest | undefined
  failed: string | undefined
  readonly passed: string[] = []
  readonly #driver: DriverPage
  readonly #stop: () => void
  /** What the page showed when the latest navigation began. */
  #shown: Shown | undefined

  constructor(driver: DriverPage, onChange: () => void) {
    this.#driver = driver
    const isOurs = (request: HTTPRequest) => request.isNavigationRequest() && request.frame() === driver.mainFrame()
    const onRequest = (request: HTTPRequest) => {
      if (!isOurs(request)) return
      const last = this.request
      if (last !== undefined && this.#shows(last)) {
        const { response, firstByteAtMs } = this
        this.#shown = { request: last, response, firstByteAtMs, passed: this.passed.length }
      }
      this.request = request
      this.response = undefined
      this.failed = undefined
      if (last === undefined) return
      this.passed.push(last.url())
      onChange()
    }
    const onResponse = (response: HTTPResponse) => {
      if (response.request() === this.#shown?.request) this.#shown.response ??= response
      if (response.request() !== this.request) return
      this.response = response
      this.firstByteAtMs = performance.now()
    }
    const onFailed = (request: HTTPRequest) => {
      if (request !== this.request) return
      this.failed = request.failure()?.errorText ?? 'net::ERR_FAILED'
      if (this.failed.includes('ERR_ABORTED')) this.#goBack()
      onChange()
    }
    driver.on('request', onRequest).on('response', onResponse).on('requestfailed', onFailed)
    this.#stop = () => driver.off('request', onRequest).off('response', onResponse).off('requestfailed', onFailed)
  }

  /** The page shows the document of the latest request. */
  get hasArrived(): boolean {
    return this.request !== undefined && this.response !== undefined && this.#shows(this.request)
  }

  /** A document has the same identifier as the request that loaded it. */
  #shows(request: HTTPRequest): boolean {
    const { _loaderId } = this.#driver.mainFrame() as unknown as { _loaderId: string }
    return (request as HTTPRequest & { id: string }).id === _loaderId
  }

  #goBack(): void {
    const shown = this.#shown
    if (shown === undefined || !this.#shows(shown.request)) return
    this.request = shown.request
    this.response = shown.response
    this.firstByteAtMs = shown.firstByteAtMs
    this.failed = undefined
    this.passed.length = shown.passed
    this.#shown = undefined
  }

  /** Called when the latest request is about to be made again, so that it counts once. */
  stepBack(): void {
    this.request = undefined
  }

  stop(): void {
    this.#stop()
  }
}

/** Chromium joins the values of repeated headers with line breaks. */
export function headersOf(response: HTTPResponse): RawHeaders {
  const headers: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of Object.entries(response.headers())) {
    headers[name] = name === 'set-cookie' ? value.split(/\n ?/) : value.replace(/\n ?/g, ', ')
  }
  return headers
}

export interface Body {
  body: Buffer
  charset: string
  contentType: string
}

/**
 * For HTML, the document as it is now; for anything else, the bytes that were received, not Chromium's viewer for them.
 * Throws `E_TOO_LARGE`, `E_CHARSET`. Rejects with a driver error if the page navigates in the meantime.
 */
export async function readBody(driver: DriverPage, response: HTTPResponse, bytesMax: number): Promise<Body> {
  const type = parseContentType(headerOf(headersOf(response), 'content-type') ?? '')
  const isMarkup = type.markup === 'html' || type.essence === 'application/xhtml+xml' || type.markup === 'unknown'
  if (!isMarkup) return await readRaw(response, bytesMax)
  if (driver.url().startsWith('chrome-error:')) return { body: Buffer.alloc(0), charset: 'utf-8', contentType: type.essence } // biome-ignore format: one line reads better
  const body = Buffer.from(await readHtml(driver, bytesMax))
  if (body.length > bytesMax) throw tooLarge(bytesMax)
  return { body, charset: 'utf-8', contentType: type.essence || 'text/html' }
}

/** Runs in an isolated world, where the page cannot have replaced the browser's own functions. */
export async function readHtml(driver: DriverPage, charsMax: number): Promise<string> {
  const { isolatedRealm } = driver.mainFrame() as unknown as { isolatedRealm(): Realm }
  const realm = isolatedRealm.call(driver.mainFrame())
  const html = (await realm.evaluate(`(() => {
    const { doctype, documentElement } = document
    const html = (doctype ? new XMLSerializer().serializeToString(doctype) : '') + (documentElement?.outerHTML ?? '')
    return html.length > ${charsMax} ? null : html
  })()`)) as string | null
  if (html === null) throw tooLarge(charsMax)
  return html
}

async function readRaw(response: HTTPResponse, bytesMax: number): Promise<Body> {
  const type = parseContentType(headerOf(headersOf(response), 'content-type') ?? '')
  // `response.content()` does not say whether these are the server's bytes or text that Chromium has already decoded.
  const { client, id: requestId } = response.request() as HTTPRequest & { id: string }
  const { body: text, base64Encoded } = await client.send('Network.getResponseBody', { requestId })
  const body = Buffer.from(text, base64Encoded ? 'base64' : 'utf8')
  if (body.length > bytesMax) throw tooLarge(bytesMax)
  return { body, charset: base64Encoded ? detectCharset(body, type) : 'utf-8', contentType: type.essence }
}

function tooLarge(bytesMax: number): ScrapeError {
  return new ScrapeError('E_TOO_LARGE', `the document is larger than ${bytesMax} bytes`)
}
