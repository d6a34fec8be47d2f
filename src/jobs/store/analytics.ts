/** Analytics per day, read from the daily rollups; see `contract.ts` for what they count. */

import type { Row, SqlDatabase } from '../../drivers/sql.ts'
import { WEIGHTS } from '../match/quality.ts'
import { ask } from './ask.ts'
import { Conditions } from './conditions.ts'
import { FILLED_FIELDS, PAY_BUCKET, ROLLUPS, TIME_TABLES, wordsOf } from './contract.ts'
import { textOf } from './rows.ts'

/** Both days included: `2026-11-15`. */
interface Days {
  from: string
  to: string
}

interface Kind {
  source?: string | undefined
  employment_type?: string | undefined
  workplace?: string | undefined
}

const DAY_MS = 86_400_000

export class Analytics {
  readonly #db: SqlDatabase
  readonly #prefix: string

  constructor(db: SqlDatabase) {
    this.#db = db
    this.#prefix = db.dialect.prefix
  }

  /** active: seen on that day. A job on two boards counts once, unless one source is requested. */
  async jobsPerDay({ from, to }: Days, { source, ...kind }: Kind) {
    const of = (where: Conditions) =>
      where.maybe('employment_type = ?', kind.employment_type).maybe('workplace = ?', kind.workplace)
    const seen = of(between({ from, to }).maybe('source = ?', source))
    const view = source === undefined ? 'seen_by_day' : 'source_by_day'
    const active = await this.#rows(
      `select cast(day as text) as day, sum(jobs) as jobs from ${await this.#counts(view, { from, to }, seen)} as n ${seen.sql} group by day order by day`,
      seen,
    )
    const happened = of(between({ from, to }).maybe('source = ?', source))
    const events = await this.#rows(
      `select cast(day as text) as day, type, sum(events) as events from ${await this.#counts('event_by_day', { from, to }, happened)} as n ${happened.sql} group by day, type`,
      happened,
    )
    const days = new Map<string, { day: string; active: number; new: number; updated: number; gone: number }>()
    const at = (row: Row) => {
      const day = String(row['day'])
      const known = days.get(day) ?? { day, active: 0, new: 0, updated: 0, gone: 0 }
      days.set(day, known)
      return known
    }
    for (const row of active) at(row).active = Number(row['jobs'])
    for (const row of events) {
      const name = COUNTED_AS[String(row['type'])]
      if (name !== undefined) at(row)[name] += Number(row['events'])
    }
    return [...days.values()].sort((a, b) => (a.day < b.day ? -1 : 1))
  }

  /** As of the last day with observations; `new` and `gone` cover all days. */
  async byCompany(days: Days, limit: number) {
    const day = await this.#lastDay(days)
    if (day === undefined) return { day: null, data: [] }
    const where = new Conditions().add('n.day = ?', day).add('n.company_id is not null')
    const rows = await this.#rows(
      `select c.id, c.name, n.jobs from ${await this.#counts('company_by_day', { from: day, to: day }, where)} as n join @company c on c.id = n.company_id ${where.sql}
       order by n.jobs desc, c.id limit ${where.value(limit)}`,
      where,
    )
    return {
      day,
      data: rows.map((row) => ({ id: String(row['id']), name: String(row['name']), jobs: Number(row['jobs']) })),
    }
  }

  async byLocation(days: Days, limit: number) {
    const day = await this.#lastDay(days)
    if (day === undefined) return { day: null, data: [] }
    const where = new Conditions().add('n.day = ?', day)
    const rows = await this.#rows(
      `select l.id, l.name, l.city, l.region, l.country_iso2, n.jobs
       from ${await this.#counts('location_by_day', { from: day, to: day }, where)} as n join @location l on l.id = n.location_id ${where.sql}
       order by n.jobs desc, l.id limit ${where.value(limit)}`,
      where,
    )
    const data = rows.map((row) => ({
      id: String(row['id']),
      name: String(row['name']),
      city: textOf(row['city']),
      region: textOf(row['region']),
      country_iso2: textOf(row['country_iso2']),
      jobs: Number(row['jobs']),
    }))
    return { day, data }
  }

  /** Jobs that appeared in these days, by the midpoint of their annual pay. */
  async salaryHistogram(
    days: Days,
    { source, currency }: { source?: string | undefined; currency?: string | undefined },
  ) {
    const where = between(days).maybe('source = ?', source).maybe('currency = ?', currency?.toUpperCase())
    const rows = await this.#rows(
      `select currency, bucket, sum(jobs) as jobs from ${await this.#counts('pay_by_day', days, where)} as n ${where.sql} group by currency, bucket order by currency, bucket`,
      where,
    )
    return rows.map((row) => ({
      currency: String(row['currency']),
      from: Number(row['bucket']),
      below: Number(row['bucket']) + PAY_BUCKET,
      jobs: Number(row['jobs']),
    }))
  }

  /** Annual pay of the jobs seen on each day. */
  async salaryTrend(days: Days, { source, currency }: { source?: string | undefined; currency?: string | undefined }) {
    const where = between(days)
      .add('source = ?', source ?? '')
      .maybe('currency = ?', currency?.toUpperCase())
    const rows = await this.#rows(
      `select cast(day as text) as day, currency, jobs, total, lowest, highest, p25, p50, p75 from ${await this.#counts('salary_by_day', days, where)} as n ${where.sql}
       order by 1, currency`,
      where,
    )
    return rows.map((row) => ({
      day: String(row['day']),
      currency: String(row['currency']),
      jobs: Number(row['jobs']),
      mean: Number(row['total']) / Number(row['jobs']),
      min: Number(row['lowest']),
      max: Number(row['highest']),
      p25: Number(row['p25']),
      p50: Number(row['p50']),
      p75: Number(row['p75']),
    }))
  }

  /** Companies that post more jobs than in the same number of days before. */
  async hiringTrends({ from, to }: Days, limit: number) {
    const before = dayOf(Date.parse(from) - (Date.parse(to) - Date.parse(from)) - DAY_MS)
    const where = between({ from: before, to }).add(`type in ('created', 'gone') and company_id is not null`)
    const since = where.value(from)
    const rows = await this.#rows(
      `select c.id, c.name, n.opened, n.opened_before, n.closed from (
         select company_id,
           coalesce(sum(events) filter (where type = 'created' and day >= ${since}), 0) as opened,
           coalesce(sum(events) filter (where type = 'created' and day < ${since}), 0) as opened_before,
           coalesce(sum(events) filter (where type = 'gone' and day >= ${since}), 0) as closed
         from ${await this.#counts('company_event_by_day', { from, to }, where)} as e ${where.sql} group by company_id
         order by 2 desc, 1 limit ${where.value(limit)}
       ) as n join @company c on c.id = n.company_id order by n.opened desc, c.id`,
      where,
    )
    return rows.map((row) => {
      const [opened, openedBefore, closed] = [row['opened'], row['opened_before'], row['closed']].map(Number)
      const change = openedBefore === 0 ? null : opened! / openedBefore! - 1
      return {
        id: String(row['id']),
        name: String(row['name']),
        new: opened!,
        newBefore: openedBefore!,
        gone: closed!,
        net: opened! - closed!,
        change,
      }
    })
  }

  /** Share of postings that have each field, and share without problems. */
  async quality(days: Days, source: string | undefined) {
    const where = between(days).maybe('source = ?', source)
    const sums = ['postings', 'valid', ...FILLED_FIELDS.map((field) => `has_${field}`)]
    const rows = await this.#rows(
      `select source, ${sums.map((name) => `sum(${name}) as ${name}`).join(', ')} from ${await this.#counts('quality_by_day', days, where)} as n ${where.sql}
       group by source order by source`,
      where,
    )
    return rows.map((row) => {
      const postings = Number(row['postings'])
      const completeness = Object.fromEntries(
        FILLED_FIELDS.map((field) => [field, Number(row[`has_${field}`]) / postings]),
      )
      return {
        source: String(row['source']),
        postings,
        valid: Number(row['valid']) / postings,
        completeness,
        score: FILLED_FIELDS.reduce((sum, field) => sum + completeness[field]! * WEIGHTS[field], 0) / WEIGHT_SUM,
      }
    })
  }

  /** How many jobs of each source other sources show too, and how many were reposted. */
  async duplicates(days: Days, source: string | undefined) {
    const where = between(days).maybe('source = ?', source)
    const shown = await this.#rows(
      `select source, sum(jobs) as jobs, sum(shared) as shared from ${await this.#counts('source_by_day', days, where)} as n ${where.sql} group by source order by source`,
      where,
    )
    const again = between(days).maybe('source = ?', source).add(`type in ('reposted', 'cluster_joined')`)
    const events = await this.#rows(
      `select source, type, sum(events) as events from ${await this.#counts('event_by_day', days, again)} as n ${again.sql} group by source, type`,
      again,
    )
    const [now] = await this.#db.rows(
      `select count(*) as jobs, coalesce(sum(sources), 0) as sources from ${this.#prefix}job_metric where sources > 1`,
      [],
    )
    const count = (name: string, type: string) =>
      Number(events.find((row) => row['source'] === name && row['type'] === type)?.['events'] ?? 0)
    return {
      sharedJobs: Number(now!['jobs']),
      sharedPostings: Number(now!['sources']),
      data: shown.map((row) => {
        const name = String(row['source'])
        const [jobs, shared] = [Number(row['jobs']), Number(row['shared'])]
        const share = jobs === 0 ? 0 : shared / jobs
        return { source: name, share, joined: count(name, 'cluster_joined'), reposted: count(name, 'reposted') }
      }),
    }
  }

  /** The last day with observations. Uses the smallest of the rollups. */
  async #lastDay(days: Days): Promise<string | undefined> {
    const where = between(days)
    const [row] = await this.#rows(
      `select cast(max(day) as text) as day from ${await this.#counts('seen_by_day', days, where)} as n ${where.sql}`,
      where,
    )
    return textOf(row?.['day']) ?? undefined
  }

  /**
   * The contents of a rollup's view for a query with known days: the tail is left out if the days end before it; otherwise
   * PostgreSQL gets the tail's bounds before it plans. Over 19 partitions this saves 30 ms.
   */
  async #counts(name: string, { to }: Days, where: Conditions): Promise<string> {
    const rollup = ROLLUPS.find((one) => one.name === name)!
    const sql = `select cast(day as text) as day from ${this.#prefix}rollup_watermark where rollup = $1`
    const [row] = await this.#db.rows(sql, [name])
    if (row === undefined) return `@${name}`
    const watermark = String(row['day'])
    if (to < watermark) return `@${name}_rollup`
    const time = TIME_TABLES[rollup.from]
    const [start, end] = [where.value(startOf(watermark)), where.value(startOf(dayOf(Date.parse(to) + DAY_MS)))]
    const source = `(select * from @${rollup.from} where ${time} >= ${start} and ${time} < ${end})`
    const columns = ['day', ...Object.keys(rollup.keys), ...Object.keys(rollup.values)].join(', ')
    return `(select ${columns} from @${name}_rollup where day < ${where.value(watermark)} union all
      select ${columns} from (${rollup.select({ prefix: '@', source, day: wordsOf(this.#db.dialect).dayOf(time) })}) as tail)`
  }

  async #rows(sql: string, { values }: Conditions): Promise<Row[]> {
    return await ask(this.#db, sql.replaceAll('@', this.#prefix), values)
  }
}

const COUNTED_AS: Readonly<Record<string, 'new' | 'updated' | 'gone'>> = {
  created: 'new',
  updated: 'updated',
  gone: 'gone',
}
const WEIGHT_SUM = FILLED_FIELDS.reduce((sum, field) => sum + WEIGHTS[field], 0)

const between = ({ from, to }: Days) => new Conditions().add('day >= ?', from).add('day <= ?', to)
const startOf = (day: string) => `${day}T00:00:00.000Z`
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
