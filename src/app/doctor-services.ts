/** Servers and proxies that somebody named: each is logged in to, as a run would do it. */
import { ScrapeError } from '../core/errors.ts'
import { proxyName } from '../fetch/proxy.ts'
import { checkProxy } from '../fetch/proxy-check.ts'
import { redactText } from '../observe/redact.ts'
import type { Config } from './config.ts'
import { missing, ok, type Result, warn } from './finding.ts'
import { waysOf } from './run/ways.ts'

const CHECK_MS_MAX = 5_000
const PROXIES_NAMED_MAX = 5

type Check = [name: string, look: () => Promise<Result>]

export function serviceChecks({ values }: Config): Check[] {
  const proxies = waysOf(values).proxies.flat()
  const servers: [string, string | undefined][] = [
    ['frontier', values.frontier],
    ['store', values.store],
    ['redis', values.redis],
  ]
  const checks = servers.flatMap(([name, url]): Check[] => {
    const logIn = url === undefined ? undefined : LOG_IN[url.slice(0, url.indexOf(':'))]
    return logIn === undefined ? [] : [[name, () => answers(url!, logIn)]]
  })
  return proxies.length === 0 ? checks : [['proxies', () => proxiesAnswer(proxies)], ...checks]
}

const LOG_IN: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  postgres,
  postgresql: postgres,
  redis,
  rediss: redis,
  amqp,
  amqps: amqp,
}

async function answers(url: string, logIn: (url: string) => Promise<unknown>): Promise<Result> {
  const shown = redactText(url)
  try {
    await logIn(url)
    return ok(`${shown} answers`)
  } catch (error) {
    const fix = error instanceof ScrapeError ? error.details.fix : undefined
    return missing(`${shown} does not answer: ${(error as Error).message}`, fix ?? 'Start it, or correct its URL.')
  }
}

async function postgres(url: string): Promise<void> {
  const { Database } = await import('../postgres/database.ts')
  const database = new Database(url, { connectionsMax: 1, outageMs: 0, queryMsMax: CHECK_MS_MAX })
  await database.rows('select 1', []).finally(() => database.close())
}

async function redis(url: string): Promise<void> {
  const { Connection } = await import('../redis/connection.ts')
  const connection = new Connection(url, { outageMs: 0, answerMsMax: CHECK_MS_MAX })
  await connection.attempt(() => connection.redis.ping()).finally(() => connection.close())
}

async function amqp(url: string): Promise<void> {
  const { pingBroker } = await import('../frontier/rabbit/broker.ts')
  await pingBroker(url)
}

/** Each is named by its address alone: their URLs may hold passwords. */
async function proxiesAnswer(urls: readonly string[]): Promise<Result> {
  const results = await Promise.allSettled(urls.map((url) => checkProxy(url, CHECK_MS_MAX)))
  const away = results.flatMap((result, i) =>
    result.status === 'rejected' ? [`${proxyName(urls[i]!)}: ${(result.reason as Error).message}`] : [],
  )
  const what = `${urls.length - away.length} of ${urls.length} answer`
  if (away.length === 0) return ok(what)
  const named = away.slice(0, PROXIES_NAMED_MAX).join('; ')
  if (away.length < urls.length)
    return warn(`${what}; ${named}`, 'Take those out of the list, or mend them; a run goes on with the others.')
  return missing(`${what}; ${named}`, 'Start one, or correct the list: nothing goes out directly.')
}
