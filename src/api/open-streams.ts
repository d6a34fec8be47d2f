/** Answers that go on for long: how many one caller may have, and that they end when the caller may no longer have them. */
import type { ServerResponse } from 'node:http'
import { tooMany } from './caller.ts'

/** Event streams of one caller. A browser needs one, whatever the number of its tabs. */
export const EVENT_STREAMS_MAX = 50
/** With the age of what is known about keys (two seconds), below the 5 s after which a revoked key must be worth nothing. */
export const LOOK_EVERY_MS = 2_000
/** When a stream may be free again: nobody knows. */
const WAIT_MS = 5_000

export interface Stream {
  scope: string
  /** Event streams are counted; other answers end by themselves. */
  isCounted: boolean
  isStillAllowed(): Promise<boolean>
}

export class OpenStreams {
  readonly #open = new Map<ServerResponse, Stream>()
  #timer: NodeJS.Timeout | undefined

  /** Until the response is closed. Throws 429. */
  add(response: ServerResponse, stream: Stream): void {
    const isSame = (other: Stream) => other.isCounted && other.scope === stream.scope
    if (stream.isCounted && [...this.#open.values()].filter(isSame).length >= EVENT_STREAMS_MAX)
      throw tooMany(WAIT_MS, `the limit of ${EVENT_STREAMS_MAX} open event streams per caller is reached`)
    if (response.closed) return
    this.#open.set(response, stream)
    response.once('close', () => this.#remove(response))
    this.#timer ??= setInterval(() => void this.look(), LOOK_EVERY_MS).unref()
  }

  /** Cuts off whoever has lost the right to it. Not a tidy end: half a list of items must not look like a whole one. */
  async look(): Promise<void> {
    const looks = [...this.#open].map(async ([response, { isStillAllowed }]) => {
      // A store that is away revokes nothing.
      if (!(await isStillAllowed().catch(() => true))) response.destroy()
    })
    await Promise.all(looks)
  }

  #remove(response: ServerResponse): void {
    this.#open.delete(response)
    if (this.#open.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
