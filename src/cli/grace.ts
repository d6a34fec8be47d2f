/** Durations of `sluice key` and `sluice webhook`: how long an old secret stays valid, and how long a new one is. */
import { ScrapeError } from '../core/errors.ts'
import { parseDurationMs } from '../core/options.ts'

const DAYS_MAX = 3650

export function graceMsOf(text: string): number {
  return durationOf('--grace', text)
}

export function lifeMsOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : durationOf('--expires', text)
}

function durationOf(flag: string, text: string): number {
  const ms = parseDurationMs(text)
  if (ms >= 0 && ms <= DAYS_MAX * 86_400_000) return ms
  throw new ScrapeError(
    'E_USAGE',
    `${flag} takes a time such as 24h or 90d, at most ${DAYS_MAX}d, got ${JSON.stringify(text)}`,
  )
}
