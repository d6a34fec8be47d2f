/** The browser page as handlers use it: every call ends, even if the page does not respond. */
import { ScrapeError } from '../../core/errors.ts'
import type { LivePage, Page } from '../../core/page.ts'
import { readHtml } from './document.ts'
import { messageOf, refusalOf } from './net-error.ts'
import type { OpenPage } from './open-page.ts'
import { readState } from './storage-state.ts'

/** A screenshot is optional; a page that cannot produce one in this time gets none. */
const SCREENSHOT_MS_MAX = 10_000

interface LiveLimits {
  url: string
  timeoutMs: number
  bodyBytesMax: number
}

export function livePage(page: OpenPage, { url, timeoutMs, bodyBytesMax }: LiveLimits): LivePage {
  const { driver } = page
  driver.setDefaultTimeout(timeoutMs) // from here on the handler does the waiting
  explainRefusals(page)
  page.downloads.handOver()
  const bounded = <T>(work: () => Promise<T>, what: string, msMax = timeoutMs) =>
    withinTime(page, work, msMax, () => new ScrapeError('E_TIMEOUT_TOTAL', `${what} takes longer than ${msMax} ms`, { url })) // biome-ignore format: one line reads better
  return {
    driver,
    get failure() {
      return page.failure
    },
    failureBehind: (error) => page.failureBehind(error),
    content: () => bounded(() => readHtml(driver, bodyBytesMax), 'the document'),
    state: () => bounded(() => readState(page), 'cookies and storage'),
    downloads: () => bounded(() => page.downloads.all(url), 'a download', timeoutMs + 1000),
    async screenshot() {
      try {
        const take = async () => Buffer.from(await driver.screenshot({ type: 'png', captureBeyondViewport: false }))
        return await bounded(take, 'a picture', Math.min(timeoutMs, SCREENSHOT_MS_MAX))
      } catch {
        return undefined
      }
    },
  }
}

/** Rejects with `ScrapeError` only: the page failed, the time ran out, or the driver reported an error. */
function withinTime<T>(
  page: OpenPage,
  work: () => Promise<T>,
  msMax: number,
  onTimeout: () => ScrapeError,
): Promise<T> {
  return new Promise((resolve, reject) => {
    if (page.failure !== undefined) return reject(page.failure)
    const timer = setTimeout(() => reject(onTimeout()), msMax)
    const stopListening = page.onFailure(reject)
    const fail = (error: unknown) => {
      const cause = { cause: error }
      reject(error instanceof ScrapeError ? error : new ScrapeError('E_BROWSER_CRASHED', messageOf(error), cause))
    }
    const end = () => {
      clearTimeout(timer)
      stopListening()
    }
    return void work().then(resolve, fail).finally(end)
  })
}

/** Chromium only knows that its proxy refused; the egress proxy knows why. */
function explainRefusals({ driver, door }: OpenPage): void {
  let failedUrl: string | undefined
  driver.on('requestfailed', (request) => {
    if (request.isNavigationRequest() && request.frame() === driver.mainFrame()) failedUrl = request.url()
  })
  const goto = driver.goto.bind(driver)
  driver.goto = async (url, options) => {
    failedUrl = undefined
    try {
      return await goto(url, options)
    } catch (error) {
      throw refusalOf(error, failedUrl ?? url, door) ?? error
    }
  }
}

/** Returns a page that is closed in its browser when it is released. */
export function withLive(page: Page, live: LivePage, close: () => void): Page {
  const { release } = page
  let isReleased = false
  return Object.assign(page, {
    live: live as LivePage | undefined,
    release(this: { live?: LivePage | undefined }) {
      release.call(page)
      if (isReleased) return
      isReleased = true
      this.live = undefined
      close()
    },
  })
}
