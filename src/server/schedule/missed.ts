/** Why a fire started no run: nobody was there, once or many times. */
import type { Schedule } from './contract.ts'
import { nextTimes } from './cron.ts'

/** Every minute for a month would be 43,200: nobody reads the exact number. */
const COUNTED_MAX = 1000

/** Of all fires from the one that was due until now, which become one entry: how many, and from when to when. */
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

/** As the clock on the wall there shows it. */
function localTime(ms: number, timeZone: string): { day: string; time: string } {
  const [day, time] = new Date(ms)
    .toLocaleString('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' })
    .split(' ')
  return { day: day!, time: time! }
}
