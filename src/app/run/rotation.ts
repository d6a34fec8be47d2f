/** Switches to another egress when a site blocks a worker. */
import { ERRORS } from '../../core/error-table.ts'
import type { EventBus } from '../../core/events.ts'
import type { Fetching } from './fetching.ts'

/**
 * Responses to requests sent the old way keep arriving for a while and must not trigger again; nor does Tor build circuits more
 * often.
 */
const ROTATE_MS_MIN = 10_000

export interface Rotation {
  /** The proxy URL to continue with: another proxy, or another user of the same one. Must not block. */
  next(): string
}

const monotonicMs = () => performance.now()

interface RefusalParts {
  bus: EventBus
  fetching: Pick<Fetching, 'rotate'>
  rotation: Rotation
  /** Milliseconds of a monotonic clock. */
  now?: () => number
}

/** Listens until disposed of: an error with the verdict 'rotate' moves the following pages to the next egress. */
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
      // A listener must not throw, and the old egress still works.
      bus.emit({ type: 'log', level: 'warn', message: `no other way out: ${(error as Error).message}` })
    }
  })
  return { [Symbol.dispose]: unlisten }
}
