/** Webhooks, their deliveries, and the events themselves. */

import { verbatim } from '../../../core/redact.ts'
import { Problem } from '../../../server/api/problem.ts'
import type { webhookEndpoints } from '../../../server/api/routes/webhooks.ts'
import type { HandlersOf } from '../../../server/api/server.ts'
import type { Delivery, NewSubscription, Subscription, WebhookEvent } from '../../../server/webhooks/contract.ts'
import { payloadOf } from '../../../server/webhooks/payload.ts'
import { testEvent } from '../../../server/webhooks/record.ts'
import type { Server } from '../server/server.ts'

export function webhookHandlers({ notifications }: Server): HandlersOf<typeof webhookEndpoints> {
  const { subscriptions, log, worker } = notifications
  /** A disabled webhook would never send it. */
  const activeOne = async (word: string) => {
    const found = await subscriptions.get(word)
    if (!found.isActive)
      throw new Problem(409, 'E_WEBHOOK_OFF', `webhook ${found.name} is turned off`, {
        hint: 'Turn it on with PUT /v1/webhooks/ID, isActive true.',
      })
    return found
  }
  return {
    listWebhooks: async () => ({ data: (await subscriptions.list()).map(toDetail) }),
    async createWebhook({ body }) {
      notifications.refuseUnreachable(body.url)
      const { subscription, secret } = await subscriptions.create(body as NewSubscription)
      return verbatim({ ...toDetail(subscription), secret }) // shown only once
    },
    getWebhook: async ({ params: { id } }) => toDetail(await subscriptions.get(id)),
    async updateWebhook({ params: { id }, body }) {
      const { url } = await subscriptions.get(id)
      if (body.url !== url) notifications.refuseUnreachable(body.url)
      return toDetail(await subscriptions.update(id, body as NewSubscription))
    },
    async deleteWebhook({ params: { id } }) {
      await subscriptions.remove(id)
      return undefined
    },
    async testWebhook({ params: { id } }) {
      const subscription = await activeOne(id)
      await notifications.tell([testEvent(subscription)])
      const [made] = (await log.deliveries(subscription.id, { max: 50 })).filter(({ type }) => type === 'webhook.test')
      return toAnswer(made!)
    },
    async rotateSecret({ params: { id } }) {
      const { secret, oldUntilMs } = await subscriptions.rotateSecret(id)
      return verbatim({ secret, oldUntil: timeOf(oldUntilMs) }) // shown only once
    },
    async listDeliveries({ params: { id }, query: { limit, cursor } }) {
      const { id: webhookId } = await subscriptions.get(id)
      const before = cursor === undefined ? undefined : Number(cursor)
      const found = await log.deliveries(webhookId, { before, max: limit + 1 })
      const data = found.slice(0, limit).map(toAnswer)
      return { data, next: found.length > limit ? data.at(-1)!.id : null }
    },
    async redeliver({ params: { id } }) {
      const first = await log.delivery(Number(id))
      if (first !== undefined) await activeOne(first.webhookId)
      const made = await log.redeliver(Number(id), Date.now())
      void worker.look()
      return toAnswer(made)
    },
    async listEvents({ query: { limit, cursor, type } }) {
      const found = await log.events({
        max: limit + 1,
        before: cursor,
        type,
      })
      const data = found.slice(0, limit).map((event) => ({ ...payloadOf(event), data: shownData(event) }))
      return { data, next: found.length > limit ? data.at(-1)!.id : null }
    },
  }
}

/** Values read from the store are never undefined. */
type Answered = Record<string, NonNullable<unknown> & string>

/** Events about items are data; events about runs may contain secrets. */
function shownData({ type, data }: WebhookEvent): Answered {
  return (/^(?:item|job)\./.test(type) ? verbatim(data) : data) as Answered
}

function toDetail({ createdAtMs, disabledReason, failingSinceMs, ...rest }: Subscription) {
  return {
    ...rest,
    createdAt: timeOf(createdAtMs),
    disabledReason: disabledReason ?? null,
    failingSince: failingSinceMs === undefined ? null : timeOf(failingSinceMs),
  }
}

function toAnswer({ id, createdAtMs, nextAtMs, lastAtMs, ...rest }: Delivery) {
  return {
    ...rest,
    id: String(id),
    createdAt: timeOf(createdAtMs),
    nextAt: nextAtMs === undefined ? null : timeOf(nextAtMs),
    lastAt: lastAtMs === undefined ? null : timeOf(lastAtMs),
    status: rest.status ?? null,
    durationMs: rest.durationMs ?? null,
    answer: rest.answer ?? null,
    error: rest.error ?? null,
  }
}

const timeOf = (ms: number) => new Date(ms).toISOString()
