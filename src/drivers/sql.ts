/** A database as seen by the store: PostgreSQL or SQLite, which differ only in their dialect. */

export interface Dialect {
  /** For features that only one of them has: partitions, full-text search. */
  readonly name: 'postgres' | 'sqlite'
  /** Prefix of each table's name. */
  readonly prefix: string
  /** The database's clock in epoch milliseconds. */
  readonly now: string
  /** Type of binary data. */
  readonly bytes: string
  /** An auto-increment column. */
  readonly identity: string
  /** Appended to a `select` that competes with others for rows: skips rows that are already taken. */
  readonly skipLocked: string
  /** Goes before `values` in an insert … select: serializes transactions with equal $1, so that rows become visible in order. */
  readonly inTurn: string
  /** SQL: true if `column` is one of the texts in the parameter, a JSON array. */
  oneOf(column: string, parameter: string): string
}

type Value = string | number | null | Uint8Array
export type Row = Record<string, unknown>
/** Parameters are `$1`, `$2` …; rows are objects with the column names. */
export type Rows = (sql: string, values: readonly Value[]) => Promise<Row[]>

export interface SqlDatabase {
  readonly dialect: Dialect
  readonly place: string
  readonly rows: Rows
  /** All or nothing. Covers everything `work` does through its own `rows`; may be repeated from the start after an outage. */
  transaction<T>(work: (rows: Rows) => Promise<T>): Promise<T>
  close(): Promise<void>
}
