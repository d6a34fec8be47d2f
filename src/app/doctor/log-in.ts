/** Checks that a server is usable: logs in the way a run would, and out again. */
import { type Engine, parseEngineUrl } from '../../core/engine-url.ts'

const ANSWER_MS_MAX = 5_000

const LOG_IN: Readonly<Partial<Record<Engine, (url: string) => Promise<unknown>>>> = { postgres, redis, amqp }

/** Throws the error that a run would report. */
export async function logIn(given: string): Promise<void> {
  const { engine, url } = parseEngineUrl(given)
  if (engine !== undefined) await LOG_IN[engine]?.(url)
}

async function postgres(url: string): Promise<void> {
  const { Database } = await import('../../drivers/postgres/database.ts')
  const database = new Database(url, { connectionsMax: 1, outageMs: 0, queryMsMax: ANSWER_MS_MAX })
  await database.rows('select 1', []).finally(() => database.close())
}

async function redis(url: string): Promise<void> {
  const { Connection } = await import('../../drivers/redis/connection.ts')
  const connection = new Connection(url, { outageMs: 0, answerMsMax: ANSWER_MS_MAX })
  await connection.attempt(() => connection.redis.ping()).finally(() => connection.close())
}

async function amqp(url: string): Promise<void> {
  const { pingBroker } = await import('../../frontier/rabbit/broker.ts')
  await pingBroker(url)
}
