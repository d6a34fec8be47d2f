/**
 * A table in a SQLite file: one row per item, one column per field, replaced by key when a later run finds the item again.
 *
 * Rows and the position they make up are one transaction, so the file is always consistent. Columns are of type ANY in a STRICT
 * table: a number stays a number and text stays text, whatever an earlier row contained. Nested values are JSON text, booleans 0
 * and 1. `_key`, `_run` and `_seq` identify the item, its run and its position in the log.
 */
import { statSync } from 'node:fs'
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { ScrapeError } from '../core/errors.ts'
import type { LoggedItem } from '../core/item.ts'
import { openSqlite, sqliteCode } from '../drivers/sqlite/open.ts'
import type { Sink, SinkResult, SinkSetup } from './contract.ts'
import { outputError, outputLost } from './file.ts'

const OWN_COLUMNS = ['_key', '_run', '_seq']

export class SqliteSink implements Sink {
  readonly name: string
  readonly path: string
  readonly #table: string
  readonly #runId: string
  readonly #fields: readonly string[]
  readonly #columns = new Set<string>()
  #db: DatabaseSync | undefined
  #upsert: StatementSync | undefined
  #lastSeq = 0

  constructor({ path, name = `sqlite:${path}`, setup }: { path: string; name?: string; setup: SinkSetup }) {
    this.name = name
    this.path = path
    this.#table = quote(setup.scraper.replaceAll('-', '_'))
    this.#runId = setup.runId
    this.#fields = setup.fields
  }

  async open(position: string | undefined): Promise<void> {
    try {
      this.#db = openSqlite(this.path, { busyMsMax: 5_000, synchronous: 'full', isPrivate: false })
      this.#createTables(this.#db)
      this.#cutAfter(this.#db, position)
    } catch (error) {
      throw sqliteError(this.path, error)
    }
  }

  async write(items: readonly LoggedItem[]): Promise<void> {
    if (items.length === 0) return
    const db = this.#opened()
    try {
      if (!db.isTransaction) db.exec('BEGIN IMMEDIATE')
      for (const item of items) this.#writeOne(db, item)
      this.#lastSeq = items.at(-1)!.seq
    } catch (error) {
      throw sqliteError(this.path, error)
    }
  }

