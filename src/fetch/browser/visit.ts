/** One visit: open the URL, wait for what the request asks for, and read the document. */
import type { GoToOptions } from 'puppeteer-core'
import { ScrapeError } from '../../core/errors.ts'
import { pageOf, withPage } from '../../core/failed-page.ts'
import type { BrowserRequest, FetchRequest } from '../contract.ts'
import type { Deadline } from '../http/deadline.ts'
import { FAILED_BODY_BYTES_MAX } from '../http/exchange.ts'
import { HttpPage, type PageParts } from '../http/http-page.ts'
import { tooManyRedirects } from '../http/redirect-walk.ts'
import { outcomeOf, statusError } from '../http/status.ts'
import { type Body, headersOf, readBody, Trail } from './document.ts'
import { messageOf, navigationError, netErrorOf } from './net-error.ts'
import { after, type OpenPage } from './open-page.ts'
import type { Settings } from './options.ts'

const WAIT_UNTIL = { domcontentloaded: 'domcontentloaded', load: 'load', networkidle: 'networkidle0' } as const
/** A page that navigates while we read it is read again, after this pause. */
const LOOK_AGAIN_MS = 50
const ABORTED_LOOKS = 40
/** For the snapshot attached to an error, which is optional. */
const SNAPSHOT_MS_MAX = 2000

interface Visit {
  request: FetchRequest & { browser: BrowserRequest }
  page: OpenPage
  deadline: Deadline
  settings: Settings
}

/** Rejects with `ScrapeError`, or with the deadline's reason. */
export async function visit(visit: Visit): Promise<HttpPage> {
  const { page, deadline } = visit
  const trail = new Trail(page.driver, () => {
    // Counts redirects by the server and navigations by the page itself: a page that keeps navigating would never arrive.
    const { length } = trail.passed
    if (length > visit.settings.redirectsMax)
      deadline.fail(tooManyRedirects(visit.request.url, length, { notes: trail.passed.slice(0, 20) }))
    const failure = trailFailure(visit, trail)
    if (failure !== undefined && !isShutOut(visit, trail)) deadline.fail(failure)
  })
  const stopListening = page.onFailure((error) => deadline.fail(error))
  try {
    await travel(visit, trail)
    const { waitFor } = visit.request.browser
    if (waitFor !== undefined) await step(visit, page.driver.waitForSelector(waitFor, { timeout: 0 }))
    const [answer] = await Promise.all([arrive(visit, trail), page.guard()])
    return answer
  } catch (error) {
    const failure = await failureOf(visit, trail, error)
    if (failure instanceof ScrapeError) await addPicture(visit, trail, failure)
    throw failure
  } finally {
    stopListening()
    trail.stop()
  }
}

async function failureOf(visit: Visit, trail: Trail, error: unknown): Promise<unknown> {
  const { page, deadline } = visit
  if (deadline.failure !== undefined && error === deadline.failure.reason) return timeoutError(visit, trail, error)
  if (error instanceof ScrapeError) return error
  const failure = await page.failureBehind(error)
  return failure ?? navigationError(error, { ...whereOf(visit, trail), door: page.door })
}

/** Attaches a screenshot to the page that comes with an error; a visit without a document has nothing to show. */
async function addPicture({ page, settings, ...visit }: Visit, trail: Trail, error: ScrapeError): Promise<void> {
  if (page.failure !== undefined || trail.response === undefined) return
  if (error.code === 'E_TIMEOUT_TOTAL' && pageOf(error) === undefined) return // it did not respond a moment ago
  const { driver } = page
  const take = async () => Buffer.from(await driver.screenshot({ type: 'png', captureBeyondViewport: false }))
  const screenshot = await Promise.race([take().catch(() => undefined), after(SNAPSHOT_MS_MAX)])
  if (screenshot === undefined) return
  const nothing = { body: Buffer.alloc(0), charset: 'utf-8', contentType: '' }
  const failed = pageOf(error) ?? new HttpPage(partsOf({ page, settings, ...visit }, trail, nothing))
  withPage(error, Object.assign(failed, { screenshot }))
}

/** Ends with a document in the page, or with a 204. */
async function travel(visit: Visit, trail: Trail): Promise<void> {
  const { page, request } = visit
  const options: GoToOptions = { waitUntil: WAIT_UNTIL[request.browser.waitUntil ?? 'load'], timeout: 0 }
  let { url } = request
  for (;;) {
    try {
      await step(visit, page.driver.goto(url, options))
      return
    } catch (error) {
      if (error instanceof ScrapeError || error === visit.deadline.failure?.reason) throw error
      if (netErrorOf(error) === 'ERR_ABORTED') return await checkAborted(visit, trail, error)
      if (!isShutOut(visit, trail)) throw error
      url = trail.request!.url()
      page.door.admit(url)
      trail.stepBack()
    }
  }
}

/** Accepts a navigation that ended without a document if that is legitimate. */
async function checkAborted(visit: Visit, trail: Trail, error: unknown): Promise<void> {
  const { url } = visit.request
  // The reason may arrive after the end, so check several times in case the driver is still processing its events.
  for (let look = 0; look < ABORTED_LOOKS; look++) {
    const status = trail.response?.status()
    // A page may start a download before it has loaded, and still be a page.
    if (status === 204 || status === 205 || trail.hasArrived) return
    if (await step(visit, visit.page.downloads.begins(LOOK_AGAIN_MS))) {
      throw new ScrapeError('E_BROWSER_DOWNLOAD', `${url} is a file, not a page`, { url })
    }
  }
  throw error
}

