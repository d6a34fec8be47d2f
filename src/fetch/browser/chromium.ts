/**
 * One running browser and its health.
 *
 *   launching ──▶ open ──retire()──▶ retiring ──last page closed──▶ gone
 *       └──────────┴──── crashed · hung · pool disposed ──────────────▲
 */
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import type { Browser } from 'puppeteer-core'
import { ScrapeError, toScrapeError } from '../../core/errors.ts'
import type { EventOf } from '../../core/events.ts'
import { DownloadRouter } from './downloads.ts'
import { type LaunchOptions, launchChromium } from './launch.ts'
import type { Settings } from './options.ts'
import { isRenderer, killProcess, killTree, memoryOf, sumOf, treeOf } from './processes.ts'

type Happening = EventOf<'browser'>['what']

export class Chromium {
  /** Rejects with `E_BROWSER_MISSING`, `E_BROWSER_LAUNCH`, `E_BROWSER_CRASHED`. */
  readonly ready: Promise<Browser>
  /** Resolves when none of its processes and files are left. */
  readonly gone: Promise<void>
  pid: number | undefined
  /** Pages being opened, open, or being closed. */
  open = 0
  idleSinceMs: number
  retireReason: string | undefined
  isGone = false
  /** Set once it is ready. */
  downloads: DownloadRouter | undefined
  #opened = 0
  #isLaunching = true
  #browser: Browser | undefined
  #end!: () => void
  #pingedAtMs: number | undefined
  readonly #settings: Settings
  readonly #folder: string
  readonly #bornAtMs: number
  readonly #onGone = new Set<(error: ScrapeError) => void>()

  constructor(options: LaunchOptions) {
    this.#settings = options.settings
    this.#folder = options.folder
    this.#bornAtMs = this.idleSinceMs = performance.now()
    this.gone = new Promise((resolve) => {
      this.#end = resolve
    })
    this.ready = this.#launch(options)
    this.ready.catch(() => {}) // callers that await it get the error; there may be none
  }

  get isUsable(): boolean {
    return !this.isGone && this.retireReason === undefined
  }

  /** Counts a page that is opened; `leave` counts it out when it is closed. */
  enter(): void {
    this.open++
    if (++this.#opened >= this.#settings.pagesPerBrowserMax) this.retire(`${this.#opened} pages`)
  }

  leave(): void {
    this.open--
    this.idleSinceMs = performance.now()
    if (this.open === 0 && this.retireReason !== undefined) this.kill('recycled', this.retireReason)
  }

  /** Accepts no more pages; the browser ends with its last one. */
  retire(reason: string): void {
    this.retireReason ??= reason
    if (this.open === 0) this.kill('recycled', this.retireReason)
  }

  /** Called once if the browser ends while its pages are open. Returns a function that stops listening. */
  onGone(listener: (error: ScrapeError) => void): () => void {
    this.#onGone.add(listener)
    return () => this.#onGone.delete(listener)
  }

  /** Kills all of its processes at once: a throwaway profile needs no orderly shutdown. */
  kill(what: Happening, reason: string): void {
    if (this.isGone) return
    this.isGone = true
    this.#tell(what, reason)
    const error = new ScrapeError('E_BROWSER_CRASHED', `the browser is gone: ${reason}`)
    for (const listener of this.#onGone) listener(error)
    this.#onGone.clear()
    if (!this.#isLaunching) void this.#cleanUp()
  }

  /** Checks every `watchMs` that the browser responds and stays within its limits. */
  watch(nowMs: number): void {
    // A ping without a session would never be answered: a slow start used to look like a hung browser.
    if (this.isGone || this.#isLaunching || this.pid === undefined) return
    this.#ping(nowMs)
    const processes = memoryOf(treeOf(this.pid))
    for (const { pid, bytes } of processes) {
      // Only the page that uses too much memory dies: contexts do not share renderer processes.
      if (bytes > this.#settings.pageBytesMax && isRenderer(pid)) killProcess(pid)
    }
    const bytes = sumOf(processes)
    if (bytes > this.#settings.browserBytesMax) this.retire(`${Math.round(bytes / 1024 ** 2)} MB of memory`)
    const ageMs = nowMs - this.#bornAtMs
    if (ageMs > this.#settings.browserAgeMsMax) this.retire(`${Math.round(ageMs / 1000)} s old`)
  }

  #ping(nowMs: number): void {
    if (this.#pingedAtMs === undefined) {
      this.#pingedAtMs = nowMs
      const answered = () => {
        this.#pingedAtMs = undefined
      }
      this.downloads?.session.send('Browser.getVersion').then(answered, answered) // `browser.version()` caches its answer
    } else if (nowMs - this.#pingedAtMs > this.#settings.hangMsMax) {
      this.kill('hung', `no answer for ${Math.round(nowMs - this.#pingedAtMs)} ms`)
    }
  }

  async #launch(options: LaunchOptions): Promise<Browser> {
    try {
      const { browser, pid, reason } = await launchChromium(options)
      this.#browser = browser
      this.pid = pid
      this.downloads = new DownloadRouter(await browser.target().createCDPSession())
      await this.downloads.start()
      if (this.isGone) throw new ScrapeError('E_BROWSER_CRASHED', 'the browser was stopped while it started')
      browser.on('disconnected', () => this.kill('crashed', 'its process ended'))
      this.#tell('launched', reason)
      return browser
    } catch (error) {
      this.isGone = true
      await this.#cleanUp()
      throw toScrapeError(error, 'E_BROWSER_LAUNCH')
    } finally {
      this.#isLaunching = false
    }
  }

  async #cleanUp(): Promise<void> {
    const child = this.#browser?.process()
    if (this.pid !== undefined) killTree(this.pid)
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    // A process of the group may still write a file while the folder is being removed.
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }).catch(() => {})
    this.#end()
  }

  #tell(what: Happening, reason: string): void {
    this.#settings.events?.emit({ type: 'browser', what, reason, pid: this.pid })
  }
}
