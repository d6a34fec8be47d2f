/**
 * A page's downloads. Downloads that can be fetched by URL are cancelled and reported as links, for a file worker; downloads that
 * only this page can produce (`blob:`, `data:`, the response to a form) are kept in the visit's folder, under a name Chromium
 * chooses.
 */
import { mkdirSync } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { BrowserContext, CDPSession, Page as DriverPage, Protocol } from 'puppeteer-core'
import { ScrapeError } from '../../core/errors.ts'
import type { Download } from '../../core/page.ts'
import type { EgressProxy } from '../net/egress.ts'
import { Starting } from './starting.ts'

/** Further downloads are cancelled silently: no reasonable visit starts more. */
const DOWNLOADS_MAX = 50
const NAME_CHARS_MAX = 120
/** A download begins some time after the click that starts it. */
const GRACE_MS = 1000
/** After a handler's last action on the page, and after the latest download, the next one is reported within this time. */
const QUIET_MS = 500
/** `<a download>` emits no event before the download begins; only the egress proxy sees its request. */
const ASKING_MS_MAX = 2000
/** The egress proxy is polled: it emits no events. */
const LOOK_MS = 50

export interface DownloadLimits {
  folder: string
  bytesMax: number
  timeoutMs: number
  door: Pick<EgressProxy, 'isAsking'>
}

interface Kept {
  name: string
  state: 'coming' | 'done' | 'too-large' | 'failed'
}

/** Chromium reports all downloads of a browser in one place; the router assigns them to their pages. */
export class DownloadRouter {
  readonly session: CDPSession
  readonly pages = new Set<Downloads>()
  readonly #owners = new Map<string, Downloads>()

  constructor(session: CDPSession) {
    this.session = session
    session.on('Target.targetCreated', ({ targetInfo }) => {
      const owner = [...this.pages].find((page) => page.contextId === targetInfo.browserContextId)
      if (owner === undefined) return
      owner.targets.add(targetInfo.targetId)
      owner.starting.onWindow(targetInfo.targetId)
    })
    session.on('Target.targetDestroyed', ({ targetId }) => {
      for (const page of this.pages) if (page.targets.has(targetId)) page.starting.onWindowClosed(targetId)
    })
    session.on('Browser.downloadWillBegin', (event) => {
      const owner = [...this.pages].find((page) => page.owns(event.frameId))
      if (owner === undefined) return
      this.#owners.set(event.guid, owner)
      owner.onBegin(event)
    })
    session.on('Browser.downloadProgress', (event) => {
      this.#owners.get(event.guid)?.onProgress(event)
      if (event.state !== 'inProgress') this.#owners.delete(event.guid)
    })
  }

  async start(): Promise<void> {
    // The driver reports a window only once it is set up; a window that was opened for a download is gone by then.
    await this.session.send('Target.setDiscoverTargets', { discover: true, filter: [{ type: 'page' }] })
  }
}

export class Downloads {
  /** Target IDs of the page and of the windows it opened. */
  readonly targets = new Set<string>()
  readonly starting: Starting
  readonly #router: DownloadRouter
  readonly #context: BrowserContext
  readonly #driver: DriverPage
  readonly #limits: DownloadLimits
  readonly #links: Download[] = []
  readonly #kept = new Map<string, Kept>()
  /** URLs of requests other than GET: their responses cannot be requested again. */
  readonly #posted = new Set<string>()
  #begun = 0
  #begunAtMs = Number.NEGATIVE_INFINITY
  #onChange: (() => void) | undefined

  constructor(router: DownloadRouter, driver: DriverPage, limits: DownloadLimits) {
    this.#router = router
    this.#driver = driver
    this.#context = driver.browserContext()
    this.#limits = limits
    this.starting = new Starting(driver)
    driver.on('request', (request) => {
      if (request.isNavigationRequest() && request.method() !== 'GET') this.#posted.add(request.url())
    })
  }

  get contextId(): string {
    return this.#context.id!
  }

