/** Statements that say what their rows are. */
import type { SQLInputValue, StatementSync } from 'node:sqlite'

/** A prepared statement whose rows are `T`: what the SQL selects is known only to the one who wrote it. */
export interface RowsOf<T> extends Omit<StatementSync, 'all' | 'get' | 'iterate'> {
  all(...values: Values): T[]
  get(...values: Values): T | undefined
  iterate(...values: Values): IterableIterator<T>
}

type Values = SQLInputValue[] | [Record<string, SQLInputValue>]

export function rowsOf<T>(statement: StatementSync): RowsOf<T> {
  return statement as unknown as RowsOf<T>
}
