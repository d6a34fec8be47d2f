/** `--tor`: a Tor daemon of the worker's own, and as many ways out of it as are asked for. */
import type { EventBus } from '../../core/events.ts'
import type { Rotation } from '../run/rotation.ts'

/** Tor needs a moment to find its way in; where it finds none in this time, there is none. */
const BOOTSTRAP_MS_MAX = 120_000

interface OwnTor extends Rotation, AsyncDisposable {
  /** The first way out. `next()` gives others: a new user name for Tor, and with it circuits nobody used before. */
  readonly proxy: string
}

export async function openOwnTor(workerId: string, bus: EventBus, stop: AbortSignal): Promise<OwnTor> {
  const { openTor } = await import('../../fetch/identity/tor.ts')
  const tor = await openTor()
  const say = (level: 'info' | 'warn', message: string) => bus.emit({ type: 'log', level, message })
  try {
    say('info', `Tor ${tor.pid} listens at ${tor.socksUrl}; waiting for its way into the network`)
    await tor.bootstrapped({ timeoutMs: BOOTSTRAP_MS_MAX, signal: stop })
  } catch (error) {
    await tor[Symbol.asyncDispose]()
    throw error
  }
  let rotations = 0
  return {
    proxy: tor.socksUrlFor(`${workerId}-${rotations}`),
    next() {
      // The name alone keeps circuits apart (IsolateSOCKSAuth); the signal makes Tor forget the addresses it looked up, too.
      tor.newCircuit().catch((error: Error) => say('warn', `Tor keeps its circuits: ${error.message}`))
      return tor.socksUrlFor(`${workerId}-${++rotations}`)
    },
    [Symbol.asyncDispose]: () => tor[Symbol.asyncDispose](),
  }
}
