/** The `amqp:` engine: Redis is the ledger, RabbitMQ delivers ready tasks to the workers. */

import { ScrapeError } from '../../core/errors.ts'
import type { NewTask } from '../../core/task.ts'
import type { Frontier } from '../contract.ts'
import { LedgerFrontier, openLedger, type RedisFrontierOptions } from '../redis/engine.ts'
import type { Link } from '../redis/link.ts'
import { FRONTIER_PARAMETERS } from './address.ts'
import { Broker } from './broker.ts'
import { createInBroker } from './in-broker.ts'
import type { AckMode } from './intake.ts'
import { DEFAULT_RUN, type Names, namesOf } from './names.ts'
import type { TransportOptions } from './options.ts'
import { rabbitTransport } from './transport.ts'

export interface RabbitFrontierOptions extends RedisFrontierOptions, TransportOptions {
  /** Where the ledger is: `redis://…`. Can also be given as `?redis=` in the URL. Default `redis://127.0.0.1:6379/0`. */
  redisUrl?: string
  /** Maximum number of a lane's tasks in the broker; the others wait in the ledger, in its order. Default 2000. */
  beltMax?: number
}

const BELT_MAX = 2000

/** `amqp://user:password@host:port/vhost`, optional: `?redis=URL`, `?ack=auto`, `?expired=dead`, `?prefetch=N`, `?belt=N`. */
export async function openRabbitFrontier(url: string, options: RabbitFrontierOptions = {}): Promise<Frontier> {
  const all = { ...optionsOf(url), ...options }
  const names = namesOf(all.runId ?? DEFAULT_RUN)
  const broker = new Broker(withoutOptions(url), names, all)
  let link: Link | undefined
  try {
    await broker.session() // first: do not empty the ledger if there is no broker
    link = await openLedger(all.redisUrl ?? 'redis://127.0.0.1:6379/0', all)
    const { epoch } = link
    if (all.fresh === true) await purge(broker, names)
    const belt = createInBroker(link, { epoch, beltMax: all.beltMax ?? BELT_MAX })
    const add = (task: NewTask) => frontier.add([task])
    const transport = rabbitTransport({ belt, broker, names, epoch, add }, all)
    const frontier: Frontier = new LedgerFrontier({ engine: 'amqp:', link, transport, options: all })
    return frontier
  } catch (error) {
    link?.close()
    await broker.close()
    throw error
  }
}

async function purge(broker: Broker, names: Names): Promise<void> {
  const { consumer, lanes } = await broker.session()
  const work = [...lanes].map((lane) => names.work(lane).queue)
  for (const queue of [...work, names.expired.queue, names.failed.queue]) await consumer.queuePurge({ queue })
}

function optionsOf(url: string): RabbitFrontierOptions {
  const params = URL.parse(url)?.searchParams ?? new URLSearchParams()
  const options: RabbitFrontierOptions = {}
  const redis = params.get('redis')
  if (redis !== null) options.redisUrl = redis
  const ack = params.get('ack')
  if (ack !== null) options.ack = ackOf(ack)
  const expired = params.get('expired')
  if (expired === 'requeue' || expired === 'dead') options.expired = expired
  else if (expired !== null)
    throw new ScrapeError('E_OPTION', `expired=${expired} in the frontier’s URL is neither requeue nor dead`)
  const prefetch = countOf(params, 'prefetch')
  if (prefetch !== undefined) options.prefetch = prefetch
  const beltMax = countOf(params, 'belt')
  if (beltMax !== undefined) options.beltMax = beltMax
  return options
}

/** `auto`, `manual`, or by lane: `bulk=auto,priority=manual`. */
function ackOf(text: string): AckMode | Record<string, AckMode> {
  if (text === 'auto' || text === 'manual') return text
  const modes: Record<string, AckMode> = {}
  for (const entry of text.split(',')) {
    const [, lane, mode] = /^([^=]+)=(auto|manual)$/.exec(entry) ?? []
    if (lane === undefined)
      throw new ScrapeError('E_OPTION', `ack=${text} in the frontier’s URL is neither manual nor auto`, {
        fix: 'Write ack=auto or ack=manual, or one of them for each lane: ack=bulk=auto,priority=manual',
      })
    modes[lane] = mode as AckMode
  }
  return modes
}

function countOf(params: URLSearchParams, name: string): number | undefined {
  const text = params.get(name)
  if (text === null) return undefined
  const count = Number(text)
  if (Number.isInteger(count) && count >= 1 && count <= 65_535) return count
  throw new ScrapeError('E_OPTION', `${name}=${text} in the frontier’s URL is not a whole number from 1 to 65535`)
}

/** The rest of the URL is for the client library. */
function withoutOptions(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null) return url
  for (const name of FRONTIER_PARAMETERS) parsed.searchParams.delete(name)
  return parsed.href
}
