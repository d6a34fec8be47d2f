/** The store in SQL. Where the databases differ is in their `Dialect`; what is asked of them is in the files put together here. */
import type { SqlDatabase } from '../drivers/sql.ts'
import type { Store } from './contract.ts'
import { sqlRunData } from './run-data.ts'
import { type RunWatch, sqlRuns } from './runs.ts'
import { sqlWorkers } from './workers.ts'

/** `dropQueue` removes the queue and the items of a run, where they live in this database. */
export function sqlStore(
  db: SqlDatabase,
  dropQueue: (runId: string) => Promise<void> = async () => {},
  watch?: RunWatch,
): Store {
  const { prefix } = db.dialect
  return {
    place: db.place,
    ...sqlRuns(db, watch),
    ...sqlWorkers(db),
    ...sqlRunData(db, watch),

    async dropRun(id: string) {
      await dropQueue(id)
      for (const [table, column] of [
        ['snapshot', 'run_id'],
        ['run_item', 'run_id'],
        ['run_log', 'run_id'],
        ['worker', 'run_id'],
        ['run_record', 'id'],
      ])
        await db.rows(`delete from ${prefix}${table} where ${column} = $1`, [id])
    },

    [Symbol.asyncDispose]: () => db.close(),
  }
}