async function arrive(visit: Visit, trail: Trail): Promise<HttpPage> {
  const { request, settings, page } = visit
  for (;;) {
    const failure = trailFailure(visit, trail)
    if (failure !== undefined) throw failure
    const { response } = trail
    if (response !== undefined) {
      const status = response.status()
      const headers = headersOf(response)
      const isFailed = outcomeOf(status, headers, request) === 'failed'
      const body = await readQuietly(visit, trail, isFailed)
      if (body !== undefined && trail.response === response) {
        if (!isFailed && wasCut(visit, trail)) throw new ScrapeError('E_BODY_SHORT', `cut off (${response.url()})`, { url: response.url() }) // biome-ignore format: one line reads better
        if (!isFailed) return new HttpPage(partsOf(visit, trail, body))
        const at = { url: response.url(), nowMs: settings.now(), retryAfterMsMax: settings.retryAfterMsMax }
        throw withPage(statusError(status, headers, at), new HttpPage(partsOf(visit, trail, body)))
      }
    }
    await step(visit, new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS)))
    if (page.driver.url() === 'about:blank' && trail.request === undefined) throw new Error('the page went blank')
  }
}

/** Undefined if the page navigated while it was being read. */
async function readQuietly(visit: Visit, trail: Trail, isFailed: boolean): Promise<Body | undefined> {
  const { page, settings } = visit
  const response = trail.response!
  const status = response.status()
  if (status === 204 || status === 205) return { body: Buffer.alloc(0), charset: 'utf-8', contentType: '' }
  try {
    const body = await step(visit, readBody(page.driver, response, settings.bodyBytesMax))
    return isFailed ? { ...body, body: Buffer.from(body.body.subarray(0, FAILED_BODY_BYTES_MAX)) } : body
  } catch (error) {
    if (error === visit.deadline.failure?.reason) throw error
    if (isFailed) return { body: Buffer.alloc(0), charset: 'utf-8', contentType: '' } // the status is what matters
    if (error instanceof ScrapeError) throw error
    if (/evicted|No resource with given identifier/.test(messageOf(error))) {
      throw new ScrapeError('E_TOO_LARGE', 'the document is larger than the browser keeps', { url: response.url() })
    }
    return undefined
  }
}

/** A document that arrived only in part is a failure. */
function trailFailure(visit: Visit, trail: Trail): ScrapeError | undefined {
  if (trail.failed === undefined || trail.failed.includes('ERR_ABORTED')) return undefined
  return navigationError(new Error(trail.failed), { ...whereOf(visit, trail), door: visit.page.door })
}

/** A body without a length ends with its connection, and the connection may have been cut. */
function wasCut({ page }: Visit, { response }: Trail): boolean {
  const { hostname, port, protocol } = new URL(response!.url())
  const { 'content-length': length, 'transfer-encoding': encoding } = response!.headers()
  if (length !== undefined || encoding !== undefined) return false
  return page.door.wasCut(hostname, Number(port) || (protocol === 'https:' ? 443 : 80))
}

/** A redirect to another site makes it one of the page's sites; the egress proxy cannot tell a redirect from an image. */
function isShutOut({ page }: Visit, { request }: Trail): boolean {
  return request !== undefined && page.door.hasShutOut(new URL(request.url()).hostname)
}

function partsOf({ request, page, deadline, settings }: Visit, trail: Trail, body: Body): PageParts {
  const response = trail.response!
  return {
    requestedUrl: request.url,
    url: withoutHash(response.url()),
    redirects: trail.passed.map(withoutHash),
    status: response.status(),
    headers: headersOf(response),
    ...body,
    wireBytes: page.door.bytes,
    timings: {
      firstByteMs: trail.firstByteAtMs - deadline.startedAtMs,
      totalMs: performance.now() - deadline.startedAtMs,
    },
    fetchedAtMs: settings.now(),
  }
}

/** Waits for work that cannot be cancelled, until it is done or the deadline passes. */
function step<T>({ deadline }: Visit, work: Promise<T>): Promise<T> {
  if (deadline.failure === undefined) return deadline.race(work)
  work.catch(() => {})
  return Promise.reject(deadline.failure.reason)
}

/** What we were waiting for when the deadline passed. Other failures are returned as they are. */
async function timeoutError(visit: Visit, trail: Trail, reason: unknown): Promise<unknown> {
  if (!(reason instanceof ScrapeError) || reason.code !== 'E_TIMEOUT_TOTAL') return reason
  const { request, settings, page } = visit
  const { url } = request
  const within = `within ${settings.timeoutMs} ms (${url})`
  if (trail.response === undefined) {
    if (trail.passed.length > 0) return reason
    if (page.door.connecting > 0) return new ScrapeError('E_TIMEOUT_CONNECT', `no connection ${within}`, { url })
    return new ScrapeError('E_TIMEOUT_HEADERS', `no response ${within}`, { url })
  }
  const { waitFor } = request.browser
  // The page may have loaded, only without what was waited for: it is worth attaching.
  const read = readBody(page.driver, trail.response, settings.bodyBytesMax).catch(() => undefined)
  const body = await Promise.race([read, after(SNAPSHOT_MS_MAX)])
  if (body === undefined) return reason
  if (waitFor === undefined) return withPage(reason, new HttpPage(partsOf(visit, trail, body)))
  const error = new ScrapeError('E_SELECTOR_EMPTY', `${JSON.stringify(waitFor)} did not appear ${within}`, { url })
  return withPage(error, new HttpPage(partsOf(visit, trail, body)))
}

function whereOf({ request }: Visit, trail: Trail): { url: string; hasResponse: boolean } {
  return { url: trail.request?.url() ?? request.url, hasResponse: trail.response !== undefined }
}

function withoutHash(url: string): string {
  const at = url.indexOf('#')
  return at === -1 ? url : url.slice(0, at)
}
