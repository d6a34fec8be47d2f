/**
 * Signs that a page is about to download something: Chromium tells of a download when its first bytes are there.
 *
 *   navigation asked for ──▶ under way ──▶ committed: a document · failed: nothing · given up with an answer: a download is coming
 *   window opened ──▶ a download from it · closed · some time has passed
 */
import type { CDPSession, Page as DriverPage } from 'puppeteer-core'

/** Frames load all the time, windows open for good; only the page itself is waited for longer. */
const SIGN_MS_MAX = 1000
/** Commands with which a handler can start a download. */
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
  /** By the identifier of its request, which becomes that of its document. */
  readonly #navigations = new Map<string, Navigation>()
  readonly #windows = new Map<string, number>()
  /** A navigation ended as those do that become downloads. */
  #givenUpAtMs = Number.NEGATIVE_INFINITY
  readonly #client: CDPSession
  /** As the driver made it, without a look at what is sent. */
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

  /** A download may begin until then; `-Infinity` when nothing speaks for one. */
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

  /** A round trip to the page: what it did before is told before the answer. A page that is too busy to answer has its time. */
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

  /** The identifier of a window is that of its frame. */
  onBegin(frameId: string): void {
    this.#windows.delete(frameId)
    this.#givenUpAtMs = Number.NEGATIVE_INFINITY
  }
}
