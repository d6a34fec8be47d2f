/** Which Parquet type fits all values of a column. Derived from the data: schema libraries have no common way to tell. */
import type { SchemaElement } from 'hyparquet'

type ColumnType = 'string' | 'boolean' | 'int32' | 'int64' | 'double' | 'json'

interface Column {
  name: string
  type: ColumnType
}

// What was seen in a column, one bit each.
const STRING = 1
const BOOLEAN = 2
const INT32 = 4
const INT64 = 8
const DOUBLE = 16
const NESTED = 32

export class ColumnTypes {
  readonly #seen = new Map<string, number>()

  /** Known fields come first, in order; others follow in the order they appear. */
  constructor(fields: readonly string[]) {
    for (const field of fields) this.#seen.set(field, 0)
  }

  add(item: Record<string, unknown>): void {
    for (const name in item) {
      const before = this.#seen.get(name)
      const now = (before ?? 0) | kindOf(item[name])
      if (now !== before) this.#seen.set(name, now)
    }
  }

  resolve(): Column[] {
    return [...this.#seen].map(([name, seen]) => ({ name, type: typeOf(seen) }))
  }
}

function kindOf(value: unknown): number {
  if (value === null || value === undefined) return 0
  if (typeof value === 'string') return STRING
  if (typeof value === 'boolean') return BOOLEAN
  if (typeof value !== 'number') return NESTED
  if ((value | 0) === value) return INT32
  return Number.isSafeInteger(value) ? INT64 : DOUBLE
}

function typeOf(seen: number): ColumnType {
  if (seen === 0 || seen === STRING) return 'string'
  if (seen === BOOLEAN) return 'boolean'
  if (seen === INT32) return 'int32'
  if ((seen & ~(INT32 | INT64)) === 0) return 'int64'
  if ((seen & ~(INT32 | INT64 | DOUBLE)) === 0) return 'double'
  return 'json' // nested, or mixed: each value keeps its own type
}

/** The item's value in the form the writer needs. */
export function columnValue(item: Record<string, unknown>, { name, type }: Column): unknown {
  const value = Object.hasOwn(item, name) ? item[name] : null
  if (value === null || value === undefined) return null
  return type === 'int64' ? BigInt(value as number) : value
}

const ELEMENTS = {
  string: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  boolean: { type: 'BOOLEAN' },
  int32: { type: 'INT32' },
  int64: { type: 'INT64' },
  double: { type: 'DOUBLE' },
  json: { type: 'BYTE_ARRAY', converted_type: 'JSON', logical_type: { type: 'JSON' } },
} as const satisfies Record<ColumnType, Omit<SchemaElement, 'name'>>

export function schemaOf(columns: readonly Column[]): SchemaElement[] {
  return [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, type }) => ({ name, repetition_type: 'OPTIONAL' as const, ...ELEMENTS[type] })),
  ]
}
