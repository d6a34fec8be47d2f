/** How long a server asks us to wait. */

/** The shortest wait: a `later` costs no attempt, so a server that always says 0 must not make us spin. */
const WAIT_MS_MIN = 1000

const HTTP_DATE = /^(?:[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT|[A-Z][a-z]+day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT)$/ // biome-ignore format: one pattern
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/** Retry-After in milliseconds from `nowMs`, at most `msMax`; undefined if it is missing or unusable. */
export function parseRetryAfterMs(value: string | undefined, nowMs: number, msMax: number): number | undefined {
  const text = value?.trim() ?? ''
  let waitMs: number
  if (/^\d+(?:\.\d+)?$/.test(text)) waitMs = Number(text) * 1000
  else if (HTTP_DATE.test(text)) waitMs = Date.parse(text) - nowMs
  else if (ASCTIME.test(text))
    waitMs = Date.parse(`${text} GMT`) - nowMs // the only form without a time zone
  else return undefined
  if (Number.isNaN(waitMs)) return undefined
  return Math.min(Math.max(Math.round(waitMs), WAIT_MS_MIN), msMax)
}