  async flush(): Promise<string> {
    const db = this.#opened()
    try {
      if (db.isTransaction) {
        this.#storePosition(db)
        db.exec('COMMIT')
      }
    } catch (error) {
      throw sqliteError(this.path, error)
    }
    return String(this.#lastSeq)
  }

  soFar(): SinkResult {
    const { rows } = this.#opened()
      .prepare(`SELECT count(*) AS rows FROM ${this.#table} WHERE _run = ?`)
      .get(this.#runId)!
    return { target: this.path, rows: Number(rows), bytes: statSync(this.path).size }
  }

  async finish(): Promise<SinkResult> {
    await this.flush()
    try {
      this.#opened().exec('PRAGMA wal_checkpoint(TRUNCATE)')
      return this.soFar()
    } catch (error) {
      throw sqliteError(this.path, error)
    }
  }

  /** Unflushed rows are rolled back: they are still in the item log. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#db?.close()
    this.#db = undefined
  }

  #createTables(db: DatabaseSync): void {
    const own = '_key TEXT PRIMARY KEY NOT NULL, _run TEXT NOT NULL, _seq INTEGER NOT NULL'
    const columns = this.#fields.map((field) => `, ${quote(field)} ANY`).join('')
    db.exec(`CREATE TABLE IF NOT EXISTS ${this.#table} (${own}${columns}) STRICT`)
    db.exec(`CREATE INDEX IF NOT EXISTS ${quote(`${unquote(this.#table)}_run`)} ON ${this.#table} (_run, _seq)`)
    db.exec('CREATE TABLE IF NOT EXISTS _sluice (run TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL) STRICT')
    for (const { name } of db.prepare('SELECT name FROM pragma_table_info(?)').all(unquote(this.#table))) {
      if (!OWN_COLUMNS.includes(String(name))) this.#columns.add(String(name))
    }
    for (const field of this.#fields) if (!this.#columns.has(field)) this.#addColumn(db, field)
  }

  #cutAfter(db: DatabaseSync, position: string | undefined): void {
    const seq = position === undefined ? 0 : Number(position)
    if (!Number.isSafeInteger(seq)) throw outputLost(this.path, `its confirmed position reads "${position}"`)
    const held = db.prepare('SELECT seq FROM _sluice WHERE run = ?').get(this.#runId)
    if (position !== undefined && Number(held?.seq ?? 0) < seq) {
      const has = held === undefined ? 'nothing of this run' : `this run up to item ${held.seq}`
      throw outputLost(this.path, `it holds ${has}, but item ${seq} was confirmed as written`)
    }
    this.#lastSeq = seq
    db.exec('BEGIN IMMEDIATE')
    db.prepare(`DELETE FROM ${this.#table} WHERE _run = ? AND _seq > ?`).run(this.#runId, seq)
    this.#storePosition(db)
    db.exec('COMMIT')
  }

  #storePosition(db: DatabaseSync): void {
    db.prepare('INSERT INTO _sluice VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET seq = excluded.seq').run(
      this.#runId,
      this.#lastSeq,
    )
  }

  #writeOne(db: DatabaseSync, { key, json, seq }: LoggedItem): void {
    const item = JSON.parse(json) as Record<string, unknown>
    for (const field in item) if (!this.#columns.has(field)) this.#addColumn(db, field)
    this.#upsert ??= this.#prepareUpsert(db)
    const values: SQLInputValue[] = [key, this.#runId, seq]
    for (const column of this.#columns) values.push(toSql(Object.hasOwn(item, column) ? item[column] : null))
    this.#upsert.run(...values)
  }

  #prepareUpsert(db: DatabaseSync): StatementSync {
    const columns = [...OWN_COLUMNS, ...this.#columns].map(quote)
    const updates = columns.slice(1).map((column) => `${column} = excluded.${column}`)
    return db.prepare(
      `INSERT INTO ${this.#table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
       ON CONFLICT (_key) DO UPDATE SET ${updates.join(', ')}`,
    )
  }

  /** A field the table does not have yet: the schema grew, or does not list its fields. */
  #addColumn(db: DatabaseSync, field: string): void {
    db.exec(`ALTER TABLE ${this.#table} ADD COLUMN ${quote(field)} ANY`)
    this.#columns.add(field)
    this.#upsert = undefined
  }

  #opened(): DatabaseSync {
    if (this.#db === undefined) throw new Error(`the sink ${this.name} is not open`)
    return this.#db
  }
}

/** Whole numbers are stored as integers: the driver would store every plain number as a float. */
function toSql(value: unknown): SQLInputValue {
  if (value === null || value === undefined) return null
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  if (typeof value === 'boolean') return value ? 1n : 0n
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

function unquote(name: string): string {
  return name.slice(1, -1).replaceAll('""', '"')
}

/** SQLite's primary result codes that a person can do something about, mapped to file system error names. */
const ERRNO: Record<number, string> = { 8: 'EROFS', 10: 'EIO', 13: 'ENOSPC' }

function sqliteError(path: string, error: unknown): ScrapeError {
  if (error instanceof ScrapeError) return error
  const code = sqliteCode(error) ?? 0
  const errno = ERRNO[code]
  if (errno !== undefined)
    return outputError(path, Object.assign(new Error(String(error), { cause: error }), { code: errno }))
  const fix = code === 26 || code === 11 ? 'Choose another file: this one is no sound SQLite database.' : undefined
  const message = error instanceof Error ? error.message : String(error)
  return new ScrapeError('E_OUTPUT', `cannot write ${path}: ${message}`, { cause: error, ...(fix && { fix }) })
}
