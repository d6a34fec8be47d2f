/** `--tor`: the worker's own Tor daemon, with as many exits as requested. */
import type { EventBus } from '../../core/events.ts'
import type { Rotation } from '../run/rotation.ts'

/** Tor takes a while to connect; if it has not by then, the network blocks it. */
const BOOTSTRAP_MS_MAX = 120_000

interface OwnTor extends Rotation, AsyncDisposable {
  /** The first exit. `next()` returns others: each is a new user name for Tor, which means fresh circuits. */
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
      // A new name is enough to isolate circuits (IsolateSOCKSAuth); the signal also makes Tor forget the addresses it resolved.
      tor.newCircuit().catch((error: Error) => say('warn', `Tor keeps its circuits: ${error.message}`))
      return tor.socksUrlFor(`${workerId}-${++rotations}`)
    },
    [Symbol.asyncDispose]: () => tor[Symbol.asyncDispose](),
  }
}
