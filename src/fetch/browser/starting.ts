/**
 * Signs that a page is about to download something: Chromium reports a download only when its first bytes have arrived.
 *
 *   navigation requested ──▶ under way ──▶ committed: a document · failed: nothing · cancelled after a response: a download
 *   window opened ──▶ a download from it · closed · some time has passed
 */
import type { CDPSession, Page as DriverPage } from 'puppeteer-core'

/** Frames load all the time and windows may stay open; only the page itself is waited for longer. */
const SIGN_MS_MAX = 1000
/** Commands that a handler can use to start a download. */
const TOUCHES = /^(?:Input\.|Runtime\.(?:evaluate|callFunctionOn)$)/

interface Navigation {
  isMain: boolean
  startedAtMs: number
  status: number
}

export class Starting {
  handedOverAtMs = Number.NEGATIVE_INFINITY
  /** When the handler last did something to the page. */
  touchedAtMs = Number.NEGATIVE_INFINITY
  /** By the ID of the request, which becomes the ID of the document. */
  readonly #navigations = new Map<string, Navigation>()
  readonly #windows = new Map<string, number>()
  /** When a navigation last ended the way navigations that become downloads do. */
  #givenUpAtMs = Number.NEGATIVE_INFINITY
  readonly #client: CDPSession
  /** The driver's original method, without our hook. */
  readonly #send: CDPSession['send']

  constructor(driver: DriverPage) {
    const client = (driver as unknown as { _client(): CDPSession })._client()
    this.#client = client
    this.#send = client.send.bind(client)
    const mainId = (driver.mainFrame() as unknown as { _id: string })._id
    client.on('Network.requestWillBeSent', ({ requestId, loaderId, frameId, type }) => {
      if (type !== 'Document' || requestId !== loaderId) return
      this.#navigations.set(requestId, { isMain: frameId === mainId, startedAtMs: performance.now(), status: 0 })
    })
    client.on('Network.responseReceived', ({ requestId, response }) => {
      const navigation = this.#navigations.get(requestId)
      if (navigation !== undefined) navigation.status = response.status
    })
    client.on('Network.loadingFailed', ({ requestId, canceled }) => {
      const status = this.#navigations.get(requestId)?.status ?? 0
      this.#navigations.delete(requestId)
      if (canceled === true && status >= 200 && status !== 204 && status !== 205) this.#givenUpAtMs = performance.now()
    })
    client.on('Network.loadingFinished', ({ requestId }) => void this.#navigations.delete(requestId))
    client.on('Page.frameNavigated', ({ frame }) => void this.#navigations.delete(frame.loaderId))
  }

  /** A download may begin until then; `-Infinity` if there is no sign of one. */
  get expectedUntilMs(): number {
    let untilMs = this.#givenUpAtMs + SIGN_MS_MAX
    for (const { isMain, startedAtMs } of this.#navigations.values()) {
      untilMs = Math.max(untilMs, isMain ? Number.POSITIVE_INFINITY : startedAtMs + SIGN_MS_MAX)
    }
    for (const openedAtMs of this.#windows.values()) untilMs = Math.max(untilMs, openedAtMs + SIGN_MS_MAX)
    return untilMs
  }

  handOver(): void {
    this.handedOverAtMs = performance.now()
    this.#client.send = (async (...command: Parameters<CDPSession['send']>) => {
      const isTouch = TOUCHES.test(command[0])
      if (isTouch) this.touchedAtMs = performance.now()
      try {
        return await this.#send(...command)
      } finally {
        if (isTouch) this.touchedAtMs = performance.now() // a click waits for the navigation it starts
      }
    }) as CDPSession['send']
  }

  /** A round trip to the page: all earlier events arrive before the answer. Waits at most `msMax` for a busy page. */
  async ask(msMax: number): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, msMax)
    const answer = this.#send('Runtime.evaluate', { expression: '0' }).catch(() => {})
    await Promise.race([answer, late])
    clearTimeout(timer)
  }

  onWindow(targetId: string): void {
    this.#windows.set(targetId, performance.now())
  }

  onWindowClosed(targetId: string): void {
    if (this.#windows.delete(targetId)) this.touchedAtMs = performance.now()
  }

  /** A window's target ID is the ID of its frame. */
  onBegin(frameId: string): void {
    this.#windows.delete(frameId)
    this.#givenUpAtMs = Number.NEGATIVE_INFINITY
  }
}
