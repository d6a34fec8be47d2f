/** Long-running responses: limits how many a caller may have, and ends them when the caller loses access. */
import type { ServerResponse } from 'node:http'
import { tooMany } from './caller.ts'

/** Event streams per caller. A browser needs one, however many tabs it has. */
export const EVENT_STREAMS_MAX = 50
/** Together with the age of the cached keys (two seconds), this is below the 5 s after which a revoked key must not work. */
export const LOOK_EVERY_MS = 2_000
/** Retry-After: there is no way to know when a stream will be free. */
const WAIT_MS = 5_000

interface Stream {
  scope: string
  /** Event streams are counted; other responses end by themselves. */
  isCounted: boolean
  isStillAllowed(): Promise<boolean>
}

export class OpenStreams {
  readonly #open = new Map<ServerResponse, Stream>()
  #timer: NodeJS.Timeout | undefined

  /** Tracked until the response is closed. Throws 429. */
  add(response: ServerResponse, stream: Stream): void {
    const isSame = (other: Stream) => other.isCounted && other.scope === stream.scope
    if (stream.isCounted && [...this.#open.values()].filter(isSame).length >= EVENT_STREAMS_MAX)
      throw tooMany(WAIT_MS, `the limit of ${EVENT_STREAMS_MAX} open event streams per caller is reached`)
    if (response.closed) return
    this.#open.set(response, stream)
    response.once('close', () => this.#remove(response))
    this.#timer ??= setInterval(() => void this.look(), LOOK_EVERY_MS).unref()
  }

  /** Cuts off callers that have lost access. Not a clean end: half a list of items must not look complete. */
  async look(): Promise<void> {
    const looks = [...this.#open].map(async ([response, { isStillAllowed }]) => {
      // An unreachable store revokes nothing.
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
