/** When a posting appeared, in every format boards use. Always UTC; if only the day is known it stays a day. */

interface PostedDate {
  /** `2026-03-01T09:30:00.000Z`, or `2026-03-01`. */
  date: string
  precision: 'instant' | 'day' | 'relative'
  /** "30+ days ago": `date` is the latest possible date. */
  isOlder: boolean
}

const DAY_MS = 86_400_000
const TEXT_CHARS_MAX = 80
/** Larger epochs are milliseconds: as seconds, this would be the year 5138. */
const SECONDS_MAX = 1e11
const YEARS = { min: 1990, max: 2100 }

/** Null if it is not a date. Never throws. */
export function parsePostedDate(value: string | number | Date | null | undefined, now: Date): PostedDate | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'number') return epoch(value)
  if (value instanceof Date) return instant(value.getTime())
  if (typeof value !== 'string') return null
  const text = value.trim().slice(0, TEXT_CHARS_MAX)
  if (/^\d{9,14}(?:\.\d{1,6})?$/.test(text)) return epoch(Number(text))
  return absolute(text) ?? relative(text.toLowerCase(), now)
}

/** The end date of a posting. Relative ones such as "in 3 days" are ignored, because the result would be made up. */
export function parseEndDate(value: string | number | Date | null | undefined, now: Date): string | null {
  const found = parsePostedDate(value, now)
  return found === null || found.precision === 'relative' ? null : found.date
}

function epoch(value: number): PostedDate | null {
  if (!Number.isFinite(value) || value <= 0) return null
  return instant(value > SECONDS_MAX ? value : value * 1000)
}

function instant(ms: number): PostedDate | null {
  const date = new Date(ms)
  const year = date.getUTCFullYear()
  if (!(year >= YEARS.min && year <= YEARS.max)) return null
  return { date: date.toISOString(), precision: 'instant', isOlder: false }
}

function day(year: number, month: number, dayOfMonth: number): PostedDate | null {
  const date = new Date(Date.UTC(year, month - 1, dayOfMonth))
  if (!(year >= YEARS.min && year <= YEARS.max) || date.getUTCMonth() !== month - 1) return null
  return { date: date.toISOString().slice(0, 10), precision: 'day', isOlder: false }
}

const ISO =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s?(Z|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?)?$/i
const RFC_2822 = /^(?:[a-z]{3},? )?(\d{1,2}) ([a-z]{3}) (\d{4}) (\d{2}:\d{2}(?::\d{2})?) ?(?:([+-]\d{4})|[A-Z]{1,3})?$/i
const YEAR_FIRST = /^(\d{4})[/.](\d{1,2})[/.](\d{1,2})$/
const DOTTED = /^(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})$/
const SLASHED = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/
const DAY_FIRST = /^(?:[a-z]{3,9},? )?(\d{1,2})(?:st|nd|rd|th|\.)? ([a-zéûäç]{3,10})\.?,? (\d{4})$/i
const MONTH_FIRST = /^(?:[a-z]{3,9},? )?([a-z]{3,10})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})$/i
const COMPACT = /^(\d{4})(\d{2})(\d{2})$/
const CJK = /^(\d{4})年(\d{1,2})月(\d{1,2})日$/

const MONTHS: readonly string[] = [
  'jan jän ene gen sty',
  'feb fév lut',
  'mar mär',
  'apr avr abr kwi',
  'may mai mag maj mei',
  'jun juin giu cze',
  'jul juil lug lip',
  'aug aoû ago sie',
  'sep set wrz',
  'oct okt ott out paź',
  'nov lis',
  'dec dez déc dic gru',
]

function monthOf(word: string): number {
  const name = word.toLowerCase()
  const at = MONTHS.findIndex((starts) => starts.split(' ').some((start) => name.startsWith(start)))
  return name.startsWith('juil') ? 7 : at + 1
}

function absolute(text: string): PostedDate | null {
  const iso = ISO.exec(text)
  if (iso !== null) return iso[4] === undefined ? day(Number(iso[1]), Number(iso[2]), Number(iso[3])) : isoInstant(iso)
  const mail = RFC_2822.exec(text)
  if (mail !== null) {
    const zone = mail[5] ?? zoneOf(text)
    return instant(Date.parse(`${mail[1]} ${mail[2]} ${mail[3]} ${mail[4]} ${zone}`))
  }
  const yearFirst = YEAR_FIRST.exec(text) ?? COMPACT.exec(text) ?? CJK.exec(text)
  if (yearFirst !== null) return day(Number(yearFirst[1]), Number(yearFirst[2]), Number(yearFirst[3]))
  const dotted = DOTTED.exec(text)
  if (dotted !== null) return day(Number(dotted[3]), Number(dotted[2]), Number(dotted[1]))
  const slashed = SLASHED.exec(text)
  if (slashed !== null) return slashedDay(Number(slashed[1]), Number(slashed[2]), Number(slashed[3]))
  const words = DAY_FIRST.exec(text)
  if (words !== null) return day(Number(words[3]), monthOf(words[2]!), Number(words[1]))
  const monthFirst = MONTH_FIRST.exec(text)
  return monthFirst === null ? null : day(Number(monthFirst[3]), monthOf(monthFirst[1]!), Number(monthFirst[2]))
}

