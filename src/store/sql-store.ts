/** The store in SQL. Where the databases differ is in their `Dialect`; what is asked of them is here, once. */
import { ScrapeError } from '../core/errors.ts'
import { contentKey, type ItemRow } from '../core/item.ts'
import type { RunRecord, RunState } from '../core/run.ts'
import type { Row, Rows, SqlDatabase } from '../drivers/sql.ts'
import {
  GONE_MS,
  LOG_LINES_MAX,
  type NewStoredRun,
  type NewWorker,
  type RunOptions,
  STUCK_MS,
  type Store,
  type StoredRun,
  type StoredWorker,
  type WorkerReport,
  type WorkPart,
} from './contract.ts'

const RUNS_LISTED_MAX = 100
const ITEMS_AT_ONCE = 200
/** Old log lines are looked for in one of so many writes: the bound may be passed by a little. */
const TRIM_ONE_IN = 50

/** Told of a run within the transaction that makes it so. */
export interface RunWatch {
  began(rows: Rows, record: RunRecord): Promise<void>
  /** Of some runs more than once. */
  ended(rows: Rows, record: RunRecord): Promise<void>
  /** Whether a line of a log is for `logged`. */
  isNews(line: string): boolean
  logged(rows: Rows, runId: string, lines: readonly string[]): Promise<void>
}

