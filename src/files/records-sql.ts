/** Records of stored files in SQL that both PostgreSQL and SQLite understand. */
import type { FileRecord, FileRecords } from './contract.ts'

/** A database with the table. `prefix` precedes its name (`sluice.`), parameters are `$1`, `$2` … */
interface RecordsDatabase {
  readonly prefix: string
  rows(sql: string, values: readonly (string | number | null)[]): Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

/** One step of a migration; never edit a released one. */
export const fileTable = (prefix: string): string => `
  create table ${prefix}files (
    run_id text not null,
    task_id text not null,
    scraper text not null,
    user_name text not null,
    url text not null,
    name text not null,
    bytes bigint not null,
    sha256 text not null,
    content_type text not null,
    location text not null,
    is_same int not null,
    stored_ms bigint not null,
    meta text not null,
    extra text not null,
    primary key (run_id, task_id)
  );
  create index files_sha256 on ${prefix}files (sha256);`

const COLUMNS = [
  ...['run_id', 'task_id', 'scraper', 'user_name', 'url', 'name', 'bytes', 'sha256', 'content_type', 'location'],
  ...['is_same', 'stored_ms', 'meta', 'extra'],
]
const RECORDS_AT_ONCE = 50
const LISTED_MAX = 1000

export function sqlFileRecords(db: RecordsDatabase): FileRecords {
  const table = `${db.prefix}files`
  const changes = COLUMNS.slice(2).map((column) => `${column} = excluded.${column}`)
  return {
    async put(records) {
      // One statement cannot change a row twice: of two records of the same task, the last counts.
      const unique = [...new Map(records.map((record) => [`${record.runId} ${record.taskId}`, record])).values()]
      for (let at = 0; at < unique.length; at += RECORDS_AT_ONCE) {
        const some = unique.slice(at, at + RECORDS_AT_ONCE)
        const places = some.map((_, i) => `(${COLUMNS.map((_, j) => `$${i * COLUMNS.length + j + 1}`).join(', ')})`)
        await db.rows(
          `insert into ${table} (${COLUMNS.join(', ')}) values ${places.join(', ')}
           on conflict (run_id, task_id) do update set ${changes.join(', ')}`,
          some.flatMap(valuesOf),
        )
      }
    },

    async findStored(sha256, place) {
      const [found] = await db.rows(
        `select location from ${table} where sha256 = $1 and substr(location, 1, length($2)) = $2
         order by is_same, stored_ms limit 1`,
        [sha256, place],
      )
      return found === undefined ? undefined : String(found['location'])
    },

    async count(runId) {
      const [found] = await db.rows(
        `select sum(1 - is_same) as stored, sum(is_same) as same, sum(case when is_same = 0 then bytes else 0 end) as bytes
         from ${table} where run_id = $1`,
        [runId],
      )
      const number = (name: string) => Number(found?.[name] ?? 0)
      return { stored: number('stored'), same: number('same'), bytes: number('bytes') }
    },

    async list(runId, { after = '', limit = LISTED_MAX } = {}) {
      const found = await db.rows(
        `select ${COLUMNS.join(', ')} from ${table} where run_id = $1 and task_id > $2 order by task_id limit $3`,
        [runId, after, Math.min(limit, LISTED_MAX)],
      )
      return found.map(toRecord)
    },

    [Symbol.asyncDispose]: () => db.close(),
  }
}

function valuesOf(record: FileRecord): (string | number)[] {
  // PostgreSQL's text cannot contain NUL, and neither database needs lone surrogates.
  const text = (value: string) => value.replaceAll('\0', '').toWellFormed()
  const json = (value: unknown) => JSON.stringify(value).replaceAll('\\u0000', '').toWellFormed()
  return [
    ...[record.runId, record.taskId, record.scraper, record.user, record.url, record.name].map(text),
    ...[record.bytes, record.sha256, text(record.contentType), record.where],
    ...[record.isSame ? 1 : 0, record.storedAtMs, json(record.meta), json(record.extra)],
  ]
}

function toRecord(row: Record<string, unknown>): FileRecord {
  const text = (name: string) => String(row[name])
  return {
    runId: text('run_id'),
    taskId: text('task_id'),
    scraper: text('scraper'),
    user: text('user_name'),
    url: text('url'),
    name: text('name'),
    bytes: Number(row['bytes']),
    sha256: text('sha256'),
    contentType: text('content_type'),
    where: text('location'),
    isSame: Number(row['is_same']) === 1,
    storedAtMs: Number(row['stored_ms']),
    meta: JSON.parse(text('meta')),
    extra: JSON.parse(text('extra')),
  }
}
