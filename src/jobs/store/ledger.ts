/** The jobs a batch touches, loaded with as few queries as possible. No table is ever read in full. */
import { hash } from 'node:crypto'
import type { Dialect, Row, Rows } from '../../drivers/sql.ts'
import { comparePrepared, type Prepared, prepare } from '../match/cluster.ts'
import { blockKeys } from '../match/cluster-of.ts'
import type { PostingState } from '../match/lifecycle.ts'
import type { Posting, Source } from '../read/posting.ts'
import { postingKey } from '../read/posting.ts'
import { wordsOf } from './contract.ts'
import { type JobEntry, newJob, type SourceEntry } from './entries.ts'
import { addSource, seeAgain } from './observe.ts'
import { numberOf, textOf, timeOf } from './rows.ts'

/** A posting is compared with at most this many jobs that share a key with it, and this many sources of each. */
const COMPARED_MAX = 20

const blocksOf = (prepared: Prepared) => blockKeys(prepared).map((key) => hash('sha256', key, 'hex').slice(0, 32))

export class Ledger {
  readonly jobs = new Map<string, JobEntry>()
  readonly #rows: Rows
  readonly #dialect: Dialect
  readonly #sources = new Map<string, SourceEntry>()
  readonly #byId = new Map<number, JobEntry>()
  readonly #byBlock = new Map<string, Set<JobEntry>>()
  readonly #prepared = new Map<SourceEntry, Prepared>()
  /** Block keys of new sources, to be stored. */
  readonly blocks: { block: string; job: JobEntry }[] = []

  constructor(rows: Rows, dialect: Dialect) {
    this.#rows = rows
    this.#dialect = dialect
  }

