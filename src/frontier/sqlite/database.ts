/** The file of a `sqlite:` frontier: opening, migrating, transactions that wait for each other, and errors in our own words. */
import { rmSync } from 'node:fs'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { ScrapeError } from '../../core/errors.ts'
import { openSqliteAsync, SQLITE_BUSY, sqliteCode, whenFree } from '../../drivers/sqlite/open.ts'
import { type RowsOf, rowsOf } from '../../drivers/sqlite/rows.ts'
import { APPLICATION_ID, MIGRATIONS } from './schema.ts'

/** How long a writer may wait for others before it is an error: many times what a healthy disk needs. */
const BUSY_MS_MAX = 60_000

/** SQLite itself waits this long, which blocks the event loop; after that we wait without blocking it. */
const BUSY_BLOCKING_MS_MAX = 4

const SQLITE_CORRUPT = 11
const SQLITE_NOTADB = 26
/** Primary result codes that mean the file cannot be written: perm, readonly, ioerr, full, cantopen. */
const UNWRITABLE = new Set([3, 8, 10, 13, 14])

// synchronous=NORMAL: a killed process loses nothing; a power cut may lose the last transactions, never consistency.
// A small page cache (2 MB), since the kernel caches the file as well: 300,000 adds cost 17.3 µs each with 2 MB and 16.2 µs with
// 16 MB, and the process is 27 MB smaller. A WAL of 64 MB: a claim over many hosts touches many pages, and the longer the WAL the
// more often a page is written there before it is written back (1,000,000 pending on 1,000 hosts: 28,000/s and p99 22 ms with
// 16 MB, 36,000/s and 5 ms with 64 MB).
const PRAGMAS = `
  pragma cache_size = -2000;
  pragma temp_store = memory;
  pragma wal_autocheckpoint = 16000;
  pragma journal_size_limit = 67108864;
`

export class Database {
  readonly path: string
  readonly #db: DatabaseSync
  readonly #beginWrite: StatementSync
  readonly #beginRead: StatementSync
  readonly #commit: StatementSync

  private constructor(path: string, db: DatabaseSync) {
    this.path = path
    this.#db = db
    this.#beginWrite = db.prepare('begin immediate')
    this.#beginRead = db.prepare('begin')
    this.#commit = db.prepare('commit')
  }

  static async open(path: string, { fresh = false } = {}): Promise<Database> {
    try {
      if (fresh) for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true })
      const db = await openSqliteAsync(path, {
        busyMsMax: BUSY_MS_MAX,
        blockingMsMax: BUSY_BLOCKING_MS_MAX,
        synchronous: 'normal',
        pragmas: PRAGMAS,
        schema: {
          steps: MIGRATIONS,
          newer: (version) => newer(path, version),
          mark: { applicationId: APPLICATION_ID, foreign: () => foreign(path) },
        },
      })
      return new Database(path, db)
    } catch (error) {
      throw named(error, path)
    }
  }

  /** A statement that returns rows as arrays: half the cost of objects when thousands are read. */
  prepareRows<T extends unknown[]>(sql: string): RowsOf<T> {
    const statement = this.#db.prepare(sql)
    statement.setReturnArrays(true)
    return rowsOf<T>(statement)
  }

  prepare(sql: string): StatementSync {
    return this.#db.prepare(sql)
  }

  /**
   * One write transaction. `body` and `after` are synchronous: nothing else in this process can run in between. `after` is told
   * whether it was committed.
   */
  write<T>(body: () => T, after?: (isCommitted: boolean) => void): Promise<T> {
    return this.#named(() => this.#transaction(this.#beginWrite, body, after))
  }

  /** Several reads from one snapshot. */
  read<T>(body: () => T): Promise<T> {
    return this.#named(() => this.#transaction(this.#beginRead, body))
  }

  /** A single reading statement, which needs no transaction. */
  look<T>(body: () => T): Promise<T> {
    return this.#named(body)
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close()
  }

  async #named<T>(run: () => T): Promise<T> {
    try {
      return await whenFree(run, BUSY_MS_MAX)
    } catch (error) {
      throw named(error, this.path)
    }
  }

  #transaction<T>(begin: StatementSync, body: () => T, after?: (isCommitted: boolean) => void): T {
    begin.run()
    try {
      const result = body()
      this.#commit.run()
      after?.(true)
      return result
    } catch (error) {
      // A full disk may already have caused a rollback.
      if (this.#db.isTransaction) this.#db.exec('rollback')
      after?.(false)
      throw error
    }
  }
}

function foreign(path: string): ScrapeError {
  return new ScrapeError('E_OPTION', `${path} is a database, but not a frontier`, {
    fix: 'Use a separate file for the frontier.',
  })
}

function newer(path: string, version: number): ScrapeError {
  return new ScrapeError('E_OPTION', `${path} has schema version ${version}, this Sluice knows ${MIGRATIONS.length}`, {
    fix: 'Resume the run with the newer Sluice that began it.',
  })
}

/** File and disk errors become E_OUTPUT; any other error is a bug and is passed on. */
function named(error: unknown, path: string): unknown {
  if (error instanceof ScrapeError) return error
  const code = sqliteCode(error)
  const message = `the frontier ${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`
  if (code === SQLITE_NOTADB || code === SQLITE_CORRUPT) {
    return new ScrapeError('E_OUTPUT', `${path} is damaged or no SQLite file`, {
      cause: error,
      fix: 'Choose another file, or begin the run anew: what its sinks hold is untouched.',
    })
  }
  if (code === SQLITE_BUSY) {
    return new ScrapeError('E_OUTPUT', `${path} was locked for ${BUSY_MS_MAX} ms`, {
      cause: error,
      fix: 'See which process holds the file (`fuser FILE`); a database tool with an open transaction does.',
    })
  }
  const isFileTrouble = typeof (error as { syscall?: unknown }).syscall === 'string'
  return isFileTrouble || UNWRITABLE.has(code ?? 0) ? new ScrapeError('E_OUTPUT', message, { cause: error }) : error
}
