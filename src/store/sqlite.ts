/** The store in one SQLite file: for several processes of one machine, with nothing to install. */
import { resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { ScrapeError } from '../core/errors.ts'
import type { Dialect, Row, Rows, SqlDatabase } from '../drivers/sql.ts'
import { openSqlite } from '../drivers/sqlite/open.ts'
import type { Store } from './contract.ts'
import { STORE_STEPS } from './schema.ts'
import { sqlStore } from './sql-store.ts'

const BUSY_MS_MAX = 10_000

export const SQLITE: Dialect = {
  name: 'sqlite',
  prefix: '',
  now: "cast(unixepoch('subsec') * 1000 as integer)",
  bytes: 'blob',
  identity: 'integer primary key',
  skipLocked: '', // whoever writes is alone
  inTurn: '', // the same
  oneOf: (column, parameter) => `${column} in (select value from json_each(${parameter}))`,
}

export function openSqliteStore(path: string): Store {
  return sqlStore(openSqliteDatabase(path))
}

export function openSqliteDatabase(path: string): SqlDatabase {
  const file = resolve(path)
  const db = opened(file)
  const run: Rows = async (sql, values) => {
    const named = Object.fromEntries(values.map((value, i) => [`$${i + 1}`, value]))
    return db.prepare(sql).all(named) as Row[]
  }
  const turn = takeTurns(file)
  return {
    dialect: SQLITE,
    place: file,
    async rows(sql, values) {
      while (turn.isInside) await turn.transactions
      return await run(sql, values)
    },
    transaction(work) {
      const mine = turn.transactions.then(async () => {
        db.exec('begin immediate')
        turn.isInside = true
        try {
          const result = await work(run)
          db.exec('commit')
          return result
        } catch (error) {
          db.exec('rollback')
          throw error
        } finally {
          turn.isInside = false
        }
      })
      turn.transactions = mine.catch(() => {})
      return mine
    },
    close: async () => {
      if (!db.isOpen) return
      db.close()
      turn.users--
      if (turn.users === 0) TURNS.delete(file)
    },
  }
}

interface Turn {
  transactions: Promise<unknown>
  isInside: boolean
  users: number
}

/**
 * What is asked on a connection while a transaction goes on would be part of it; and a second connection of this process would
 * wait for the lock with the whole process, so that the first could never let go of it.
 */
const TURNS = new Map<string, Turn>()

function takeTurns(file: string): Turn {
  const turn = TURNS.get(file) ?? { transactions: Promise.resolve(), isInside: false, users: 0 }
  turn.users++
  TURNS.set(file, turn)
  return turn
}

function opened(file: string): DatabaseSync {
  const steps = STORE_STEPS(SQLITE)
  const newer = (version: number) =>
    new ScrapeError('E_OPTION', `the store ${file} has version ${version}, this Sluice knows ${steps.length}`, {
      fix: 'Use the newer Sluice that made it, or name another file with --store.',
    })
  try {
    return openSqlite(file, { busyMsMax: BUSY_MS_MAX, synchronous: 'normal', schema: { steps, newer } })
  } catch (cause) {
    if (cause instanceof ScrapeError) throw cause
    throw new ScrapeError('E_OUTPUT', `the store ${file} cannot be opened: ${(cause as Error).message}`, { cause })
  }
}