/** `dropQueue` removes the queue and the items of a run, where they live in this database. */
export function sqlStore(
  db: SqlDatabase,
  dropQueue: (runId: string) => Promise<void> = async () => {},
  watch?: RunWatch,
): Store {
  const { prefix, now, oneOf } = db.dialect
  const alive = `ended_ms is null and beat_ms > ${now} - ${STUCK_MS}`
  const runColumns = 'record, definition_hash, options, created_ms, woken_ms'
  const workerColumns = `id, run_id, scraper, host, pid, region, only_part, report, started_ms, ${now} - beat_ms as silent_ms,
    case when ended_ms is not null then 'ended' when beat_ms < ${now} - ${GONE_MS} then 'gone'
      when not (${alive}) then 'stuck'
      when is_drain_asked = 1 then 'draining' else 'working' end as state`

  return {
    place: db.place,

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
        `select ${runColumns} from ${prefix}run_record
         where cast($1 as text) is null or id = $1 or scraper = $1 order by created_ms desc, id desc limit 1`,
        [word ?? null],
      )
      return found === undefined ? undefined : toRun(found)
    },

    async listRuns({ scraper, states, page, limit = RUNS_LISTED_MAX, openTo } = {}) {
      const found = await db.rows(
        `select ${runColumns} from ${prefix}run_record where (cast($1 as text) is null or scraper = $1)
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

    async registerWorker({ id, runId, scraper, host, pid, region, only }: NewWorker) {
      await db.rows(
        `insert into ${prefix}worker (id, run_id, scraper, host, pid, region, only_part) values ($1, $2, $3, $4, $5, $6, $7)
         on conflict do nothing`,
        [id, runId, scraper, host, pid, region ?? null, only ?? null],
      )
    },

    async beat(workerId: string, report: WorkerReport) {
      const [told] = await db.rows(
        `update ${prefix}worker set beat_ms = ${now}, report = $2 where id = $1 and ended_ms is null
         returning is_drain_asked, beat_ms`,
        [workerId, JSON.stringify(report)],
      )
      return { isDrainAsked: Number(told?.['is_drain_asked'] ?? 0) === 1, nowMs: Number(told?.['beat_ms'] ?? 0) }
    },

    async endWorker(workerId: string, report: WorkerReport) {
      await db.rows(`update ${prefix}worker set beat_ms = ${now}, ended_ms = ${now}, report = $2 where id = $1`, [
        workerId,
        JSON.stringify(report),
      ])
    },

    async listWorkers({ runId, isAlive } = {}) {
      const found = await db.rows(
        `select ${workerColumns} from ${prefix}worker where (cast($1 as text) is null or run_id = $1)
         ${isAlive === undefined ? '' : `and ${isAlive ? '' : 'not '}(${alive})`} order by started_ms desc, id`,
        [runId ?? null],
      )
      return found.map(toWorker)
    },

    async askDrain(workerId: string) {
      const asked = await db.rows(
        `update ${prefix}worker set is_drain_asked = 1 where id = $1 and ended_ms is null returning id`,
        [workerId],
      )
      return asked.length > 0
    },

    async putSnapshot(runId: string, name: string, bytes: Uint8Array) {
      await db.rows(
        `insert into ${prefix}snapshot (run_id, name, bytes) values ($1, $2, $3)
         on conflict (run_id, name) do update set bytes = excluded.bytes`,
        [runId, name, bytes],
      )
    },

    async getSnapshot(runId: string, name: string) {
      const [found] = await db.rows(`select bytes from ${prefix}snapshot where run_id = $1 and name = $2`, [
        runId,
        name,
      ])
      return found?.['bytes'] as Uint8Array | undefined
    },

    async putItems(runId: string, items: readonly ItemRow[]) {
      const answers: ('new' | 'same' | 'changed')[] = []
      for (let at = 0; at < items.length; at += ITEMS_AT_ONCE)
        answers.push(...(await putSome(db, runId, items.slice(at, at + ITEMS_AT_ONCE))))
      return answers
    },

    async readItems(runId: string, { afterSeq, max }: { afterSeq: number; max: number }) {
      const found = await db.rows(
        `select seq, key, json from ${prefix}run_item where run_id = $1 and seq > $2 order by seq limit $3`,
        [runId, afterSeq, max],
      )
      return found.map(({ seq, key, json }) => ({ seq: Number(seq), key: String(key), json: String(json) }))
    },

    async countItems(runId: string) {
      const [row] = await db.rows(`select count(*) as count from ${prefix}run_item where run_id = $1`, [runId])
      return Number(row!['count'])
    },

    async addLogs(runId: string, lines: readonly string[]) {
      if (lines.length === 0) return
      const places = lines.map((_, i) => `($1, $${i + 2})`).join(', ')
      await db.rows(`insert into ${prefix}run_log (run_id, line) values ${places}`, [runId, ...lines])
      const news = watch === undefined ? [] : lines.filter(watch.isNews)
      if (news.length > 0) await db.transaction((rows) => watch!.logged(rows, runId, news))
      if (Math.random() * TRIM_ONE_IN >= 1) return
      await db.rows(
        `delete from ${prefix}run_log where run_id = $1 and id <=
         (select id from ${prefix}run_log where run_id = $1 order by id desc limit 1 offset $2)`,
        [runId, LOG_LINES_MAX],
      )
    },

    async readLogs(runId: string, { after, max }: { after: number; max: number }) {
      const found = await db.rows(
        `select id, line from ${prefix}run_log where run_id = $1 and id > $2 order by id limit $3`,
        [runId, after, max],
      )
      return found.map(({ id, line }) => ({ id: Number(id), line: String(line) }))
    },

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

/** The first of a key stays. Of two in one call the second is judged by the first. */
async function putSome(db: SqlDatabase, runId: string, items: readonly ItemRow[]) {
  const { prefix, oneOf, inTurn } = db.dialect
  const contents = items.map(({ json, content }) => content ?? contentKey(json))
  const rows = items.map((_, i) => `($${3 * i + 2}, $${3 * i + 3}, $${3 * i + 4})`).join(', ')
  const values = items.flatMap(({ key, json }, i) => [key, contents[i]!, json])
  const added = await db.rows(
    `insert into ${prefix}run_item (run_id, key, content, json) select $1, given.* from ${inTurn} (values ${rows}) as given
     where true on conflict (run_id, key) do nothing returning key`,
    [runId, ...values],
  )
  const fresh = new Set(added.map(({ key }) => String(key)))
  const known =
    fresh.size === items.length
      ? []
      : await db.rows(`select key, content from ${prefix}run_item where run_id = $1 and ${oneOf('key', '$2')}`, [
          runId,
          JSON.stringify(items.map(({ key }) => key)),
        ])
  const before = new Map(known.map(({ key, content }) => [String(key), String(content)]))
  return items.map(({ key }, i) => {
    if (fresh.delete(key)) return 'new' as const
    return before.get(key) === contents[i] ? ('same' as const) : ('changed' as const)
  })
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

const textOf = (value: unknown) => (value === null || value === undefined ? undefined : String(value))

function toWorker(row: Row): StoredWorker {
  return {
    id: String(row['id']),
    runId: String(row['run_id']),
    scraper: String(row['scraper']),
    host: String(row['host']),
    pid: Number(row['pid']),
    region: textOf(row['region']),
    only: textOf(row['only_part']) as WorkPart | undefined,
    state: row['state'] as StoredWorker['state'],
    startedAtMs: Number(row['started_ms']),
    silentMs: Number(row['silent_ms']),
    report: row['report'] === null ? undefined : (JSON.parse(String(row['report'])) as WorkerReport),
  }
}
