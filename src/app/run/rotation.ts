/** Other ways out, for when a site turns a worker away. */
import { ERRORS } from '../../core/error-table.ts'
import type { EventBus } from '../../core/events.ts'
import type { Fetching } from './fetching.ts'

/** Answers to what was sent the old way come for a while yet and are no news; nor does Tor make new circuits more often. */
const ROTATE_MS_MIN = 10_000

export interface Rotation {
  /** The proxy URL to go on with: another proxy, or another user of the same one. Must not block. */
  next(): string
}

const monotonicMs = () => performance.now()

interface RefusalParts {
  bus: EventBus
  fetching: Pick<Fetching, 'rotate'>
  rotation: Rotation
  /** Milliseconds of a clock that only goes forward. */
  now?: () => number
}

/** Listens until disposed of: an error whose verdict is 'rotate' makes the pages that follow take the next way out. */
export function rotateWhenRefused({ bus, fetching, rotation, now = monotonicMs }: RefusalParts): Disposable {
  let rotatedAtMs = Number.NEGATIVE_INFINITY
  const unlisten = bus.on((event) => {
    if (event.type !== 'page' || event.error === undefined || ERRORS[event.error.code].verdict !== 'rotate') return
    const nowMs = now()
    if (nowMs - rotatedAtMs < ROTATE_MS_MIN) return
    rotatedAtMs = nowMs
    try {
      fetching.rotate(rotation.next())
      const message = `${event.host}: ${event.error.code}; the next pages take another way out`
      bus.emit({ type: 'log', level: 'info', message })
    } catch (error) {
      // A listener must not throw, and the old way is still there.
      bus.emit({ type: 'log', level: 'warn', message: `no other way out: ${(error as Error).message}` })
    }
  })
  return { [Symbol.dispose]: unlisten }
}
