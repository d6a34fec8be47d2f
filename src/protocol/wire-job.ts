/** Converts a job posting to the names of the protocol and back. Nothing is sent twice, and nothing is lost. */
import { type Posting, postingKey, postingSchema } from '../jobs/read/posting.ts'
import type { WireJob } from './messages.ts'

/** Fields that are identical on the wire. */
const SAME = ['title', 'company', 'job_url', 'job_hash', 'is_remote', 'apply_url', 'company_logo'] as const

/** Recognised by its essential fields: a scraper may add others. */
export function isPosting(item: object): item is Posting {
  return 'job_hash' in item && 'source_job_id' in item && 'board_token' in item && 'locations' in item
}

export function toWireJob(posting: Posting): WireJob {
  const { title, company, job_url, job_hash, is_remote, apply_url, company_logo, ...rest } = posting
  const { description_text, date_posted, ...kept } = rest
  return {
    title,
    company,
    location: posting.locations.map(({ raw }) => raw).join('; ') || null,
    salary_min: posting.salary?.min ?? null,
    salary_max: posting.salary?.max ?? null,
    salary_currency: posting.salary?.currency ?? null,
    job_url,
    description: description_text,
    posted_date: date_posted,
    job_hash,
    job_type: posting.employment_type,
    is_remote,
    apply_url,
    company_logo,
    external_job_id: posting.source_job_id,
    skills: [],
    benefits: [],
    posting: kept,
  }
}

/** Undefined for a job of a worker that only knows the wire names. */
function fromWireJob(job: WireJob): Posting | undefined {
  if (job.posting === undefined) return undefined
  const same = Object.fromEntries(SAME.map((name) => [name, job[name]]))
  const whole = { ...job.posting, ...same, description_text: job.description, date_posted: job.posted_date }
  const read = postingSchema.safeParse(whole)
  return read.success ? read.data : undefined
}

/** What is stored for a job, and its key within the task. */
export function storedJob(job: WireJob): { key: string; item: object } {
  const posting = fromWireJob(job)
  if (posting !== undefined) return { key: postingKey(posting), item: posting }
  return { key: job.job_hash ?? job.job_url, item: job }
}
