/** Writes many rows with few statements, and converts column values to our types. */
import type { Rows } from '../../drivers/sql.ts'

export type Value = string | number | null

/** Well below what either database accepts in one statement. */
const VALUES_MAX = 8000

interface Insert {
  into: string
  columns: readonly string[]
  records: readonly (readonly Value[])[]
  /** `on conflict … returning …` */
  tail?: string
}

export async function insertMany(rows: Rows, { into, columns, records, tail = '' }: Insert) {
  const returned: Record<string, unknown>[] = []
  for (const part of partsOf(records)) {
    const sql = `insert into ${into} (${columns.join(', ')}) values ${placesOf(part)} ${tail}`
    returned.push(...(await rows(sql, part.flat().map(storable))))
  }
  return returned
}

/** PostgreSQL cannot store NUL in text. */
const storable = (value: Value) =>
  typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '') : value

/** `set` refers to the values of a record as `v.column1`, `v.column2` …; all of them are text. */
export async function updateMany(rows: Rows, table: string, set: string, records: readonly (readonly string[])[]) {
  for (const part of partsOf(records))
    await rows(
      `update ${table} as t set ${set} from (values ${placesOf(part)}) as v where t.key = v.column1`,
      part.flat(),
    )
}

function* partsOf<R extends readonly Value[]>(records: readonly R[]): Generator<readonly R[]> {
  const size = Math.max(1, Math.floor(VALUES_MAX / Math.max(1, records[0]?.length ?? 1)))
  for (let at = 0; at < records.length; at += size) yield records.slice(at, at + size)
}

function placesOf(records: readonly (readonly Value[])[]): string {
  let n = 0
  return records.map((record) => `(${record.map(() => `$${++n}`).join(', ')})`).join(', ')
}

/** PostgreSQL returns timestamps as dates, SQLite as the text we stored. */
export const timeOf = (value: unknown): string => (value instanceof Date ? value.toISOString() : String(value))
export const numberOf = (value: unknown): number | null =>
  value === null || value === undefined ? null : Number(value)
export const textOf = (value: unknown): string | null => (value === null || value === undefined ? null : String(value))