function isoInstant(iso: RegExpExecArray): PostedDate | null {
  const [, year, month, dayOfMonth, hour, minute, second = '00', fraction = '0', zone = 'Z'] = iso
  if (day(Number(year), Number(month), Number(dayOfMonth)) === null) return null
  const offset = /^[+-]/.test(zone) ? `${zone.slice(0, 3)}:${zone.replace(':', '').slice(3, 5) || '00'}` : 'Z'
  return instant(
    Date.parse(`${year}-${month}-${dayOfMonth}T${hour}:${minute}:${second}.${fraction.slice(0, 3)}${offset}`),
  )
}

/** Named time zones that occur in mail dates; unknown ones count as UTC. */
function zoneOf(text: string): string {
  const name = /[A-Z]{3}$/.exec(text)?.[0] ?? ''
  return ['EST', 'EDT', 'CST', 'CDT', 'MST', 'MDT', 'PST', 'PDT'].includes(name) ? name : 'GMT'
}

/** 3/14/2026 is unambiguous; 3/4/2026 could be two different days, so it is rejected. */
function slashedDay(a: number, b: number, year: number): PostedDate | null {
  if (a > 12 && b <= 12) return day(year, b, a)
  if (b > 12 || a === b) return day(year, a, b)
  return null
}

const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(?:s|sec|secs|seconds?|sekunden?|secondes?|segundos?|secondi|秒)$/, 1000],
  [/^(?:m|min|mins|minutes?|minuten?|minutos?|minuti|minuter|分钟|分)$/, 60_000],
  [/^(?:h|hr|hrs|hours?|stunden?|heures?|horas?|or[ae]|uur|timmar|timme|godzin\w?|小时|小時|時間)$/, 3_600_000],
  [/^(?:d|days?|tag|tagen|tage|jours?|d[ií]as?|giorn[oi]|dag|dagen|dagar|dni|dzień|dny|天|日)$/, DAY_MS],
  [
    /^(?:w|wks?|weeks?|wochen?|semaines?|semanas?|settiman[ae]|weken|week|veck\w{1,2}|tygodni\w?|周|週間|週)$/,
    7 * DAY_MS,
  ],
  [
    /^(?:mo|mos|months?|monat\w{0,2}|mois|mes|meses|mes[ei]|maand\w{0,2}|månad\w{0,2}|miesi\w{1,5}|个月|個月|か月|ヶ月|月)$/,
    30 * DAY_MS,
  ],
  [/^(?:y|yrs?|years?|jahr\w{0,2}|ans?|años?|ann[oi]|anos?|jaar|år|lat|年)$/, 365 * DAY_MS],
]
const AMOUNT =
  /(\d{1,4}|(?<![\p{L}])(?:an?|one|einem|einer|une?|una?|um|uma|en|ett)(?![\p{L}])) ?(\+)? ?([\p{L}]{1,10})(\+)?/u
const TODAY =
  /today|just (?:now|posted)|heute|aujourd|hoy|oggi|hoje|vandaag|idag|i dag|dzisiaj|今天|今日|本日|刚刚|new$/
const YESTERDAY = /yesterday|gestern|^hier$|\bhier\b|ayer|\bieri\b|ontem|gisteren|igår|i går|wczoraj|昨天|昨日/

function relative(text: string, now: Date): PostedDate | null {
  const nowMs = now.getTime()
  const ago = (ms: number, isOlder: boolean): PostedDate => {
    const iso = new Date(nowMs - ms).toISOString()
    return { date: ms < DAY_MS && ms > 0 ? iso : iso.slice(0, 10), precision: 'relative', isOlder }
  }
  if (TODAY.test(text)) return ago(0, false)
  if (YESTERDAY.test(text)) return ago(DAY_MS, false)
  if (/^(?:in|starts?|starting|within|noch) /.test(text)) return null
  const found = AMOUNT.exec(text)
  if (found === null) return null
  // 日前 and 天前 write "ago" and the unit as one word.
  const word = found[3]!.replace(/前$|以上前$/, '')
  const unitMs = UNITS.find(([names]) => names.test(word))?.[1]
  if (unitMs === undefined) return null
  const count = /^\d/.test(found[1]!) ? Number(found[1]) : 1
  const isOlder =
    found[2] !== undefined || found[4] !== undefined || /more than|over|plus de|mehr als|más de|以上/.test(text)
  return Number.isFinite(nowMs) ? ago(count * unitMs, isOlder) : null
}
