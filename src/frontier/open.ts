/** Opens a frontier by its URL. An engine's code is loaded only when its scheme is used. */
import { ENGINE_SCHEMES, type Engine, type EngineUrl, parseEngineUrl } from '../core/engine-url.ts'
import { ScrapeError } from '../core/errors.ts'
import { assertInstalled } from '../core/optional-package.ts'
import type { Frontier, FrontierOptions } from './contract.ts'

interface OpenOptions extends FrontierOptions {
  /** Where the ledger of an `amqp:` frontier is (`redis://…`); other engines ignore it. Also possible as `?redis=` in its URL. */
  redisUrl?: string
  /** When a message of an `amqp:` frontier expires, if earlier than its queue says; other engines ignore it. */
  messageTtlMs?: (message: { url: string }) => number | undefined
}

type Open = (place: EngineUrl, options: OpenOptions) => Promise<Frontier>

const ENGINES: Record<Engine, Open> = {
  memory: async (_url, options) => (await import('./memory/engine.ts')).openMemoryFrontier(options),
  sqlite: async (url, options) => (await import('./sqlite/engine.ts')).openSqliteFrontier(pathOf(url), options),
  postgres: async ({ url }, options) => (await import('./postgres/engine.ts')).openPostgresFrontier(url, options),
  redis: async ({ url }, options) => (await import('./redis-streams/engine.ts')).openRedisStreamsFrontier(url, options),
  amqp: async ({ url }, options) => {
    assertInstalled('RabbitMQ needs', ['rabbitmq-client', 'ioredis'])
    return (await import('./rabbit/engine.ts')).openRabbitFrontier(url, options)
  },
}

/**
 * `memory:`, `sqlite:path` (also `sqlite:///absolute/path`), `postgres://user:password@host/database`,
 * `redis://user:password@host:port/number`, or `amqp://user:password@host/vhost?redis=redis://host`, optionally with `ack=` and
 * `expired=`.
 */
export async function openFrontier(url: string, options: OpenOptions = {}): Promise<Frontier> {
  const place = parseEngineUrl(url)
  const { scheme, engine } = place
  if (engine !== undefined) return ENGINES[engine](place, options)
  const known = Object.keys(ENGINE_SCHEMES).map((name) => `${name}:`)
  const what = scheme === undefined ? 'a frontier is named by a URL' : `no frontier engine for ${scheme}:`
  throw new ScrapeError('E_OPTION', what, {
    notes: [`known: ${known.join(' ')}`],
    fix: 'Use sqlite:PATH for a durable run on one machine, postgres://… for several, or memory: for a try.',
  })
}

function pathOf({ path }: EngineUrl): string {
  if (path !== undefined) return path
  throw new ScrapeError('E_OPTION', 'sqlite: needs a path', { fix: 'For example sqlite:runs/books/frontier.db' })
}
