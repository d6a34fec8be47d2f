/** Opens a frontier by its URL. The engine's code is loaded only when its scheme is asked for. */
import { ScrapeError } from '../core/errors.ts'
import type { Frontier, FrontierOptions } from './contract.ts'

export interface OpenOptions extends FrontierOptions {
  /** Where the ledger of an `amqp:` frontier is (`redis://…`); other engines ignore it. Also as `?redis=` of its URL. */
  redisUrl?: string
  /** After how long a message of an `amqp:` frontier expires, if before its queue says so; other engines ignore it. */
  messageTtlMs?: (message: { url: string }) => number | undefined
}

type Open = (url: string, options: OpenOptions) => Promise<Frontier>

const ENGINES: Record<string, Open> = {
  memory: async (_url, options) => (await import('./memory/engine.ts')).openMemoryFrontier(options),
  sqlite: async (url, options) => (await import('./sqlite/engine.ts')).openSqliteFrontier(pathOf(url), options),
  postgres: openPostgres,
  postgresql: openPostgres,
  amqp: openRabbit,
  amqps: openRabbit,
  redis: openRedis,
  rediss: openRedis,
}

async function openPostgres(url: string, options: FrontierOptions): Promise<Frontier> {
  return (await import('./postgres/engine.ts')).openPostgresFrontier(url, options)
}

async function openRabbit(url: string, options: OpenOptions): Promise<Frontier> {
  return (await import('./rabbit/engine.ts')).openRabbitFrontier(url, options)
}

async function openRedis(url: string, options: FrontierOptions): Promise<Frontier> {
  return (await import('./redis-streams/engine.ts')).openRedisStreamsFrontier(url, options)
}

/**
 * `memory:`, `sqlite:path` (`sqlite:///absolute/path` too), `postgres://user:password@host/database`,
 * `redis://user:password@host:port/number`, or `amqp://user:password@host/vhost?redis=redis://host`, which may also say `ack=` and
 * `expired=`.
 */
export async function openFrontier(url: string, options: OpenOptions = {}): Promise<Frontier> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase()
  const open = scheme === undefined ? undefined : ENGINES[scheme]
  if (open !== undefined) return open(url, options)
  const known = Object.keys(ENGINES).map((name) => `${name}:`)
  const what = scheme === undefined ? 'a frontier is named by a URL' : `no frontier engine for ${scheme}:`
  throw new ScrapeError('E_OPTION', what, {
    notes: [`known: ${known.join(' ')}`],
    fix: 'Use sqlite:PATH for a durable run on one machine, postgres://… for several, or memory: for a try.',
  })
}

function pathOf(url: string): string {
  const path = url.slice('sqlite:'.length).replace(/^\/\//, '')
  if (path !== '') return path
  throw new ScrapeError('E_OPTION', 'sqlite: needs a path', { fix: 'For example sqlite:runs/books/frontier.db' })
}