  async start(): Promise<void> {
    this.#router.pages.add(this)
    await this.#router.session.send('Browser.setDownloadBehavior', {
      behavior: 'allowAndName',
      downloadPath: this.#limits.folder,
      eventsEnabled: true,
      browserContextId: this.contextId,
    })
  }

  /** A frame of the page, or of a window it opened. */
  owns(frameId: string): boolean {
    if (this.targets.has(frameId)) return true
    return this.#driver.frames().some((frame) => (frame as unknown as { _id: string })._id === frameId)
  }

  /** Whether a download begins; Chromium ends the navigation first and reports the reason some milliseconds later. */
  async begins(msMax = GRACE_MS): Promise<boolean> {
    if (this.#begun === 0) await this.#change(msMax)
    return this.#begun > 0
  }

  /** Throws `E_TOO_LARGE` or `E_TIMEOUT_BODY` for incomplete downloads. */
  async all(url: string): Promise<readonly Download[]> {
    const endsAtMs = performance.now() + this.#limits.timeoutMs
    await this.starting.ask(GRACE_MS)
    for (;;) {
      const waitMs = Math.min(
        this.#has('coming') ? Number.POSITIVE_INFINITY : this.#mayBeginMs(),
        endsAtMs - performance.now(),
      )
      if (waitMs <= 0) break
      await this.#change(Math.min(waitMs, LOOK_MS))
    }
    if (this.#has('coming')) throw new ScrapeError('E_TIMEOUT_BODY', 'a download does not end', { url })
    if (this.#has('too-large')) {
      throw new ScrapeError('E_TOO_LARGE', `a download is larger than ${this.#limits.bytesMax} bytes`, { url })
    }
    const kept = await Promise.all([...this.#kept].map(([guid, entry]) => this.#read(guid, entry)))
    return [...this.#links, ...kept.filter((entry) => entry !== undefined)]
  }

  /** Called when a handler gets the page: its actions may start downloads. */
  handOver(): void {
    this.starting.handOver()
  }

  /** How long to wait for a download that may be about to begin; 0 or less if there is no sign of one. */
  #mayBeginMs(): number {
    const { door } = this.#limits
    const { handedOverAtMs, touchedAtMs, expectedUntilMs } = this.starting
    const untilMs = Math.max(
      expectedUntilMs,
      touchedAtMs + QUIET_MS,
      this.#begunAtMs + QUIET_MS,
      door.isAsking ? Math.max(touchedAtMs + ASKING_MS_MAX, handedOverAtMs + GRACE_MS) : 0,
    )
    return untilMs - performance.now()
  }

  async remove(): Promise<void> {
    this.#onChange?.()
    this.#router.pages.delete(this)
    if (this.#begun > 0) await rm(this.#limits.folder, { recursive: true, force: true })
  }

  onBegin({ guid, url, suggestedFilename, frameId }: Protocol.Browser.DownloadWillBeginEvent): void {
    this.#begun++
    this.#begunAtMs = performance.now()
    this.starting.onBegin(frameId)
    const name = safeName(suggestedFilename)
    const isLink = /^https?:/.test(url) && !this.#posted.has(url)
    // The GUID becomes part of a path.
    if (this.#begun > DOWNLOADS_MAX || isLink || !/^[\w-]{1,64}$/.test(guid)) {
      if (isLink && this.#begun <= DOWNLOADS_MAX) this.#links.push({ kind: 'link', url, name })
      this.#cancel(guid)
    } else {
      mkdirSync(this.#limits.folder, { recursive: true, mode: 0o700 })
      this.#kept.set(guid, { name, state: 'coming' })
    }
    this.#onChange?.()
  }

  onProgress({ guid, receivedBytes, state }: Protocol.Browser.DownloadProgressEvent): void {
    const entry = this.#kept.get(guid)
    if (entry === undefined || entry.state !== 'coming') return
    if (receivedBytes > this.#limits.bytesMax) {
      entry.state = 'too-large'
      this.#cancel(guid)
    } else if (state === 'completed') entry.state = 'done'
    else if (state === 'canceled') entry.state = 'failed'
    this.#onChange?.()
  }

  #cancel(guid: string): void {
    const download = { guid, browserContextId: this.contextId }
    this.#router.session.send('Browser.cancelDownload', download).catch(() => {})
  }

  #has(state: Kept['state']): boolean {
    return this.#kept.values().some((entry) => entry.state === state)
  }

  async #read(guid: string, { name, state }: Kept): Promise<Download | undefined> {
    if (state !== 'done') return undefined
    const path = join(this.#limits.folder, guid)
    try {
      return { kind: 'kept', path, name, bytes: (await stat(path)).size }
    } catch {
      return undefined // moved away earlier
    }
  }

  #change(msMax: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(end, msMax)
      function end() {
        clearTimeout(timer)
        resolve()
      }
      this.#onChange = end
    })
  }
}

/** A name to show, and to append to a file's name; never a path. */
function safeName(suggested: string): string {
  const name = suggested.replace(/^.*[/\\]/, '').replace(/\p{C}/gu, '').slice(0, NAME_CHARS_MAX) // biome-ignore format: one chain
  return /^\.*$/.test(name) ? 'download' : name
}
