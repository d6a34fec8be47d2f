/** Migrates a database to the version this program knows: once, however many processes open it at the same moment. */
import type { Pool } from 'pg'
import { ScrapeError } from '../../core/errors.ts'

const LOCK = 0x534c_0001

/** A part of the schema with its own version number. */
export interface Migrations {
  readonly part: string
  /** One entry per version, run in order. Never edit a released one. */
  readonly steps: readonly string[]
}

export async function migrate(pool: Pool, { part, steps }: Migrations): Promise<void> {
  if ((await versionOf(pool, part)) === steps.length) return
  const client = await pool.connect()
  try {
    await client.query('begin')
    // Held until the commit: other processes wait here, and find it done.
    await client.query('select pg_advisory_xact_lock($1, 0)', [LOCK])
    await client.query('create schema if not exists sluice')
    await client.query('create table if not exists sluice.migration (part text primary key, version int not null)')
    const version = (await versionOf(client, part)) ?? 0
    if (version > steps.length) throw newer(part, version, steps.length)
    if (version === 0) await checkEncoding(client)
    for (const step of steps.slice(version)) await client.query(step)
    const save = `insert into sluice.migration values ($1, $2) on conflict (part) do update set version = $2`
    await client.query(save, [part, steps.length])
    await client.query('commit')
    client.release()
  } catch (error) {
    await client.query('rollback').catch(() => {})
    client.release(error instanceof ScrapeError ? undefined : (error as Error))
    throw error
  }
}

type Queryable = Pick<Pool, 'query'>

async function versionOf(db: Queryable, part: string): Promise<number | undefined> {
  const { rows: found } = await db.query(`select to_regclass('sluice.migration') is not null as is_there`)
  if (found[0]!['is_there'] !== true) return undefined
  const { rows } = await db.query('select version from sluice.migration where part = $1', [part])
  return rows[0]?.['version'] as number | undefined
}

async function checkEncoding(db: Queryable): Promise<void> {
  const { rows } = await db.query('show server_encoding')
  const encoding = rows[0]!['server_encoding'] as string
  if (encoding === 'UTF8') return
  throw new ScrapeError('E_OPTION', `the database has the encoding ${encoding}, Sluice needs UTF8`, {
    fix: `Create one with: create database NAME encoding 'UTF8' template template0`,
  })
}

function newer(part: string, version: number, known: number): ScrapeError {
  return new ScrapeError('E_OPTION', `the database has ${part} schema version ${version}, this Sluice knows ${known}`, {
    fix: 'Use the newer Sluice that has migrated it, or a separate database.',
  })
}
