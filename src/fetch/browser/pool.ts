/** The pool of browsers, with a limit on the pages open at once. */

import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ScrapeError } from '../../core/errors.ts'
import { every } from '../../core/every.ts'
import type { Page } from '../../core/page.ts'
import { URL_BYTES_MAX } from '../../core/url.ts'
import type { BrowserRequest, BrowserSlots, FetchRequest } from '../contract.ts'
import { Deadline } from '../http/deadline.ts'
import type { Identity } from '../identity/identity.ts'
import { type EgressProxy, openEgress } from '../net/egress.ts'
import { Sites } from '../net/same-site.ts'
import { Chromium } from './chromium.ts'
import { livePage, withLive } from './live-page.ts'
import { type OpenPage, openPage } from './open-page.ts'
import { type BrowserPoolOptions, withDefaults } from './options.ts'
import { Slots } from './slots.ts'
import { makeSpoolFolder } from './spool-folder.ts'
import { visit } from './visit.ts'

/** Pages usually close within 10 ms; the next visit does not wait longer than this for the slot. */
const CLOSE_MS_MAX = 50
/** If a page is still open after this, its browser is replaced. */
const STUCK_MS = 5000

type Request = FetchRequest & { browser: BrowserRequest }

export interface BrowserPool extends BrowserSlots, AsyncDisposable {
  /**
   * Opens the URL in a separate context, as `identity` and through its proxy if there is one. The slot is held until the page
   * is released. Throws `ScrapeError` only.
   */
  visit(request: Request, signal: AbortSignal, identity?: Identity): Promise<Page>
  /** Running browsers. */
  readonly browsers: number
  /** Changes the number of pages open at once; a lower number takes effect as pages end. */
  resize(slots: number): void
}

/** Starts no browser before the first visit. Throws `E_OPTION`. */
export function openBrowserPool(options: BrowserPoolOptions): BrowserPool {
  const settings = withDefaults(options)
  const egress = openEgress(settings)
  const folder = makeSpoolFolder(settings.spool)
  const slots = new Slots(settings.slots)
  const browsers = new Set<Chromium>()
  /** Functions that close the open pages; below, the pages that are being closed. */
  const open = new Set<() => void>()
  const closing = new Set<Promise<void>>()
  let closedProxy: Promise<EgressProxy> | undefined
  let isDisposed = false

  const watcher = every(() => {
    const nowMs = performance.now()
    for (const browser of browsers) browser.watch(nowMs)
    closeIdle(nowMs)
  }, settings.watchMs)
  watcher.unref()

  /** One idle browser is kept for a while, as starting one takes 200 ms; a second idle one is closed. */
  function closeIdle(nowMs: number): void {
    const idle = [...browsers].filter((browser) => browser.isUsable && browser.open === 0)
    idle.forEach((browser, index) => {
      const idleMs = nowMs - browser.idleSinceMs
      if (idleMs > settings.idleMs || (index > 0 && idleMs > settings.watchMs)) browser.kill('closed', 'idle')
    })
  }

  /** Counts the new page in. */
  async function roomInBrowser(): Promise<Chromium> {
    closedProxy ??= egress.open({ sites: new Sites('http://nobody.invalid'), bytesMax: 0, onFlood: () => {} })
    const { proxyServer } = await closedProxy
    if (isDisposed) throw closedError()
    let chromium = [...browsers].find((browser) => browser.isUsable && browser.open < settings.pagesPerBrowser)
    if (chromium === undefined) {
      const started = new Chromium({ settings, closedProxy: proxyServer, folder: join(folder, randomUUID()) })
      browsers.add(started)
      void started.gone.then(() => browsers.delete(started))
      chromium = started
    }
    chromium.enter()
    return chromium
  }

  async function openIn(chromium: Chromium, request: Request, identity: Identity | undefined): Promise<OpenPage> {
    await chromium.ready
    let page: OpenPage | undefined
    const door = await egress.open({
      sites: request.browser.blockThirdParties === true ? new Sites(request.url) : undefined,
      guard: identity?.guard,
      bytesMax: settings.trafficBytesMax,
      onFlood() {
        const what = `more than ${settings.trafficBytesMax} bytes for one page`
        page?.fail(new ScrapeError('E_TOO_LARGE', what, { url: request.url }))
      },
    })
    try {
      const { downloadBytesMax: bytesMax, timeoutMs } = settings
      const downloads = { folder: join(folder, `downloads-${randomUUID()}`), bytesMax, timeoutMs }
      page = await openPage({ chromium, door, request, profile: identity?.profile, downloads })
      return page
    } catch (error) {
      await door[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Frees the slot as soon as the page is closed, or after a short wait; closing continues in the background. */
  function leave(chromium: Chromium, opening: Promise<OpenPage>): void {
    const free = onceOnly(() => slots.free())
    const soon = setTimeout(free, CLOSE_MS_MAX)
    const late = setTimeout(() => chromium.retire('a page does not close'), STUCK_MS)
    const closed = opening
      .then((page) => page.close())
      .catch(() => {})
      .then(() => {
        clearTimeout(soon)
        clearTimeout(late)
        chromium.leave()
        closing.delete(closed)
        free()
      })
    closing.add(closed)
  }

  async function visitIn(chromium: Chromium, request: Request, signal: AbortSignal, identity: Identity | undefined) {
    const { url } = request
    const opening = openIn(chromium, request, identity)
    const close = onceOnly(() => {
      open.delete(close)
      leave(chromium, opening)
    })
    open.add(close)
    const deadline = new Deadline(url, settings.timeoutMs, signal)
    try {
      if (signal.aborted) throw signal.reason
      await deadline.exclude(chromium.ready) // the time to start a browser is not charged to the page
      if (deadline.failure !== undefined) throw deadline.failure.reason
      const page = await deadline.race(opening)
      const answer = await visit({ request, page, deadline, settings })
      return withLive(answer, livePage(page, { ...settings, url: answer.url }), close)
    } catch (error) {
      close()
      throw error
    } finally {
      deadline.end()
    }
  }

  return {
    async visit(request, signal, identity) {
      checkUrl(request.url)
      await slots.take(signal)
      let chromium: Chromium
      try {
        chromium = await roomInBrowser()
      } catch (error) {
        slots.free()
        throw error
      }
      return await visitIn(chromium, request, signal, identity)
    },
    get slots() {
      return slots.size
    },
    get busy() {
      return slots.busy
    },
    get browsers() {
      return browsers.size
    },
    resize: (size) => slots.resize(size),
    onFree: (listener) => slots.onFree(listener),
    async [Symbol.asyncDispose]() {
      isDisposed = true
      clearInterval(watcher)
      slots.close(closedError())
      for (const browser of browsers) browser.kill('closed', 'the pool is closed')
      for (const close of open) close()
      await Promise.all([...browsers].map((browser) => browser.gone))
      await Promise.all(closing)
      await (await closedProxy)?.[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true, maxRetries: 3, retryDelay: 50 })
    },
  }
}

function checkUrl(url: string): void {
  if (url.length > URL_BYTES_MAX) throw new ScrapeError('E_URL_INVALID', `a URL of ${url.length} bytes`, { url })
  if (!/^https?:\/\//i.test(url)) throw new ScrapeError('E_URL_SCHEME', `not a page of the web: ${url}`, { url })
  if (URL.parse(url) === null) throw new ScrapeError('E_URL_INVALID', `not a URL: ${url}`, { url })
}

function closedError(): ScrapeError {
  return new ScrapeError('E_CONNECTION', 'the browsers are closed')
}

function onceOnly(work: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    work()
  }
}
