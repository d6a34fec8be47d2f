/** A page in its own browser context, with limits on what it may request and on what it may do endlessly. */
import type { BrowserContext, CDPSession, Page as DriverPage, Protocol, Target } from 'puppeteer-core'
import { ScrapeError } from '../../core/errors.ts'
import type { ResourceKind } from '../../core/scraper.ts'
import type { BrowserRequest } from '../contract.ts'
import type { Profile } from '../identity/profiles.ts'
import type { EgressProxy } from '../net/egress.ts'
import type { Chromium } from './chromium.ts'
import { type DownloadLimits, Downloads } from './downloads.ts'
import { messageOf } from './net-error.ts'
import { showProfile } from './show-profile.ts'
import { restoreState } from './storage-state.ts'

/** A visit that opens more windows or dialogs than this is treated as an attack. */
const POPUPS_MAX = 20
const POPUPS_PATIENT = 3
const POPUP_MS = 1000
const DIALOGS_MAX = 50
/** The driver's calls fail some time before the driver reports that their page, or its browser, has ended. */
const END_TOLD_MS_MAX = 500
/** Even a busy browser answers within milliseconds, as its pages run in separate processes. */
const ANSWER_MS_MAX = 2000
/** Driver messages for a page, frame, process or browser that disappeared during a call. */
const GONE =
  /Target(?: closed|CloseError| crashed)|(?:Session|Connection) closed|detached|Protocol error|Waiting for .* failed$/i

const RESOURCE_TYPES: Readonly<Record<ResourceKind, readonly Protocol.Network.ResourceType[]>> = {
  image: ['Image'],
  font: ['Font'],
  media: ['Media'],
  stylesheet: ['Stylesheet'],
  script: ['Script'],
  xhr: ['XHR', 'Fetch', 'EventSource'],
  websocket: [], // not seen by Fetch: see `blockWebSockets`
  other: ['Other', 'Ping', 'Prefetch', 'Manifest', 'CSPViolationReport', 'SignedExchange'],
}

/** Schemes a handler could navigate its page to. Pages cannot do so themselves: Chromium refuses. */
const FORBIDDEN =
  /^\s*(?:file|filesystem|chrome|chrome-[a-z]+|devtools|view-source|ftp|javascript):|^\s*about:(?!blank\b|srcdoc\b)/i

export interface OpenPage {
  readonly driver: DriverPage
  readonly context: BrowserContext
  readonly downloads: Downloads
  readonly door: EgressProxy
  /**
   * Refuses the resources that the request blocks, and local files. Interception slows down every request by a sixth, even those
   * it lets pass, so a visit that blocks nothing does without it: no page can navigate to `file:` by itself, and this is called
   * before a handler could make it do so.
   */
  guard(): Promise<void>
  /** Origins of all documents that the page and its frames have shown. */
  readonly origins: ReadonlySet<string>
  /** Why the page is no longer usable; undefined while it is. */
  readonly failure: ScrapeError | undefined
  /** The listener is called at once if the page has already failed. Returns a function that stops listening. */
  onFailure(listener: (error: ScrapeError) => void): () => void
  /** The page failure that made a driver call fail with `error`, if there is one; it may be reported shortly after the error. */
  failureBehind(error: unknown): Promise<ScrapeError | undefined>
  fail(error: ScrapeError): void
  /** Closes the page and everything that belongs to it. Never rejects. */
  close(): Promise<void>
}

interface PageNeeds {
  chromium: Chromium
  door: EgressProxy
  request: { url: string; headers?: Readonly<Record<string, string>>; browser: BrowserRequest }
  /** The browser profile to present. Undefined: our own. */
  profile: Profile | undefined
  downloads: Omit<DownloadLimits, 'door'>
}

export async function openPage(needs: PageNeeds): Promise<OpenPage> {
  const { chromium, door, request } = needs
  const browser = await chromium.ready
  let page: GuardedPage | undefined
  try {
    const context = await browser.createBrowserContext({
      proxyServer: door.proxyServer,
      proxyBypassList: ['<-loopback>'],
    })
    page = new GuardedPage(context, needs)
    await page.open()
    return page
  } catch (error) {
    await page?.close()
    throw new ScrapeError('E_BROWSER_CRASHED', `the browser opens no page: ${messageOf(error)}`, {
      url: request.url,
      cause: error,
    })
  }
}

