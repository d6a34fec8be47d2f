/** Writes what a batch changed, in a fixed number of statements however many jobs it touched. */

import type { Dialect, Rows } from '../../drivers/sql.ts'
import { isFilled, problemsOf } from '../match/quality.ts'
import { FILLED_FIELDS, ROLLUPS, wordsOf } from './contract.ts'
import { type JobEntry, preferredOf, type SourceEntry } from './entries.ts'
import type { Ledger } from './ledger.ts'
import { insertMany, updateMany, type Value } from './rows.ts'
import { writeShown } from './write-shown.ts'

/** 64 bits are enough to distinguish the contents of one job. */
const CONTENT_CHARS = 16

export interface Writing {
  rows: Rows
  dialect: Dialect
  at: Date
  scraper: string
  runId: string
}

export async function writeLedger(writing: Writing, ledger: Ledger, seen: readonly SourceEntry[]): Promise<JobEntry[]> {
  const touched = [...ledger.jobs.values()].filter(({ isTouched }) => isTouched)
  const rewritten = touched.filter(({ isRewritten }) => isRewritten)
  await ledger.loadPostings(rewritten.map(preferredOf))
  await writeShown(writing, rewritten)
  await writeStatus(writing, touched)
  await writeSources(writing, touched, new Set(seen))
  await writeMetrics(writing, touched)
  await writeBlocks(writing, ledger)
  await writeObservations(writing, seen)
  await writeEvents(writing, touched)
  await markDirty(writing, [
    writing.at.toISOString(),
    ...touched.flatMap(({ happened }) => happened.map(({ at }) => at)),
  ])
  return touched
}

async function writeStatus({ rows, dialect }: Writing, jobs: readonly JobEntry[]): Promise<void> {
  const groups = Map.groupBy(
    jobs.filter(({ isRewritten }) => !isRewritten),
    ({ status, lastSeenAt }) => `${status} ${lastSeenAt}`,
  )
  const sql = `update ${dialect.prefix}job set status = $1, last_seen_at = $2 where ${dialect.oneOf('key', '$3')}`
  for (const group of groups.values())
    await rows(sql, [group[0]!.status, group[0]!.lastSeenAt, JSON.stringify(group.map(({ key }) => key))])
}

async function writeSources(
  { rows, dialect, scraper, runId }: Writing,
  jobs: readonly JobEntry[],
  seen: ReadonlySet<SourceEntry>,
): Promise<void> {
  const table = `${dialect.prefix}job_source`
  const sources = jobs.flatMap((job) => job.sources)
  const columns =
    'key job_id source board_token scraper run_id status state posting job_url valid_through first_seen_at last_seen_at'
  const records = sources
    .filter(({ stale }) => stale === 'all')
    .map(({ key, job, source, boardToken, state, posting }) => {
      const { status, first_seen_at, last_seen_at, content } = state
      const found = [key, job.id!, source, boardToken, scraper, runId, status, JSON.stringify(state)]
      return [...found, JSON.stringify(posting), posting!.job_url, content.valid_through, first_seen_at, last_seen_at]
    })
  const set = columns.split(' ').filter((column) => column !== 'key' && column !== 'first_seen_at')
  const tail = `on conflict (key) do update set ${set.map((one) => `${one} = excluded.${one}`).join(', ')}`
  await insertMany(rows, { into: table, columns: columns.split(' '), records, tail })
  const restated = sources.filter(({ stale }) => stale === 'state')
  const moment = wordsOf(dialect).time
  await updateMany(
    rows,
    table,
    `state = v.column2, status = v.column3, run_id = coalesce(nullif(v.column4, ''), t.run_id), last_seen_at = cast(v.column5 as ${moment})`,
    restated.map((entry) => [
      entry.key,
      JSON.stringify(entry.state),
      entry.state.status,
      seen.has(entry) ? runId : '',
      entry.state.last_seen_at,
    ]),
  )
}

async function writeMetrics({ rows, dialect }: Writing, jobs: readonly JobEntry[]): Promise<void> {
  const columns = ['job_id', 'times_seen', 'sources', 'days_active', 'reposts', 'updates']
  const set = columns.slice(1).map((one) => `${one} = excluded.${one}`)
  await insertMany(rows, {
    into: `${dialect.prefix}job_metric`,
    columns,
    records: jobs.map(({ id, sources, metric }) => [
      id!,
      metric.timesSeen,
      sources.length,
      metric.daysActive,
      metric.reposts,
      metric.updates,
    ]),
    tail: `on conflict (job_id) do update set ${set.join(', ')}`,
  })
}

async function writeBlocks({ rows, dialect }: Writing, { blocks }: Ledger): Promise<void> {
  await insertMany(rows, {
    into: `${dialect.prefix}job_block`,
    columns: ['block', 'job_id'],
    records: blocks.map(({ block, job }) => [block, job.id!]),
    tail: 'on conflict do nothing',
  })
}

const COUNTED = ['source', 'company_id', 'employment_type', 'workplace', 'salary_min', 'salary_max', 'currency']
const counted = ({ facts }: JobEntry, source: string): Value[] => [
  source,
  facts.companyId,
  facts.employmentType,
  facts.workplace,
  facts.salaryMin,
  facts.salaryMax,
  facts.currency,
]

async function writeObservations({ rows, dialect, at }: Writing, seen: readonly SourceEntry[]): Promise<void> {
  await insertMany(rows, {
    into: `${dialect.prefix}job_observation`,
    columns: ['observed_at', 'job_id', ...COUNTED, 'sources', 'filled', 'problems', 'content_hash'],
    records: seen.map(({ job, source, posting, state }) => [
      at.toISOString(),
      job.id!,
      ...counted(job, source),
      job.sources.length,
      FILLED_FIELDS.reduce((bits, field, bit) => bits | (isFilled(posting!, field) ? 1 << bit : 0), 0),
      problemsOf(posting!, at).length,
      state.content.content_hash.slice(0, CONTENT_CHARS),
    ]),
    tail: 'on conflict do nothing',
  })
}

async function writeEvents({ rows, dialect }: Writing, jobs: readonly JobEntry[]): Promise<void> {
  await insertMany(rows, {
    into: `${dialect.prefix}job_event`,
    columns: ['happened_at', 'job_id', 'type', ...COUNTED, 'before', 'after', 'changed'],
    records: jobs.flatMap((job) =>
      job.happened.map(({ at, type, source, before, after, changed }) => [
        at,
        job.id!,
        type,
        ...counted(job, source),
        jsonOf(before),
        jsonOf(after),
        jsonOf(changed),
      ]),
    ),
    tail: 'on conflict do nothing',
  })
}

const jsonOf = (value: unknown) => (value === undefined ? null : JSON.stringify(value))

/** Updates the row even if it exists: a refresher about to delete it then waits for this transaction. */
async function markDirty({ rows, dialect }: Writing, moments: readonly string[]): Promise<void> {
  const days = [...new Set(moments.map((at) => at.slice(0, 10)))].sort()
  await insertMany(rows, {
    into: `${dialect.prefix}rollup_dirty as dirty`,
    columns: ['rollup', 'bucket'],
    records: days.flatMap((day) => ROLLUPS.map(({ name }) => [name, day])),
    tail: 'on conflict (rollup, bucket) do update set marks = dirty.marks + 1',
  })
}
