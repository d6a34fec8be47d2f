/** Opens a SQLite file that several processes share: permissions, WAL, schema. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeOwnerOnly } from '../../core/private-file.ts'

export const SQLITE_BUSY = 5
const LOOK_AGAIN_MS_MAX = 5

export interface SqliteFile {
  /** How long to wait for a lock that another process holds. */
  busyMsMax: number
  /** After a power cut: `off` may leave a broken file, `normal` may lose the last transactions, `full` loses nothing. */
  synchronous: 'off' | 'normal' | 'full'
  /** Readable by its owner only. Default: true. */
  isPrivate?: boolean
  /** More pragmas for this connection. */
  pragmas?: string
  schema?: SqliteSchema
  /** Anything else to do before the file is used. Repeated if another process interferes. */
  setUp?: (db: DatabaseSync) => void
}

interface SqliteSchema {
  /** In order of release; never edit a released one. `user_version` counts the steps applied to a file. */
  steps: readonly string[]
  /** Thrown for a file with more steps than these. */
  newer: (version: number) => Error
  /** The `application_id` of these files; `foreign` is thrown for a database without it. */
  mark?: { applicationId: number; foreign: () => Error }
}

/** Blocks the process while it waits for others. */
export function openSqlite(path: string, file: SqliteFile): DatabaseSync {
  const db = connect(path, file, file.busyMsMax)
  for (const startMs = performance.now(); ; ) {
    try {
      setUp(db, file)
      return db
    } catch (error) {
      if (!isBusy(error) || performance.now() - startMs > file.busyMsMax) {
        db.close()
        throw error
      }
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_AGAIN_MS_MAX)
  }
}

/** Blocks the process for at most `blockingMsMax` at a time, now and in each later statement: see `whenFree`. */
export async function openSqliteAsync(
  path: string,
  { blockingMsMax, ...file }: SqliteFile & { blockingMsMax: number },
): Promise<DatabaseSync> {
  const db = connect(path, file, blockingMsMax)
  try {
    await whenFree(() => setUp(db, file), file.busyMsMax)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Repeats `run` while another process holds the lock it needs, but no longer than `busyMsMax`. */
export async function whenFree<T>(run: () => T, busyMsMax: number): Promise<T> {
  const startMs = performance.now()
  for (;;) {
    try {
      return run()
    } catch (error) {
      if (!isBusy(error) || performance.now() - startMs > busyMsMax) throw error
    }
    await sleep(1 + Math.random() * (LOOK_AGAIN_MS_MAX - 1))
  }
}

/** SQLite's primary result code; undefined for an error that is not SQLite's. */
export function sqliteCode(error: unknown): number | undefined {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  return code === 'ERR_SQLITE_ERROR' && typeof errcode === 'number' ? errcode & 0xff : undefined
}

const isBusy = (error: unknown) => sqliteCode(error) === SQLITE_BUSY

function connect(path: string, { isPrivate = true }: SqliteFile, timeout: number): DatabaseSync {
  mkdirSync(dirname(path), { recursive: true })
  if (isPrivate) makeOwnerOnly(path)
  return new DatabaseSync(path, { timeout })
}

/**
 * SQLite's busy timeout does not cover the switch to WAL: of two processes that open a new file at the same moment, one gets
 * "database is locked" at once. So all of this can be repeated.
 */
function setUp(db: DatabaseSync, { synchronous, pragmas = '', schema, setUp: more }: SqliteFile): void {
  try {
    // In this order: the switch to WAL is a transaction, and would otherwise be synced as with `full`.
    db.exec(`pragma synchronous = ${synchronous}; pragma journal_mode = wal; ${pragmas}`)
    if (schema !== undefined) migrate(db, schema)
    more?.(db)
  } catch (error) {
    if (db.isTransaction) db.exec('rollback')
    throw error
  }
}

function migrate(db: DatabaseSync, { steps, newer, mark }: SqliteSchema): void {
  const number = (pragma: string) => Number(db.prepare(`pragma ${pragma}`).get()![pragma])
  const isOurs = () => mark === undefined || number('application_id') === mark.applicationId
  // Before taking the lock, which another connection of this process may hold.
  if (number('user_version') === steps.length && isOurs()) return
  db.exec('begin immediate')
  if (mark !== undefined && !isOurs()) {
    if (db.prepare('select 1 from sqlite_schema limit 1').get() !== undefined) throw mark.foreign()
    db.exec(`pragma application_id = ${mark.applicationId}`)
  }
  const version = number('user_version')
  if (version > steps.length) throw newer(version)
  for (const step of steps.slice(version)) db.exec(step)
  db.exec(`pragma user_version = ${steps.length}; commit`)
}