  /** Takes the postings of a listing, in order. Returns the sources that were newly seen: no duplicates, nothing late. */
  async see(postings: readonly Posting[], at: Date): Promise<SourceEntry[]> {
    await this.#loadSources(postings.map(postingKey))
    const unknown = postings.filter((posting) => !this.#sources.has(postingKey(posting))).map((one) => prepare(one))
    await this.#loadBlocks(unknown.flatMap(blocksOf))
    const preparedOf = new Map(unknown.map((prepared) => [prepared.posting, prepared]))
    const seen: SourceEntry[] = []
    for (const posting of postings) {
      const known = this.#sources.get(postingKey(posting))
      if (known === undefined) seen.push(this.#add(posting, preparedOf.get(posting)!, at))
      else if (seeAgain(known, posting, at)) seen.push(known)
    }
    return seen
  }

  /** Sources that match a condition, with all other sources of their jobs. `where` refers to `s`. */
  async find(where: string, values: readonly (string | number)[]): Promise<SourceEntry[]> {
    const { prefix } = this.#dialect
    const found = await this.#rows(`select s.key, s.job_id from ${prefix}job_source s where ${where}`, values)
    await this.#loadJobs(found.map((row) => Number(row['job_id'])))
    return found.flatMap((row) => this.#sources.get(String(row['key'])) ?? [])
  }

  /** Loads the postings of these sources, unless they are in memory. */
  async loadPostings(entries: readonly SourceEntry[]): Promise<void> {
    const { prefix, oneOf } = this.#dialect
    const keys = entries.filter(({ posting }) => posting === undefined).map(({ key }) => key)
    if (keys.length === 0) return
    const sql = `select key, posting from ${prefix}job_source where ${oneOf('key', '$1')}`
    for (const row of await this.#rows(sql, [JSON.stringify(keys)]))
      this.#sources.get(String(row['key']))!.posting = JSON.parse(String(row['posting'])) as Posting
  }

  #add(posting: Posting, prepared: Prepared, at: Date): SourceEntry {
    const blocks = blocksOf(prepared)
    const job = this.#jobOf(prepared, blocks) ?? newJob(postingKey(posting), at.toISOString())
    this.jobs.set(job.key, job)
    addSource(job, posting, at)
    const entry = job.sources.at(-1)!
    this.#sources.set(entry.key, entry)
    this.#prepared.set(entry, prepared)
    for (const block of blocks) {
      const sharing = this.#byBlock.get(block)
      if (sharing?.has(job) !== true) this.blocks.push({ block, job })
      if (sharing === undefined) this.#byBlock.set(block, new Set([job]))
      else sharing.add(job)
    }
    return entry
  }

  /** The first job with a source that is the same and none that is different. */
  #jobOf(prepared: Prepared, blocks: readonly string[]): JobEntry | undefined {
    const candidates = new Set(blocks.flatMap((block) => [...(this.#byBlock.get(block) ?? [])]))
    for (const job of [...candidates].slice(0, COMPARED_MAX)) {
      const verdicts = job.sources
        .slice(0, COMPARED_MAX)
        .map((entry) => comparePrepared(prepared, this.#preparedOf(entry)).verdict)
      if (verdicts.includes('same') && !verdicts.includes('different')) return job
    }
    return undefined
  }

  #preparedOf(entry: SourceEntry): Prepared {
    const known = this.#prepared.get(entry)
    if (known !== undefined) return known
    const prepared = prepare(entry.posting!)
    this.#prepared.set(entry, prepared)
    return prepared
  }

  async #loadSources(keys: readonly string[]): Promise<void> {
    await this.find(this.#dialect.oneOf('s.key', '$1'), [JSON.stringify(keys)])
  }

  async #loadBlocks(blocks: readonly string[]): Promise<void> {
    if (blocks.length === 0) return
    const { prefix, oneOf } = this.#dialect
    const sql = `select block, job_id from ${prefix}job_block where ${oneOf('block', '$1')} order by job_id`
    const found = await this.#rows(sql, [JSON.stringify([...new Set(blocks)])])
    const perBlock = new Map<string, number[]>()
    for (const row of found) {
      const ids = perBlock.get(String(row['block'])) ?? []
      if (ids.length < COMPARED_MAX) ids.push(Number(row['job_id']))
      perBlock.set(String(row['block']), ids)
    }
    await this.#loadJobs([...perBlock.values()].flat())
    for (const [block, ids] of perBlock)
      this.#byBlock.set(block, new Set(ids.flatMap((id) => this.#byId.get(id) ?? [])))
    const jobs = new Set([...perBlock.keys()].flatMap((block) => [...this.#byBlock.get(block)!]))
    await this.loadPostings([...jobs].flatMap(({ sources }) => sources.slice(0, COMPARED_MAX)))
  }

  async #loadJobs(ids: readonly number[]): Promise<void> {
    const missing = [...new Set(ids)].filter((id) => !this.#byId.has(id))
    if (missing.length === 0) return
    const { prefix } = this.#dialect
    const { idIn } = wordsOf(this.#dialect)
    const wanted = [JSON.stringify(missing)]
    const jobs = await this.#rows(
      `select j.id, j.key, j.status, j.preferred_key, j.first_seen_at, j.last_seen_at, j.company_id, j.employment_type,
         j.workplace, j.salary_annual_min, j.salary_annual_max, j.currency, m.times_seen, m.days_active, m.reposts, m.updates
       from ${prefix}job j join ${prefix}job_metric m on m.job_id = j.id where ${idIn('j.id', '$1')}`,
      wanted,
    )
    for (const row of jobs) {
      const job = jobFrom(row)
      this.#byId.set(job.id!, job)
      this.jobs.set(job.key, job)
    }
    const sources = await this.#rows(
      `select key, job_id, source, board_token, state from ${prefix}job_source where ${idIn('job_id', '$1')} order by key`,
      wanted,
    )
    for (const row of sources) {
      const job = this.#byId.get(Number(row['job_id']))
      if (job === undefined) continue
      const entry: SourceEntry = {
        key: String(row['key']),
        source: row['source'] as Source,
        boardToken: String(row['board_token']),
        job,
        state: JSON.parse(String(row['state'])) as PostingState,
        posting: undefined,
        stale: 'none',
      }
      job.sources.push(entry)
      this.#sources.set(entry.key, entry)
    }
  }
}

function jobFrom(row: Row): JobEntry {
  return {
    key: String(row['key']),
    id: Number(row['id']),
    sources: [],
    status: row['status'] as JobEntry['status'],
    preferredKey: String(row['preferred_key']),
    firstSeenAt: timeOf(row['first_seen_at']),
    lastSeenAt: timeOf(row['last_seen_at']),
    facts: {
      companyId: numberOf(row['company_id']),
      employmentType: textOf(row['employment_type']),
      workplace: textOf(row['workplace']),
      salaryMin: numberOf(row['salary_annual_min']),
      salaryMax: numberOf(row['salary_annual_max']),
      currency: textOf(row['currency']),
    },
    metric: {
      timesSeen: Number(row['times_seen']),
      daysActive: Number(row['days_active']),
      reposts: Number(row['reposts']),
      updates: Number(row['updates']),
    },
    isRewritten: false,
    isTouched: false,
    happened: [],
  }
}
