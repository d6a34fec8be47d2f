/** The workers of a fleet: who is there, and how they were at their last heartbeat. */
import type { Row, SqlDatabase } from '../drivers/sql.ts'
import {
  GONE_MS,
  type NewWorker,
  STUCK_MS,
  type Store,
  type StoredWorker,
  type WorkerReport,
  type WorkPart,
} from './contract.ts'

type Workers = Pick<Store, 'registerWorker' | 'beat' | 'endWorker' | 'listWorkers' | 'askDrain'>

export function sqlWorkers(db: SqlDatabase): Workers {
  const { prefix, now } = db.dialect
  const alive = `ended_ms is null and beat_ms > ${now} - ${STUCK_MS}`
  const columns = `id, run_id, scraper, host, pid, region, only_part, report, started_ms, ${now} - beat_ms as silent_ms,
    case when ended_ms is not null then 'ended' when beat_ms < ${now} - ${GONE_MS} then 'gone'
      when not (${alive}) then 'stuck'
      when is_drain_asked = 1 then 'draining' else 'working' end as state`
  return {
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
        `select ${columns} from ${prefix}worker where (cast($1 as text) is null or run_id = $1)
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
