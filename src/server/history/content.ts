/** What of an item counts as its content: all but the time it was looked at, which differs each time. */
import { isDeepStrictEqual } from 'node:util'
import { contentKey } from '../../core/item.ts'

/** Fields that say when a page was read. They are no change, neither here nor in the comparison of two runs. */
export const TIMES_OF_READING: readonly string[] = [
  'scraped_at',
  'scrapedAt',
  'fetched_at',
  'fetchedAt',
  'crawled_at',
  'crawledAt',
  'retrieved_at',
  'retrievedAt',
  'extracted_at',
  'extractedAt',
]

const timesOfReading = new Set(TIMES_OF_READING)
export const isTimeOfReading = (field: string): boolean => timesOfReading.has(field)

export type Item = Readonly<Record<string, unknown>>

/** Equal for equal items, whatever the order of their fields. */
export function contentOf(item: Item): string {
  const names = Object.keys(item)
    .filter((name) => !isTimeOfReading(name))
    .sort()
  return contentKey(JSON.stringify(names.map((name) => [name, item[name]])))
}

/** When its page was read, where it says so. */
export function readAtMs(item: Item): number | undefined {
  for (const name of TIMES_OF_READING) {
    const value = item[name]
    if (typeof value !== 'string') continue
    const ms = Date.parse(value)
    if (Number.isFinite(ms)) return ms
  }
  return undefined
}

export interface FieldDifference {
  field: string
  before: unknown
  after: unknown
}

/** Field by field, nested values as wholes. Null stands for a field that is not there as well. */
export function differencesOf(before: Item, after: Item): FieldDifference[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...fields].flatMap((field) => {
    const [was, is] = [before[field] ?? null, after[field] ?? null]
    return isDeepStrictEqual(was, is) ? [] : [{ field, before: was, after: is }]
  })
}

export const changesOf = (before: Item, after: Item): FieldDifference[] =>
  differencesOf(before, after).filter(({ field }) => !isTimeOfReading(field))

/** PostgreSQL indexes no more than 2,700 bytes. */
const KEY_CHARACTERS_MAX = 500

/** A key as a database takes it: without what is no text there, and not longer than an index takes. */
export function storableKey(key: string): string {
  const text = key.replaceAll('\0', '\ufffd')
  return text.length <= KEY_CHARACTERS_MAX ? text : `${text.slice(0, 200)}…${contentKey(text)}`
}
