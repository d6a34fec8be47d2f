/** `--tor`: a Tor daemon of the worker's own, and another way out whenever a site turns us away. */
import { ERRORS } from '../core/error-table.ts'
import type { EventBus } from '../core/events.ts'

/** Tor needs a moment to find its way in; where it finds none in this time, there is none. */
const BOOTSTRAP_MS_MAX = 120_000
/** Tor itself makes no more than one new circuit in 10 s. */
const ROTATE_EVERY_MS = 10_000

export interface OwnTor extends AsyncDisposable {
  readonly proxy: string
}

export async function openOwnTor(workerId: string, bus: EventBus, stop: AbortSignal): Promise<OwnTor> {
  const { openTor } = await import('../fetch/tor.ts')
  const tor = await openTor()
  const say = (level: 'info' | 'warn', message: string) => bus.emit({ type: 'log', level, message })
  try {
    say('info', `Tor ${tor.pid} listens at ${tor.socksUrl}; waiting for its way into the network`)
    await tor.bootstrapped({ timeoutMs: BOOTSTRAP_MS_MAX, signal: stop })
  } catch (error) {
    await tor[Symbol.asyncDispose]()
    throw error
  }
  let rotatedAtMs = 0
  const unlisten = bus.on((event) => {
    if (event.type !== 'page' || event.error === undefined || ERRORS[event.error.code].verdict !== 'rotate') return
    const nowMs = performance.now()
    if (rotatedAtMs > 0 && nowMs - rotatedAtMs < ROTATE_EVERY_MS) return
    rotatedAtMs = nowMs
    say('info', `${event.host} turned us away (${event.error.code}): new circuit`)
    tor.newCircuit().catch((error: Error) => say('warn', `no new circuit: ${error.message}`))
  })
  return {
    proxy: tor.socksUrlFor(workerId),
    async [Symbol.asyncDispose]() {
      unlisten()
      await tor[Symbol.asyncDispose]()
    },
  }
}
