/** When a schedule fires: cron in a time zone, or a word for it. Clocks that change are croner's to mind. */
import { Cron } from 'croner'
import { ScrapeError } from '../../core/errors.ts'

/** `daily` is at six in the morning: at midnight everybody's does. */
const PRESETS: Readonly<Record<string, string>> = {
  hourly: '0 * * * *',
  daily: '0 6 * * *',
  weekly: '0 6 * * 1',
  monthly: '0 6 1 * *',
}

/** The pattern behind a word; what is none is given back. Throws `E_OPTION` for what is no cron, never fires, or has no such zone. */
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

/** The first times after `afterMs`, at most `count`. */
export function nextTimes(pattern: string, tz: string, afterMs: number, count: number): number[] {
  return cronOf(pattern, tz)
    .nextRuns(count, new Date(afterMs))
    .map((date) => date.getTime())
}

function cronOf(pattern: string, tz: string): Cron {
  return new Cron(pattern, { timezone: tz, paused: true, mode: '5-part' })
}
