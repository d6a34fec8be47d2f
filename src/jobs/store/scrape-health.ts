/**
 * How scraping went: a run's pages by result, one row per class (`ok`, or the class of the error), in the minute the run ended. A
 * run that was resumed and ended again replaces its rows. Finer resolution is in the metrics, not here.
 */
import type { RunRecord } from '../../core/run.ts'
import type { Rows, SqlDatabase } from '../../drivers/sql.ts'
import type { HistoryEvent, IngestedRun, Projection } from '../../server/history/contract.ts'
import { Conditions } from './conditions.ts'
import { insertMany, numberOf, type Value } from './rows.ts'

const COLUMNS = 'minute scraper class run_id pages items bytes work_ms p50_ms p95_ms'.split(' ')

interface HealthQuery {
  /** ISO 8601; `from` is included, `below` is not. */
  from: string
  below: string
  scraper?: string | undefined
  per: 'hour' | 'day'
}

export class ScrapeHealth implements Projection {
  readonly name = 'scrape-health'
  readonly #db: SqlDatabase

  constructor(db: SqlDatabase) {
    this.#db = db
  }

  accepts(): boolean {
    return true
  }

  async project(): Promise<HistoryEvent[]> {
    return []
  }

  async finish(rows: Rows, { record }: IngestedRun): Promise<HistoryEvent[]> {
    if (record === undefined) return []
    const { prefix } = this.#db.dialect
    await rows(`delete from ${prefix}scrape_health where run_id = $1`, [record.id])
    await insertMany(rows, { into: `${prefix}scrape_health`, columns: COLUMNS, records: rowsOf(record) })
    return []
  }

  async read({ from, below, scraper, per }: HealthQuery) {
    const { name, prefix } = this.#db.dialect
    const bucket =
      name === 'postgres'
        ? `to_char(date_trunc('${per}', minute at time zone 'UTC'), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`
        : `substr(minute, 1, ${per === 'day' ? 10 : 13}) || '${per === 'day' ? 'T00:00:00Z' : ':00:00Z'}'`
    const where = new Conditions().add('minute >= ?', from).add('minute < ?', below).maybe('scraper = ?', scraper)
    const rows = await this.#db.rows(
      `select ${bucket} as at, scraper, class, count(distinct run_id) as runs, sum(pages) as pages, sum(items) as items,
         sum(bytes) as bytes, sum(work_ms) as work_ms, sum(p50_ms * pages) as p50_weight, max(p95_ms) as p95_ms
       from ${prefix}scrape_health ${where.sql} group by 1, 2, 3 order by 1, 2, 3`,
      where.values,
    )
    return [...Map.groupBy(rows, (row) => `${row['at']} ${row['scraper']}`).values()].map((group) => {
      const ok = group.find((row) => row['class'] === 'ok')
      const number = (field: string) => Number(ok?.[field] ?? 0)
      const pages = group.reduce((sum, row) => sum + Number(row['pages']), 0)
      const failed = group.filter((row) => row['class'] !== 'ok')
      const workMs = number('work_ms')
      return {
        at: String(group[0]!['at']),
        scraper: String(group[0]!['scraper']),
        runs: number('runs'),
        pages,
        items: number('items'),
        bytes: number('bytes'),
        pagesPerSecond: workMs === 0 ? null : (number('pages') / workMs) * 1000,
        itemsPerSecond: workMs === 0 ? null : (number('items') / workMs) * 1000,
        responseMsP50: number('pages') === 0 ? null : number('p50_weight') / number('pages'),
        responseMsP95: numberOf(ok?.['p95_ms']),
        successRate: pages === 0 ? null : number('pages') / pages,
        errors: failed.map((row) => ({
          class: String(row['class']),
          count: Number(row['pages']),
          rate: pages === 0 ? 0 : Number(row['pages']) / pages,
        })),
      }
    })
  }
}

function rowsOf(record: RunRecord): Value[][] {
  const { id, scraper, finishedAt, startedAt, pages, items, bytes, durationMs, latencyMs, errors } = record
  const minute = `${(finishedAt ?? startedAt).slice(0, 16)}:00.000Z`
  const found = items.new + items.same + items.changed
  const ok: Value[] = [
    minute,
    scraper,
    'ok',
    id,
    pages.ok,
    found,
    bytes,
    Math.round(durationMs),
    latencyMs.p50,
    latencyMs.p95,
  ]
  const classes = Map.groupBy(errors, (error) => error.class)
  return [
    ok,
    ...[...classes].map(([name, some]): Value[] => {
      const count = some.reduce((sum, error) => sum + error.count, 0)
      return [minute, scraper, name, id, count, 0, 0, 0, null, null]
    }),
  ]
}
