/** Prepared statements with typed rows. */
import type { SQLInputValue, StatementSync } from 'node:sqlite'

/** A prepared statement whose rows are `T`: only the author of the SQL knows what it selects. */
export interface RowsOf<T> extends Omit<StatementSync, 'all' | 'get' | 'iterate'> {
  all(...values: Values): T[]
  get(...values: Values): T | undefined
  iterate(...values: Values): IterableIterator<T>
}

type Values = SQLInputValue[] | [Record<string, SQLInputValue>]

export function rowsOf<T>(statement: StatementSync): RowsOf<T> {
  return statement as unknown as RowsOf<T>
}
