/** What counts as an item's content: everything except when it was read, which differs each time. */
import { isDeepStrictEqual } from 'node:util'
import { contentKey } from '../../core/item.ts'

/** Fields that say when a page was read. They do not count as a change, neither here nor when two runs are compared. */
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

/** Equal for equal items, regardless of field order. */
export function contentOf(item: Item): string {
  const names = Object.keys(item)
    .filter((name) => !isTimeOfReading(name))
    .sort()
  return contentKey(JSON.stringify(names.map((name) => [name, item[name]])))
}

/** When the item's page was read, if the item says so. */
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

/** Compared field by field; nested values are compared as a whole. A missing field counts as null. */
export function differencesOf(before: Item, after: Item): FieldDifference[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...fields].flatMap((field) => {
    const [was, is] = [before[field] ?? null, after[field] ?? null]
    return isDeepStrictEqual(was, is) ? [] : [{ field, before: was, after: is }]
  })
}

export const changesOf = (before: Item, after: Item): FieldDifference[] =>
  differencesOf(before, after).filter(({ field }) => !isTimeOfReading(field))

/** PostgreSQL cannot index more than 2,700 bytes. */
const KEY_CHARACTERS_MAX = 500

/** A key that a database can store: without NUL, and short enough for an index. */
export function storableKey(key: string): string {
  const text = key.replaceAll('\0', '\ufffd')
  return text.length <= KEY_CHARACTERS_MAX ? text : `${text.slice(0, 200)}…${contentKey(text)}`
}
