/**
 * Exchanges and queues of a run. The run `default` has the plain names, others append theirs after a dot.
 *
 *   url_work (topic) ── RUN.LANE ──▶ url_queue_ttl     lane bulk; other lanes url_queue_ttl_LANE      1 h ─┐
 *                                    priority_queue    lane priority; manual: priority_queue_manual   30 min ─┤ expired
 *   failed_exchange (direct) ── expired.RUN ──▶ expired_urls   read by the workers: back to the ledger ◀──────┘
 *                            └─ failed ──▶ failed_urls   24 h, read by people: dead letters, messages that are not ours
 *
 * One queue per lane: the prefetch window of a worker that serves some lanes must not fill up with messages it cannot use.
 */
import type { Channel } from 'rabbitmq-client'
import { DEFAULT_LANE } from '../../core/task.ts'

export const DEFAULT_RUN = 'default'
export const WORK_EXCHANGE = 'url_work'
export const FAILED_EXCHANGE = 'failed_exchange'

const TTL_MS = { work: 3_600_000, priority: 1_800_000, failed: 86_400_000 }

/** An unused queue of a run other than `default` is deleted by the broker; the ledger still has its tasks. */
const UNUSED_MS_MAX = 7 * 86_400_000

/** A message delivered this often without being settled is treated like an expired one. */
const DELIVERIES_MAX = 20

const PRIORITY_LANES = ['manual', 'priority']

interface QueueDeclaration {
  queue: string
  durable: true
  arguments: Record<string, string | number>
}

export interface Names {
  readonly runId: string
  /** Queue of a lane. */
  work(lane: string): QueueDeclaration
  workKey(lane: string): string
  readonly expired: QueueDeclaration
  readonly expiredKey: string
  readonly failed: QueueDeclaration
  readonly failedKey: string
}

export function namesOf(runId: string): Names {
  const isDefault = runId === DEFAULT_RUN
  const named = (base: string) => (isDefault ? base : `${base}.${runId}`)
  const lasting: Record<string, number> = isDefault ? {} : { 'x-expires': UNUSED_MS_MAX }
  const declare = (base: string, more: Record<string, string | number>): QueueDeclaration => {
    return { queue: named(base), durable: true, arguments: { 'x-queue-type': 'quorum', ...lasting, ...more } }
  }
  const expiredKey = named('expired')
  return {
    runId,
    work: (lane) =>
      declare(baseOf(lane), {
        'x-message-ttl': PRIORITY_LANES.includes(lane) ? TTL_MS.priority : TTL_MS.work,
        'x-dead-letter-exchange': FAILED_EXCHANGE,
        'x-dead-letter-routing-key': expiredKey,
        // The broker drops an expired message only when the other queue has it.
        'x-dead-letter-strategy': 'at-least-once',
        'x-overflow': 'reject-publish',
        'x-delivery-limit': DELIVERIES_MAX,
      }),
    workKey: (lane) => `${runId}.${lane}`,
    expired: declare('expired_urls', {}),
    expiredKey,
    failed: declare('failed_urls', { 'x-message-ttl': TTL_MS.failed }),
    failedKey: named('failed'),
  }
}

function baseOf(lane: string): string {
  if (lane === DEFAULT_LANE) return 'url_queue_ttl'
  if (lane === 'priority') return 'priority_queue'
  return PRIORITY_LANES.includes(lane) ? `priority_queue_${lane}` : `url_queue_ttl_${lane}`
}

/** Makes sure that everything exists. Harmless if it does; an error if it exists with other arguments. */
export async function declare(channel: Channel, names: Names, lanes: readonly string[]): Promise<void> {
  const { expired, expiredKey, failed, failedKey } = names
  await channel.exchangeDeclare({ exchange: WORK_EXCHANGE, type: 'topic', durable: true })
  await channel.exchangeDeclare({ exchange: FAILED_EXCHANGE, type: 'direct', durable: true })
  const bound = [
    { declaration: expired, exchange: FAILED_EXCHANGE, routingKey: expiredKey },
    { declaration: failed, exchange: FAILED_EXCHANGE, routingKey: failedKey },
    ...lanes.map((lane) => {
      return { declaration: names.work(lane), exchange: WORK_EXCHANGE, routingKey: names.workKey(lane) }
    }),
  ]
  for (const { declaration, exchange, routingKey } of bound) {
    await channel.queueDeclare(declaration)
    await channel.queueBind({ queue: declaration.queue, exchange, routingKey })
  }
}
