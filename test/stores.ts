/** Both databases a store can use, for suites that run on either. */
import { join } from 'node:path'
import type { SqlDatabase } from '../src/drivers/sql.ts'
import { openPostgresDatabase } from '../src/store/postgres.ts'
import { openSqliteDatabase } from '../src/store/sqlite.ts'
import type { postgresForTests } from './services/postgres.ts'
import { temporaryFolder } from './sluice.ts'

type WithDatabase = (work: (db: SqlDatabase) => Promise<void>) => Promise<void>

/** The suite passes its server in, because which servers it needs is determined by its own imports. */
export const databases = (postgres: typeof postgresForTests): Readonly<Record<string, WithDatabase>> => ({
  'sqlite:': async (work) => {
    using folder = temporaryFolder()
    const db = openSqliteDatabase(join(folder.path, 'store.db'))
    await work(db).finally(() => db.close())
  },
  'postgres:': async (work) => {
    await using database = await postgres()
    const db = await openPostgresDatabase(database.url)
    await work(db).finally(() => db.close())
  },
})
