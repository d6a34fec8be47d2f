/** The runs of a fleet: their records, and the states workers bring them to. */
import { ScrapeError } from '../core/errors.ts'
import type { RunRecord, RunState } from '../core/run.ts'
import type { Row, Rows, SqlDatabase } from '../drivers/sql.ts'
import type { NewStoredRun, RunOptions, Store, StoredRun } from './contract.ts'

type Runs = Pick<Store, 'createRun' | 'findRun' | 'listRuns' | 'lastSuccesses' | 'saveRun' | 'wakeRun'>

/** Told of a run within the transaction that makes it so. */
export interface RunWatch {
  began(rows: Rows, record: RunRecord): Promise<void>
  /** Of some runs more than once. */
  ended(rows: Rows, record: RunRecord): Promise<void>
  /** Whether a line of a log is for `logged`. */
  isNews(line: string): boolean
  logged(rows: Rows, runId: string, lines: readonly string[]): Promise<void>
}

const RUNS_LISTED_MAX = 100
const COLUMNS = 'record, definition_hash, options, created_ms, woken_ms'

export function sqlRuns(db: SqlDatabase, watch: RunWatch | undefined): Runs {
  const { prefix, now, oneOf } = db.dialect
  return {
    async createRun({ record, definitionHash, options }: NewStoredRun) {
      const created = await db.transaction(async (rows) => {
        const added = await rows(
          `insert into ${prefix}run_record (id, scraper, state, record, definition_hash, options, region)
           values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing returning id`,
          [
            record.id,
            record.scraper,
            record.state,
            JSON.stringify(record),
            definitionHash,
            JSON.stringify(options),
            record.region ?? null,
          ],
        )
        if (added.length > 0) await watch?.began(rows, record)
        return added
      })
      if (created.length > 0) return
      // Unless it is our own: the answer to the first try was lost.
      const [there] = await db.rows(`select record from ${prefix}run_record where id = $1`, [record.id])
      if (there?.['record'] !== JSON.stringify(record))
        throw new ScrapeError('E_OPTION', `there is a run ${record.id} already`)
    },

    async findRun(word) {
      const [found] = await db.rows(
        `select ${COLUMNS} from ${prefix}run_record
         where cast($1 as text) is null or id = $1 or scraper = $1 order by created_ms desc, id desc limit 1`,
        [word ?? null],
      )
      return found === undefined ? undefined : toRun(found)
    },

    async listRuns({ scraper, states, page, limit = RUNS_LISTED_MAX, openTo } = {}) {
      const found = await db.rows(
        `select ${COLUMNS} from ${prefix}run_record where (cast($1 as text) is null or scraper = $1)
         and (cast($2 as text) is null or ${oneOf('state', '$2')}) and (cast($4 as text) is null or id < $4)
         ${openTo === undefined ? '' : 'and (region is null or region = cast($5 as text))'} order by ${page === undefined ? 'created_ms desc, ' : ''}id desc limit $3`,
        [
          scraper ?? null,
          states === undefined ? null : JSON.stringify(states),
          limit,
          page?.before ?? null,
          ...(openTo === undefined ? [] : [openTo.region ?? null]),
        ],
      )
      return found.map(toRun)
    },

    async lastSuccesses() {
      // By the index over scraper and time: 1 row for each scraper is read, however many runs there are of another.
      const found = await db.rows(
        `select known.scraper, (select record from ${prefix}run_record as its where its.scraper = known.scraper
           and its.state = 'finished' order by its.created_ms desc, its.id desc limit 1) as record
         from (select distinct scraper from ${prefix}run_record) as known`,
        [],
      )
      return new Map(
        found.flatMap(({ scraper, record }) => {
          const { finishedAt } = record === null ? { finishedAt: null } : (JSON.parse(String(record)) as RunRecord)
          return finishedAt === null ? [] : [[String(scraper), Date.parse(finishedAt)]]
        }),
      )
    },

    async saveRun(record: RunRecord, from: readonly RunState[]) {
      return await db.transaction(async (rows) => {
        const changed = await rows(
          `update ${prefix}run_record set record = $2, state = $3 where id = $1 and ${oneOf('state', '$4')} returning id`,
          [record.id, JSON.stringify(record), record.state, JSON.stringify(from)],
        )
        if (changed.length > 0 && record.state !== 'running') await watch?.ended(rows, record)
        return changed.length > 0
      })
    },

    async wakeRun(record: RunRecord, options: RunOptions) {
      await db.rows(
        `update ${prefix}run_record set record = $2, state = $3, options = $4, region = $5, woken_ms = ${now} where id = $1`,
        [record.id, JSON.stringify(record), record.state, JSON.stringify(options), record.region ?? null],
      )
    },
  }
}

function toRun(row: Row): StoredRun {
  return {
    record: JSON.parse(String(row['record'])),
    definitionHash: String(row['definition_hash']),
    options: JSON.parse(String(row['options'])),
    createdAtMs: Number(row['created_ms']),
    wokenAtMs: Number(row['woken_ms']),
  }
}
