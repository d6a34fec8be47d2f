/** Whether a subscription wants an event. Decided when the event is recorded: later changes apply to later events. */
import type { Json } from '../../core/task.ts'
import type { EventData, EventFilter, NewEvent, NewSubscription } from './contract.ts'

/** Only this much of an item is searched for words. */
const TEXT_CHARS_MAX = 100_000
const DEPTH_MAX = 4

type Wanted = Pick<NewSubscription, 'events' | 'filter'>
type Fields = Record<string, Json>

export function isWanted({ type, data }: Pick<NewEvent, 'type' | 'data'>, { events, filter }: Wanted): boolean {
  return events.some((pattern) => isOfType(type, pattern)) && fits(data, filter)
}

/** `run.*` is every `run.` type, `*` every type. */
export function isOfType(type: string, pattern: string): boolean {
  return pattern === '*' || pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1)))
}

function fits(data: EventData, filter: EventFilter): boolean {
  if (typeof data.scraper === 'string' && !isOneOf(data.scraper, filter.scrapers)) return false
  const subject = data.job ?? data.item
  return subject === undefined || fitsSubject(subject, filter)
}

function fitsSubject(subject: Fields, filter: EventFilter): boolean {
  const { keywords, exclude } = filter
  const isText = keywords !== undefined || exclude !== undefined
  const text = isText ? textOf(subject).toLowerCase() : ''
  if (keywords !== undefined && !hasOne(text, keywords)) return false
  if (exclude !== undefined && hasOne(text, exclude)) return false
  return (
    isOneOf(subject['company'], filter.companies) &&
    isOneOf(subject['source'], filter.sources) &&
    isOneOf(subject['employment_type'], filter.employment_type) &&
    isOneOf(subject['workplace'], filter.workplace) &&
    isThere(subject, filter.locations) &&
    paysEnough(subject, filter)
  )
}

const hasOne = (text: string, words: readonly string[]) => words.some((word) => text.includes(word.toLowerCase()))

function isOneOf(value: Json | undefined, wanted: readonly string[] | undefined): boolean {
  if (wanted === undefined) return true
  return typeof value === 'string' && wanted.some((one) => one.toLowerCase() === value.toLowerCase())
}

function isThere(subject: Fields, wanted: readonly string[] | undefined): boolean {
  if (wanted === undefined) return true
  const places = [subject['locations'], subject['location']].flat().flatMap(placeTexts)
  return wanted.some((one) => places.some((place) => place === one.toLowerCase() || isPartOf(place, one)))
}

/** A two-letter country code must not match inside a word. */
const isPartOf = (place: string, wanted: string) => wanted.length > 2 && place.includes(wanted.toLowerCase())

function placeTexts(place: Json | undefined): string[] {
  if (typeof place === 'string') return [place.toLowerCase()]
  if (place === null || typeof place !== 'object') return []
  return Object.values(place).flatMap((value) => (typeof value === 'string' ? [value.toLowerCase()] : []))
}

function paysEnough(subject: Fields, { salary_min: least, salary_currency: currency }: EventFilter): boolean {
  if (least === undefined && currency === undefined) return true
  const salary = subject['salary']
  const named = typeof salary === 'object' && salary !== null ? (salary as Fields) : undefined
  if (currency !== undefined && !isOneOf(named?.['currency'], [currency])) return false
  if (least === undefined) return true
  const pay = subject['salary_annual_max'] ?? subject['salary_annual_min'] ?? subject['salary_max']
  return typeof pay === 'number' && pay >= least
}

function textOf(value: Json | undefined, depth = 0): string {
  if (typeof value === 'string') return value.slice(0, TEXT_CHARS_MAX)
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return ''
  let text = ''
  for (const part of Object.values(value)) {
    if (text.length > TEXT_CHARS_MAX) break
    text += `${textOf(part, depth + 1)} `
  }
  return text
}
