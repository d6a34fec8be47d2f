/**
 * One running browser and what is known of its health.
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
  /** Resolves when no process and no file of it is left. */
  readonly gone: Promise<void>
  pid: number | undefined
  /** Pages being opened, open, or being closed. */
  open = 0
  idleSinceMs: number
  retireReason: string | undefined
  isGone = false
  /** There once it is ready. */
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
    this.ready.catch(() => {}) // whoever waits for it is told; nobody may wait
  }

  get isUsable(): boolean {
    return !this.isGone && this.retireReason === undefined
  }

  /** Counts a page in; `leave` when it is closed. */
  enter(): void {
    this.open++
    if (++this.#opened >= this.#settings.pagesPerBrowserMax) this.retire(`${this.#opened} pages`)
  }

  leave(): void {
    this.open--
    this.idleSinceMs = performance.now()
    if (this.open === 0 && this.retireReason !== undefined) this.kill('recycled', this.retireReason)
  }

  /** No more pages; it ends with the last one. */
  retire(reason: string): void {
    this.retireReason ??= reason
    if (this.open === 0) this.kill('recycled', this.retireReason)
  }

  /** Called once when the browser ends under its pages. Returns how to stop listening. */
  onGone(listener: (error: ScrapeError) => void): () => void {
    this.#onGone.add(listener)
    return () => this.#onGone.delete(listener)
  }

  /** All its processes, at once: a profile that is thrown away needs no orderly end. */
  kill(what: Happening, reason: string): void {
    if (this.isGone) return
    this.isGone = true
    this.#tell(what, reason)
    const error = new ScrapeError('E_BROWSER_CRASHED', `the browser is gone: ${reason}`)
    for (const listener of this.#onGone) listener(error)
    this.#onGone.clear()
    if (!this.#isLaunching) void this.#cleanUp()
  }

  /** Is it alive, and within its limits? Looked at every `watchMs`. */
  watch(nowMs: number): void {
    // A ping before there is a session would never be answered: a slow start looked like a hung browser.
    if (this.isGone || this.#isLaunching || this.pid === undefined) return
    this.#ping(nowMs)
    const processes = memoryOf(treeOf(this.pid))
    for (const { pid, bytes } of processes) {
      // Only the page that eats memory dies: its process is no other context's.
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
      this.downloads?.session.send('Browser.getVersion').then(answered, answered) // `browser.version()` remembers its answer
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
    // A process of the group may write its last file while the folder is being removed.
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }).catch(() => {})
    this.#end()
  }

  #tell(what: Happening, reason: string): void {
    const pid = this.pid === undefined ? {} : { pid: this.pid }
    this.#settings.events?.emit({ type: 'browser', what, reason, ...pid })
  }
}
