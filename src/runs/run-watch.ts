/** Reports the start and end of stored runs in the transaction of that change, whichever worker makes it. */
import { type Limits, limitsSchema } from '../core/options.ts'
import { isComplete, type RunRecord } from '../core/run.ts'
import type { Dialect } from '../drivers/sql.ts'
import { eventRecorder } from '../server/webhooks/record.ts'
import { circuitsOpened, isOfCircuit, RUNS_BEFORE_MAX, runEnded, runStarted } from '../server/webhooks/run-events.ts'
import type { RunWatch } from '../store/runs.ts'

export function runWatch(dialect: Dialect): RunWatch {
  const record = eventRecorder({ dialect })
  return {
    isNews: isOfCircuit,
    async logged(rows, runId, lines) {
      const [run] = await rows(`select scraper from ${dialect.prefix}run_record where id = $1`, [runId])
      await record(rows, circuitsOpened({ id: runId, scraper: String(run?.['scraper'] ?? '') }, lines))
    },
    began: (rows, run) => record(rows, [runStarted(run)]),
    async ended(rows, run) {
      const found = await rows(
        `select id, record, options from ${dialect.prefix}run_record
         where scraper = $1 and (id = $2 or state in ('finished', 'failed')) order by created_ms desc limit $3`,
        [run.scraper, run.id, 10 * RUNS_BEFORE_MAX],
      )
      const own = found.find(({ id }) => id === run.id)
      const before = found
        .filter((row) => row !== own)
        .map((row) => JSON.parse(String(row['record'])) as RunRecord)
        .filter(isComplete)
      const { limits } = JSON.parse(String(own?.['options'] ?? '{"limits":{}}')) as { limits: Limits }
      await record(rows, runEnded({ record: run, before, failAt: failAtOf(limits) }))
    },
  }
}

/** The value set outside the scraper, or the default. */
export function failAtOf({ failAt }: Limits): number {
  return limitsSchema.shape.failAt.parse(failAt)
}
