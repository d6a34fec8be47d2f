/** A posting of Workday, from a list and from its own response. */
import { type Posting, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import { listOf, nameOfToken, part, text } from '../shared.ts'

export interface Tenant {
  board: string
  instance: string
  careers: string
  company?: string | undefined
}

export const ListedJob = z.object({
  title: z.string().min(1),
  /** "/job/City/Title_R123" */
  externalPath: z
    .string()
    .regex(/^(?:\/[^/\\\s?#]{1,500}){1,8}$/)
    .refine((path) => !/\/\.\.?(?:\/|$)/.test(path)),
  locationsText: text,
  postedOn: text,
  remoteType: text,
  timeType: text,
  bulletFields: listOf(z.string()),
})
type ListedJob = z.output<typeof ListedJob>

export const JobAnswer = z.object({
  jobPostingInfo: z.object({
    title: z.string().min(1),
    jobDescription: text,
    location: text,
    additionalLocations: listOf(z.string()),
    startDate: text,
    postedOn: text,
    timeType: text,
    remoteType: text,
    jobReqId: text,
  }),
  hiringOrganization: part(z.object({ name: text })),
})
type JobAnswer = z.output<typeof JobAnswer>

/** What a list says: enough to omit some without requesting them. */
export function listedPosting(job: ListedJob, tenant: Tenant, now: Date): Posting {
  const isRollUp = /^\d+ /.test(job.locationsText ?? '')
  return toPosting(
    'workday',
    {
      ...identity(job.externalPath, tenant),
      requisition_id: job.bulletFields[0],
      title: job.title,
      locations: isRollUp ? [] : [job.locationsText],
      workplace: job.remoteType,
      employment_type: job.timeType,
      date_posted: job.postedOn,
    },
    { now },
  )
}

export function wholePosting(answer: JobAnswer, path: string, tenant: Tenant, now: Date): Posting {
  const job = answer.jobPostingInfo
  return toPosting(
    'workday',
    {
      ...identity(path, tenant),
      requisition_id: job.jobReqId,
      title: job.title,
      locations: [job.location, ...job.additionalLocations],
      workplace: job.remoteType,
      employment_type: job.timeType,
      date_posted: job.startDate ?? job.postedOn,
      description_html: job.jobDescription,
      raw: {
        careers: tenant.careers,
        ...(tenant.company === undefined ? { company_from: 'board' } : {}),
        // A legal entity, often with a number: not suitable as the employer's name.
        ...(answer.hiringOrganization?.name ? { hiring_organization: answer.hiringOrganization.name } : {}),
      },
    },
    { now },
  )
}

function identity(path: string, { board, instance, careers, company }: Tenant) {
  return {
    source_job_id: idOf(path),
    board_token: board,
    company: company ?? nameOfToken(board),
    job_url: `https://${board}.${instance}.myworkdayjobs.com/${careers}${path}`,
  }
}

/** "/job/City/Senior_Engineer_R123-1" → "R123-1". Case-sensitive. */
function idOf(path: string): string {
  const last = path.slice(path.lastIndexOf('/') + 1)
  return last.slice(last.lastIndexOf('_') + 1) || last
}
