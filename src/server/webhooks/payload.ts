/** Events as a receiver gets them: one, or all of an hour or a day together. */
import { API_VERSION, type EventData, type EventType, type WebhookEvent } from './contract.ts'

export const DIGEST_EVENTS_MAX = 500
const DIGEST_CHARS_MAX = 100_000

export function payloadOf({ id, type, createdAtMs, data }: WebhookEvent) {
  return { id, type, created_at: new Date(createdAtMs).toISOString(), api_version: API_VERSION, data }
}

/** The first events, as many as fit into one delivery; at least one. */
export function fitting(events: readonly WebhookEvent[]): WebhookEvent[] {
  let chars = 0
  const isOver = (event: WebhookEvent, i: number) => {
    chars += JSON.stringify(payloadOf(event)).length
    return i > 0 && chars > DIGEST_CHARS_MAX
  }
  const end = events.findIndex(isOver)
  return events.slice(0, end === -1 ? events.length : end)
}

export function digestOf(events: readonly WebhookEvent[]): EventData {
  const counts: Partial<Record<EventType, number>> = {}
  for (const { type } of events) counts[type] = (counts[type] ?? 0) + 1
  return { count: events.length, counts, events: events.map(payloadOf) } as unknown as EventData
}
