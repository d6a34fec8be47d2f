/** A job as API callers and webhook receivers see it: the posting that is shown, and where else it is posted. */

import type { Dialect, Row, Rows } from '../../drivers/sql.ts'
import type { Posting } from '../read/posting.ts'
import { wordsOf } from './contract.ts'
import { timeOf } from './rows.ts'

type Shown = Omit<Posting, 'raw' | 'description_html' | 'description_text'>

export interface JobSummary extends Shown {
  id: string
  status: string
  first_seen_at: string
  last_seen_at: string
}

interface JobSource {
  source: string
  board_token: string
  source_job_id: string
  job_url: string
  status: string
  first_seen_at: string
  last_seen_at: string
}

export interface JobView extends JobSummary {
  description_text: string | null
  sources: JobSource[]
  metrics: { times_seen: number; sources: number; days_active: number; reposts: number; updates: number }
}

export function summaryFrom(row: Row): JobSummary {
  return {
    ...(JSON.parse(String(row['summary'])) as Shown),
    id: String(row['id']),
    status: String(row['status']),
    first_seen_at: timeOf(row['first_seen_at']),
    last_seen_at: timeOf(row['last_seen_at']),
  }
}

/** In no particular order; unknown ids are left out. */
export async function jobViews(rows: Rows, dialect: Dialect, ids: readonly number[]): Promise<JobView[]> {
  if (ids.length === 0) return []
  const { prefix } = dialect
  const { idIn } = wordsOf(dialect)
  const wanted = [JSON.stringify(ids)]
  const jobs = await rows(
    `select j.id, j.status, j.first_seen_at, j.last_seen_at, j.summary, s.posting,
       m.times_seen, m.sources, m.days_active, m.reposts, m.updates
     from ${prefix}job j join ${prefix}job_source s on s.key = j.preferred_key join ${prefix}job_metric m on m.job_id = j.id
     where ${idIn('j.id', '$1')}`,
    wanted,
  )
  const sources = await rows(
    `select job_id, key, source, board_token, job_url, status, first_seen_at, last_seen_at
     from ${prefix}job_source where ${idIn('job_id', '$1')} order by first_seen_at, key`,
    wanted,
  )
  const byJob = Map.groupBy(sources, (row) => Number(row['job_id']))
  return jobs.map((row) => viewOf(row, byJob.get(Number(row['id'])) ?? []))
}

function viewOf(row: Row, sources: readonly Row[]): JobView {
  const { description_text } = JSON.parse(String(row['posting'])) as Posting
  return {
    ...summaryFrom(row),
    description_text,
    sources: sources.map(sourceOf),
    metrics: {
      times_seen: Number(row['times_seen']),
      sources: Number(row['sources']),
      days_active: Number(row['days_active']),
      reposts: Number(row['reposts']),
      updates: Number(row['updates']),
    },
  }
}

function sourceOf(row: Row): JobSource {
  const [source, boardToken] = [String(row['source']), String(row['board_token'])]
  return {
    source,
    board_token: boardToken,
    source_job_id: String(row['key']).slice(source.length + boardToken.length + 2),
    job_url: String(row['job_url']),
    status: String(row['status']),
    first_seen_at: timeOf(row['first_seen_at']),
    last_seen_at: timeOf(row['last_seen_at']),
  }
}
