/** A posting of SmartRecruiters, from a list or from its own page, which also has the text and the pay. */
import { type Posting, type RawPlace, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import { flag, part, pathId, text } from '../shared.ts'

const labelled = part(z.object({ id: text, label: text }))
const section = part(z.object({ title: text, text }))
const amount = z.union([z.number(), z.string()]).nullish().catch(null)
/** A number, or a string that contains one. */
const degrees = z
  .union([
    z.number(),
    z
      .string()
      .regex(/^-?\d+(?:\.\d+)?$/)
      .transform(Number),
  ])
  .nullish()
  .catch(null)

export const Job = z.object({
  id: pathId,
  name: z.string().min(1),
  visibility: text,
  refNumber: text,
  company: part(z.object({ name: text })),
  releasedDate: text,
  location: part(
    z.object({
      city: text,
      region: text,
      country: text,
      remote: flag,
      hybrid: flag,
      fullLocation: text,
      latitude: degrees,
      longitude: degrees,
    }),
  ),
  industry: labelled,
  department: labelled,
  function: labelled,
  typeOfEmployment: labelled,
  experienceLevel: labelled,
  language: part(z.object({ code: text })),
  applyUrl: text,
  jobAd: part(
    z.object({
      sections: part(
        z.object({
          companyDescription: section,
          jobDescription: section,
          qualifications: section,
          additionalInformation: section,
        }),
      ),
    }),
  ),
  compensation: part(z.object({ salary: part(z.object({ min: amount, max: amount, currency: text, period: text })) })),
})
type Job = z.output<typeof Job>

export function postingOf(job: Job, board: string, now: Date): Posting {
  const { location } = job
  return toPosting(
    'smartrecruiters',
    {
      source_job_id: job.id,
      board_token: board,
      requisition_id: job.refNumber,
      title: job.name,
      company: job.company?.name ?? null,
      locations: [placeOf(job)],
      workplace: location?.hybrid ? 'hybrid' : undefined,
      is_remote: isRemote(job),
      employment_type: job.typeOfEmployment?.id ?? job.typeOfEmployment?.label,
      salary: payOf(job),
      date_posted: job.releasedDate,
      description_html: textOf(job),
      job_url: `https://jobs.smartrecruiters.com/${board}/${job.id}`,
      apply_url: job.applyUrl,
      department: job.department?.label,
      seniority: job.experienceLevel?.label,
      industry: job.industry?.label,
      function: job.function?.label,
      language: job.language?.code,
    },
    { now },
  )
}

/** Old postings have "remote" as the country. */
const isLegacyRemote = ({ location }: Job) => location?.country?.toLowerCase() === 'remote'
const isRemote = (job: Job) => job.location?.remote === true || isLegacyRemote(job)

function placeOf(job: Job): RawPlace | null {
  const { location } = job
  if (location === null || location === undefined) return null
  const country = isLegacyRemote(job) ? null : location.country
  return {
    raw:
      location.fullLocation ??
      ([location.city, location.region, country?.toUpperCase()].filter(Boolean).join(', ') || null),
    city: location.city,
    region: location.region,
    country,
    lat: location.latitude,
    lon: location.longitude,
  }
}

function payOf({ compensation }: Job) {
  const salary = compensation?.salary
  if (salary === null || salary === undefined || (salary.min ?? salary.max ?? null) === null) return undefined
  return { min: salary.min, max: salary.max, currency: salary.currency, interval: salary.period }
}

function textOf({ jobAd }: Job): string | undefined {
  const all = jobAd?.sections
  if (all === null || all === undefined) return undefined
  return [all.companyDescription, all.jobDescription, all.qualifications, all.additionalInformation]
    .filter((part) => part?.text)
    .map((part) => `<h3>${part?.title ?? ''}</h3>${part?.text}`)
    .join('\n')
}
