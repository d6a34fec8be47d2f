/** Why a fire started no run: no server was running, once or many times. */
import type { Schedule } from './contract.ts'
import { nextTimes } from './cron.ts'

/** One a minute for a month would be 43,200: the exact number does not matter. */
const COUNTED_MAX = 1000

/** All fires from the due one until now become one entry: how many, and from when to when. */
export function missedReason(
  { cron, tz, nextAtMs }: Pick<Schedule, 'cron' | 'tz' | 'nextAtMs'>,
  nowMs: number,
): string {
  const later = nextTimes(cron, tz, nextAtMs, COUNTED_MAX).filter((ms) => ms <= nowMs)
  const lastMs = later.at(-1)
  if (lastMs === undefined) return `nobody was there at ${new Date(nextAtMs).toISOString()}`
  const count = later.length >= COUNTED_MAX ? `more than ${COUNTED_MAX}` : String(later.length + 1)
  const [from, to] = [localTime(nextAtMs, tz), localTime(later.length >= COUNTED_MAX ? nowMs : lastMs, tz)]
  const isOneDay = from.day === to.day
  const span = isOneDay ? `${from.time} to ${to.time}` : `${from.day} ${from.time} to ${to.day} ${to.time}`
  return `${count} fires missed, ${span} ${tz}: nobody was there`
}

/** Local time in that zone. */
function localTime(ms: number, timeZone: string): { day: string; time: string } {
  const [day, time] = new Date(ms)
    .toLocaleString('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' })
    .split(' ')
  return { day: day!, time: time! }
}
