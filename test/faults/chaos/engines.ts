/** The engines that a fault schedule runs on, each with its own servers behind a proxy that can cut connections. */
import { type GarblingProxy, garblingProxy } from '../../services/garbling-proxy.ts'
import { startPostgres } from '../../services/postgres.ts'
import { startRabbit } from '../../services/rabbitmq.ts'
import { startRedis } from '../../services/redis.ts'

export interface FaultyServer {
  name: string
  crash(): Promise<void>
  start(): Promise<void>
  cut(): void
}

export interface ChaosPlace extends AsyncDisposable {
  frontier: string
  servers: FaultyServer[]
}

interface Owned extends AsyncDisposable {
  readonly url: string
  readonly port: number
  start(): Promise<void>
}

async function behindProxy<T extends Owned>(
  parts: AsyncDisposableStack,
  { name, owned, crash }: { name: string; owned: T; crash: (owned: T) => Promise<void> },
) {
  parts.use(owned)
  const proxy: GarblingProxy = parts.use(await garblingProxy(owned.port))
  const url = new URL(owned.url)
  url.port = String(proxy.port)
  const server: FaultyServer = {
    name,
    crash: () => crash(owned),
    start: () => owned.start(),
    cut: () => proxy.cut(),
  }
  return { url: url.href, server }
}

const killed = (owned: { stop(signal: 'SIGKILL'): Promise<void> }) => owned.stop('SIGKILL')

/** Each keeps its data over a crash: appendonly, durable queues, fsync. */
export const FLEET_ENGINES = {
  async postgres(): Promise<ChaosPlace> {
    const parts = new AsyncDisposableStack()
    const { url, server } = await behindProxy(parts, {
      name: 'PostgreSQL',
      owned: await startPostgres(),
      crash: (owned) => owned.stop('immediate'),
    })
    return { frontier: url, servers: [server], [Symbol.asyncDispose]: () => parts.disposeAsync() }
  },
  async redis(): Promise<ChaosPlace> {
    const parts = new AsyncDisposableStack()
    const settings = ['--appendfsync', 'always']
    const { url, server } = await behindProxy(parts, {
      name: 'Redis',
      owned: await startRedis({ settings }),
      crash: killed,
    })
    return { frontier: url, servers: [server], [Symbol.asyncDispose]: () => parts.disposeAsync() }
  },
  async amqp(): Promise<ChaosPlace> {
    const parts = new AsyncDisposableStack()
    const settings = ['--appendfsync', 'always']
    const redis = await behindProxy(parts, { name: 'Redis', owned: await startRedis({ settings }), crash: killed })
    const broker = await behindProxy(parts, { name: 'RabbitMQ', owned: await startRabbit(), crash: killed })
    const frontier = `${broker.url}?redis=${encodeURIComponent(redis.url)}`
    return { frontier, servers: [broker.server, redis.server], [Symbol.asyncDispose]: () => parts.disposeAsync() }
  },
} as const

export type FleetEngine = keyof typeof FLEET_ENGINES
