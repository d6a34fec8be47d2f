/** Search for jobs and companies. Every query uses an index; newest first. */

import type { Row, SqlDatabase } from '../../drivers/sql.ts'
import { employerKey } from '../match/cluster.ts'
import { fold } from '../read/regions.ts'
import { ask } from './ask.ts'
import { Conditions } from './conditions.ts'
import { wordsOf } from './contract.ts'
import { textOf, timeOf } from './rows.ts'
import { type JobSummary, type JobView, jobViews, summaryFrom } from './view.ts'

interface JobQuery {
  /** Each word must be the start of a word in the job. */
  q?: string | undefined
  company?: string | undefined
  location?: string | undefined
  source?: string | undefined
  employment_type?: string | undefined
  workplace?: string | undefined
  /** The annual pay reaches this. */
  salary_min?: number | undefined
  currency?: string | undefined
  status?: string | undefined
  /** First seen at this time or later: ISO 8601. */
  since?: string | undefined
  limit: number
  /** Only jobs older than this one. */
  before?: number | undefined
}

interface JobHistoryEntry {
  at: string
  type: string
  source: string
  changed: string[]
  before: unknown
  after: unknown
}

interface CompanyEntry {
  /** Sort key. */
  key: string
  id: string
  name: string
  url: string | null
  logo: string | null
  jobs: number
  first_seen_at: string
  last_seen_at: string
}

const WORDS_MAX = 10
const LOCATIONS_MAX = 1000
const HISTORY_MAX = 200
/** How many of the newest jobs are searched for a word before its index is used. */
const NEWEST = 1000

export class JobSearch {
  readonly #db: SqlDatabase

  constructor(db: SqlDatabase) {
    this.#db = db
  }

  /** Returns one more than the limit if there are more. */
  async find(query: JobQuery): Promise<JobSummary[]> {
    const { dialect } = this.#db
    const { prefix } = dialect
    const { q, company, location, source } = query
    const where = new Conditions()
      .maybe('j.id < ?', query.before)
      .maybe('j.status = ?', query.status)
      .maybe('j.employment_type = ?', query.employment_type)
      .maybe('j.workplace = ?', query.workplace)
      .maybe('j.salary_annual_max >= ?', query.salary_min)
      .maybe('j.currency = ?', query.currency?.toUpperCase())
      .maybe('j.first_seen_at >= ?', query.since)
    if (company !== undefined)
      where.add(`j.company_id = (select id from ${prefix}company where key = ?)`, employerKey(company))
    if (source !== undefined)
      where.add(`exists (select 1 from ${prefix}job_source s where s.job_id = j.id and s.source = ?)`, source)
    if (location !== undefined) {
      const ids = where.value(JSON.stringify(await this.#locations(location)))
      where.add(`j.id in (select job_id from ${prefix}job_location where ${wordsOf(dialect).idIn('location_id', ids)})`)
    }
    const words = wordsIn(q)
    if (words.length === 0) return await this.#take(`${prefix}job j`, where, query)
    if (dialect.name === 'postgres') return await this.#takeWords(words, where, query)
    const match = words.map((word) => `"${word}"*`).join(' ')
    where.add(`j.id in (select rowid from ${prefix}job_words where job_words match ?)`, match)
    return await this.#take(`${prefix}job j`, where, query)
  }

  /**
   * PostgreSQL does not know how many jobs contain a word, and guesses badly: it reads all jobs one by one for a word that none
   * has, or sorts a hundred thousand for a word that all have. So the newest jobs are searched first; a word that is not common
   * among them is rare enough for its index.
   */
  async #takeWords(words: readonly string[], where: Conditions, query: JobQuery): Promise<JobSummary[]> {
    const { prefix } = this.#db.dialect
    const match = `words @@ to_tsquery('simple', ${where.value(words.map((word) => `'${word}':*`).join(' & '))})`
    const matching = where.copy().add(`j.${match}`)
    if (query.company !== undefined || query.location !== undefined)
      return await this.#take(`${prefix}job j`, matching, query)
    const before = query.before ?? Number.MAX_SAFE_INTEGER
    const newest = `(select * from ${prefix}job where id < ${before} order by id desc limit ${NEWEST}) j`
    const found = await this.#take(newest, matching, query)
    if (found.length > query.limit) return found
    const indexed = `(with found as materialized (select id from ${prefix}job where ${match}) select id from found) f`
    return await this.#take(`${indexed} join ${prefix}job j on j.id = f.id`, where, query)
  }

  async #take(from: string, where: Conditions, { limit }: JobQuery): Promise<JobSummary[]> {
    const rows = await ask(
      this.#db,
      `select j.id, j.status, j.first_seen_at, j.last_seen_at, j.summary from ${from} ${where.sql}
       order by j.id desc limit ${limit + 1}`,
      where.values,
    )
    return rows.map(summaryFrom)
  }

