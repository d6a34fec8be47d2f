/** When a schedule fires: a cron pattern in a time zone, or a preset. Croner handles daylight saving time. */
import { Cron } from 'croner'
import { ScrapeError } from '../../core/errors.ts'

/** `daily` is at six in the morning: at midnight everyone else's jobs run. */
const PRESETS: Readonly<Record<string, string>> = {
  hourly: '0 * * * *',
  daily: '0 6 * * *',
  weekly: '0 6 * * 1',
  monthly: '0 6 1 * *',
}

/** The pattern of a preset; a pattern is returned as it is. Throws `E_OPTION` if invalid, never due, or the zone is unknown. */
export function checkCron(text: string, tz: string): string {
  const pattern = PRESETS[text.trim()] ?? text.trim()
  const fix = `Five fields such as "0 6 * * *", or ${Object.keys(PRESETS).join(', ')}; a zone such as Europe/Rome.`
  let next: Date | null
  try {
    next = cronOf(pattern, tz).nextRun()
  } catch (cause) {
    throw new ScrapeError(
      'E_OPTION',
      `no schedule: ${JSON.stringify(text)} in ${tz}: ${(cause as Error).message.split('. ')[0]}`,
      { fix, cause },
    )
  }
  if (next === null) throw new ScrapeError('E_OPTION', `${JSON.stringify(text)} never comes`, { fix })
  return pattern
}

/** The first fires after `afterMs`, at most `count`. */
export function nextTimes(pattern: string, tz: string, afterMs: number, count: number): number[] {
  return cronOf(pattern, tz)
    .nextRuns(count, new Date(afterMs))
    .map((date) => date.getTime())
}

const HOUR_MS = 3_600_000
const MARKS = 8 * 24
const FIRES = 8

/**
 * The longest time without a fire in the 8 days from `fromMs`, and between the next few fires if those are further apart. It
 * checks the gap at every hour, not at every fire: one fire a minute for 8 days would be 11,520 fires and take 0.7 s.
 */
export function longestGapMs(pattern: string, tz: string, fromMs: number): number {
  const cron = cronOf(pattern, tz)
  const fires = cron.nextRuns(FIRES, new Date(fromMs - 1)).map((date) => date.getTime())
  let longestMs = Math.max(0, ...fires.slice(1).map((atMs, i) => atMs - fires[i]!))
  for (let mark = 0, passedMs = 0; mark < MARKS; mark++) {
    const markMs = (fires[0] ?? fromMs) + mark * HOUR_MS
    if (markMs < passedMs) continue // inside a gap that was already measured
    const next = cron.nextRun(new Date(markMs))
    if (next === null) break
    passedMs = next.getTime()
    if (passedMs - markMs + HOUR_MS <= longestMs) continue // cannot be longer, wherever in the hour it started
    const [before] = cron.previousRuns(1, next)
    if (before !== undefined) longestMs = Math.max(longestMs, passedMs - before.getTime())
  }
  return longestMs
}

function cronOf(pattern: string, tz: string): Cron {
  return new Cron(pattern, { timezone: tz, paused: true, mode: '5-part' })
}