class GuardedPage implements OpenPage {
  driver!: DriverPage
  downloads!: Downloads
  readonly context: BrowserContext
  readonly door: EgressProxy
  readonly origins = new Set<string>()
  failure: ScrapeError | undefined
  readonly #needs: PageNeeds
  readonly #stopListening: () => void
  readonly #listeners = new Set<(error: ScrapeError) => void>()
  #popups = 0
  #dialogs = 0
  #closing: Promise<void> | undefined
  #session: Promise<CDPSession> | undefined
  #guarded: Promise<void> | undefined

  constructor(context: BrowserContext, needs: PageNeeds) {
    this.context = context
    this.door = needs.door
    this.#needs = needs
    this.#stopListening = needs.chromium.onGone((error) => this.fail(error))
    context.on('targetcreated', (target) => this.#onTarget(target))
  }

  async open(): Promise<void> {
    const { request } = this.#needs
    this.driver = await this.context.newPage()
    const { driver } = this
    driver.setDefaultTimeout(0) // the visit has one deadline for everything; a handler sets its own
    driver.on('error', () => this.fail(this.#crash('its process crashed, perhaps for want of memory')))
    driver.on('close', () => this.fail(this.#crash('it closed itself')))
    driver.on('dialog', (dialog) => {
      if (++this.#dialogs > DIALOGS_MAX) this.fail(this.#flood(`${DIALOGS_MAX} dialogs`))
      else void (dialog.type() === 'beforeunload' ? dialog.accept() : dialog.dismiss()).catch(() => {})
    })
    driver.on('framenavigated', (frame) => {
      const { origin } = URL.parse(frame.url()) ?? { origin: 'null' }
      if (/^https?:/.test(origin)) this.origins.add(origin)
    })
    refuseForbidden(driver)
    this.#session = driver.createCDPSession()
    this.#session.catch(() => {}) // callers that await it get the error
    this.downloads = new Downloads(this.#needs.chromium.downloads!, driver, {
      ...this.#needs.downloads,
      door: this.door,
    })
    const { browser, headers } = request
    const { profile } = this.#needs
    await Promise.all([
      browser.block === undefined && headers === undefined ? undefined : this.guard(),
      this.downloads.start(),
      request.browser.block?.includes('websocket') ? blockWebSockets(driver) : undefined,
      request.browser.state === undefined ? undefined : restoreState(this, request.browser.state),
      profile === undefined ? undefined : this.#session.then((session) => showProfile(session, profile)),
      ...this.#ownHeaders(),
    ])
  }

  async guard(): Promise<void> {
    this.#guarded ??= this.#session!.then((session) => this.#guardRequests(session))
    await this.#guarded
  }

  onFailure(listener: (error: ScrapeError) => void): () => void {
    this.#listeners.add(listener)
    if (this.failure !== undefined) listener(this.failure)
    return () => this.#listeners.delete(listener)
  }

  async failureBehind(error: unknown): Promise<ScrapeError | undefined> {
    if (this.failure !== undefined) return this.failure
    const told = Promise.withResolvers<ScrapeError>()
    const stopListening = this.onFailure(told.resolve)
    try {
      const asking = this.#needs.chromium.downloads!.session.send('Browser.getVersion')
      const answer = asking.then(() => 'alive' as const, () => 'gone' as const) // biome-ignore format: one line reads better
      const state = await Promise.race([told.promise, answer, after(ANSWER_MS_MAX)])
      if (state instanceof ScrapeError) return state
      if (state === undefined) return this.#crash(`its browser did not answer for ${ANSWER_MS_MAX} ms`)
      if (state === 'alive' && !GONE.test(String(error))) return undefined
      const failure = await Promise.race([told.promise, after(END_TOLD_MS_MAX)])
      return failure ?? (state === 'gone' ? this.#crash('its browser is, too') : undefined)
    } finally {
      stopListening()
    }
  }

  fail(error: ScrapeError): void {
    if (this.failure !== undefined || this.#closing !== undefined) return
    this.failure = error
    for (const listener of this.#listeners) listener(error)
    // Pending calls of a handler fail now, and anything the page does endlessly stops.
    void quietly(this.context.close())
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.failure ??= this.#crash('it was released')
    this.#stopListening()
    this.door.shut()
    await this.context.close().catch(() => {})
    await Promise.all([this.downloads?.remove(), this.door[Symbol.asyncDispose]()])
  }

  /** Intercepts only what must be refused or changed: each intercepted request costs a round trip to us. */
  async #guardRequests(session: CDPSession): Promise<void> {
    const { url, headers, browser } = this.#needs.request
    const blocked = (browser.block ?? []).flatMap((kind) => RESOURCE_TYPES[kind])
    const own = Object.entries(headers ?? {}).filter(([name]) => name !== 'user-agent' && name !== 'cookie')
    const { origin } = new URL(url)
    session.on('Fetch.requestPaused', ({ requestId, request, resourceType }) => {
      const isBlocked = !/^https?:/.test(request.url) || blocked.includes(resourceType)
      if (isBlocked)
        return void quietly(session.send('Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' }))
      const all = { ...request.headers, ...Object.fromEntries(own) }
      const list = Object.entries(all).map(([name, value]) => ({ name, value: String(value) }))
      return void quietly(session.send('Fetch.continueRequest', { requestId, headers: list }))
    })
    const patterns: Protocol.Fetch.RequestPattern[] = [
      { urlPattern: 'file:*' },
      ...blocked.map((resourceType) => ({ urlPattern: '*', resourceType })),
      // Extra headers are only for their own origin; Chromium drops them on a redirect, and the next hop is intercepted again.
      ...(own.length === 0 ? [] : [{ urlPattern: `${origin}/*` }]),
    ]
    await session.send('Fetch.enable', { patterns })
    if (blocked.length === 0) return
    // Frames of other sites are separate targets.
    session.on('sessionattached', (child) => {
      void quietly(this.#guardRequests(child).finally(() => child.send('Runtime.runIfWaitingForDebugger')))
    })
    await session.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: true, flatten: true })
  }

  #ownHeaders(): Promise<unknown>[] {
    const { url, headers } = this.#needs.request
    const work: Promise<unknown>[] = []
    const userAgent = headers?.['user-agent']
    if (userAgent !== undefined) work.push(this.driver.setUserAgent({ userAgent }))
    const { hostname: domain, protocol } = new URL(url)
    const cookies = (headers?.['cookie'] ?? '').split(';').flatMap((pair) => {
      const [name, ...value] = pair.trim().split('=')
      if (name === undefined || name === '') return []
      return [{ name, value: value.join('='), domain, path: '/', secure: protocol === 'https:' }]
    })
    if (cookies.length > 0) work.push(this.context.setCookie(...cookies))
    return work
  }

  /** Closes windows that a page opens, the first ones after a delay: a link to a file opens one, which then closes itself. */
  #onTarget(target: Target): void {
    if (target.type() !== 'page' || target.opener() === undefined) return
    if (++this.#popups > POPUPS_MAX) {
      this.fail(this.#flood(`${POPUPS_MAX} windows`))
      return
    }
    const close = async () => {
      if (this.#closing === undefined) await (await target.page())?.close()
    }
    setTimeout(() => void quietly(close()), this.#popups <= POPUPS_PATIENT ? POPUP_MS : 0)
  }

  #crash(what: string): ScrapeError {
    return new ScrapeError('E_BROWSER_CRASHED', `the page is gone: ${what}`, { url: this.#needs.request.url })
  }

  #flood(what: string): ScrapeError {
    return new ScrapeError('E_BROWSER_FLOOD', `the page opened more than ${what}`, { url: this.#needs.request.url })
  }
}

/** Gives the handler a clear message; the actual protection is the interception of `file:`. */
function refuseForbidden(driver: DriverPage): void {
  const goto = driver.goto.bind(driver)
  driver.goto = async (url, options) => {
    if (FORBIDDEN.test(url))
      throw new ScrapeError('E_URL_SCHEME', `no page of a browser: ${url.slice(0, 200)}`, { url })
    return await goto(url, options)
  }
}

async function blockWebSockets(driver: DriverPage): Promise<void> {
  const fail = `globalThis.WebSocket = class WebSocket { constructor() { throw new DOMException('blocked', 'SecurityError') } }`
  await driver.evaluateOnNewDocument(fail)
}

/** The timer does not keep the process alive. */
export function after(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), ms).unref())
}

async function quietly(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch {
    // The page was closed in the meantime, so the call is no longer needed.
  }
}