  async get(id: number): Promise<(JobView & { history: JobHistoryEntry[] }) | undefined> {
    const { dialect } = this.#db
    const [view] = await jobViews(this.#db.rows, dialect, [id])
    if (view === undefined) return undefined
    const events = await this.#db.rows(
      `select happened_at, type, source, changed, before, after from ${dialect.prefix}job_event
       where job_id = $1 order by happened_at desc, type limit ${HISTORY_MAX}`,
      [id],
    )
    return { ...view, history: events.map(historyOf) }
  }

  /** Sorted by name; `jobs` counts active ones. Returns one more than the limit if there are more. */
  async companies(query: {
    q?: string | undefined
    after?: string | undefined
    limit: number
  }): Promise<CompanyEntry[]> {
    const { prefix } = this.#db.dialect
    const key = query.q === undefined ? undefined : employerKey(query.q)
    const where = new Conditions().maybe('c.key > ?', query.after)
    if (key !== undefined && key !== '') where.add('c.key like ?', `${key}%`) // the key contains only letters and digits
    const rows = await this.#db.rows(
      `select c.id, c.key, c.name, c.url, c.logo, c.first_seen_at, c.last_seen_at,
         (select count(*) from ${prefix}job j where j.company_id = c.id and j.status = 'active') as jobs
       from ${prefix}company c ${where.sql} order by c.key limit ${where.value(query.limit + 1)}`,
      where.values,
    )
    return rows.map(companyOf)
  }

  async #locations(text: string): Promise<number[]> {
    const { prefix } = this.#db.dialect
    const place = fold(text)
    if (place === '') return []
    const where = new Conditions()
    if (/^[a-z]{2}$/i.test(text)) where.add('country_iso2 = ?', text.toUpperCase())
    else where.add(`search like ? escape '!'`, `%${place.replace(/[!%_]/g, '!$&')}%`)
    const sql = `select id from ${prefix}location ${where.sql} order by id limit ${LOCATIONS_MAX}`
    return (await this.#db.rows(sql, where.values)).map((row) => Number(row['id']))
  }
}

/** Letters and digits only: nothing that a search engine would interpret. */
export function wordsIn(text: string | undefined): string[] {
  return [...(text ?? '').toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)].slice(0, WORDS_MAX).map(([word]) => word)
}

function historyOf(row: Row): JobHistoryEntry {
  const json = (name: string): unknown => (row[name] === null ? null : JSON.parse(String(row[name])))
  return {
    at: timeOf(row['happened_at']),
    type: String(row['type']),
    source: String(row['source']),
    changed: (json('changed') ?? []) as string[],
    before: json('before'),
    after: json('after'),
  }
}

function companyOf(row: Row): CompanyEntry {
  return {
    id: String(row['id']),
    key: String(row['key']),
    name: String(row['name']),
    url: textOf(row['url']),
    logo: textOf(row['logo']),
    jobs: Number(row['jobs']),
    first_seen_at: timeOf(row['first_seen_at']),
    last_seen_at: timeOf(row['last_seen_at']),
  }
}
