/** The `redis:` engine: the ledger in Redis, with Redis Streams delivering its tasks to the workers. */
import type { Frontier } from '../contract.ts'
import { LedgerFrontier, openLedger, type RedisFrontierOptions } from '../redis/engine.ts'
import { Link } from '../redis/link.ts'
import { tidyConsumers } from './consumers.ts'
import { type StreamsTransportOptions, streamsTransport } from './transport.ts'

export interface RedisStreamsOptions extends RedisFrontierOptions, StreamsTransportOptions {}

/** `redis://user:password@host:port/number`, or `rediss://…` over TLS. */
export async function openRedisStreamsFrontier(url: string, options: RedisStreamsOptions = {}): Promise<Frontier> {
  const link = await openLedger(url, options)
  try {
    await tidyConsumers(link)
  } catch (error) {
    link.close()
    throw error
  }
  // It neither waits for an unreachable server nor reports one: the ledger's own connection does.
  const waiter = new Link(url, options.runId ?? 'default', { outageMs: 0 })
  const transport = streamsTransport({ link, waiter }, options)
  return new LedgerFrontier({ engine: 'redis:', link, transport, options })
}
