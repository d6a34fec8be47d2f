/** Whether a server can be worked with: logs in as a run would do it, and out again. */
const ANSWER_MS_MAX = 5_000

const LOG_IN: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  postgres,
  postgresql: postgres,
  redis,
  rediss: redis,
  amqp,
  amqps: amqp,
}

/** False for files and memory. */
export const isServer = (url: string) => Object.hasOwn(LOG_IN, schemeOf(url))

/** Throws what a run would say. */
export async function logIn(url: string): Promise<void> {
  await LOG_IN[schemeOf(url)]?.(url)
}

const schemeOf = (url: string) => url.slice(0, url.indexOf(':'))

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
