/** URLs that say where a queue, a store or a cache is kept: `sqlite:FILE`, `postgres://…`. */

export type Engine = 'memory' | 'sqlite' | 'postgres' | 'redis' | 'amqp'

export const ENGINE_SCHEMES: Readonly<Record<string, Engine>> = {
  memory: 'memory',
  sqlite: 'sqlite',
  postgres: 'postgres',
  postgresql: 'postgres',
  redis: 'redis',
  rediss: 'redis',
  amqp: 'amqp',
  amqps: 'amqp',
}

export interface EngineUrl {
  /** With the scheme in lower case; `sqlite` becomes `sqlite:`. */
  readonly url: string
  /** Without the colon; undefined if the text has none. */
  readonly scheme: string | undefined
  /** Undefined for an unknown scheme. */
  readonly engine: Engine | undefined
  /** The file of `sqlite:FILE` or `sqlite://FILE`; undefined for `sqlite:` alone and for all others. */
  readonly path: string | undefined
  /** A server that workers on several machines can share. */
  readonly isShared: boolean
  /** Its state is a ledger in Redis, with or without a message broker in front. */
  readonly hasLedger: boolean
}

export function parseEngineUrl(text: string): EngineUrl {
  const [, given, rest = ''] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(text) ?? (/^sqlite$/i.test(text) ? ['', text] : [])
  const scheme = given?.toLowerCase()
  const engine = scheme !== undefined && Object.hasOwn(ENGINE_SCHEMES, scheme) ? ENGINE_SCHEMES[scheme] : undefined
  const hasLedger = engine === 'amqp' || engine === 'redis'
  return {
    url: scheme === undefined ? text : `${scheme}:${rest}`,
    scheme,
    engine,
    path: engine === 'sqlite' ? rest.replace(/^\/\//, '') || undefined : undefined,
    isShared: hasLedger || engine === 'postgres',
    hasLedger,
  }
}
