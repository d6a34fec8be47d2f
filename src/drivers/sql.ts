/** A database as the store sees it: PostgreSQL or SQLite, told apart by their dialect and by nothing else. */

export interface Dialect {
  /** For what only one of them has: partitions, full-text search. */
  readonly name: 'postgres' | 'sqlite'
  /** Before each table's name. */
  readonly prefix: string
  /** The database's clock in epoch milliseconds. */
  readonly now: string
  /** The type of bytes. */
  readonly bytes: string
  /** A column that numbers its rows by itself. */
  readonly identity: string
  /** After a `select` that takes rows others take, too: those that are taken already are left out. */
  readonly skipLocked: string
  /** Before `values` in an insert … select: whoever has the same $1 goes one after the other, so that rows are seen in their order. */
  readonly inTurn: string
  /** True when `column` is one of the texts in the parameter, a JSON array. */
  oneOf(column: string, parameter: string): string
}

type Value = string | number | null | Uint8Array
export type Row = Record<string, unknown>
/** Parameters are `$1`, `$2` …; rows come with the names of their columns. */
export type Rows = (sql: string, values: readonly Value[]) => Promise<Row[]>

export interface SqlDatabase {
  readonly dialect: Dialect
  readonly place: string
  readonly rows: Rows
  /** All or nothing. What `work` asks through its own `rows` is in it; it may be repeated from its beginning after an outage. */
  transaction<T>(work: (rows: Rows) => Promise<T>): Promise<T>
  close(): Promise<void>
}
