/** A posting of Workable: the widget and the paged API use different names for the same things. */
import { type Posting, type RawPlace, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import { flag, httpUrl, listOf, nameOfToken, part, pathId, text } from '../shared.ts'

const Place = z.object({ city: text, region: text, state: text, country: text, countryCode: text, hidden: flag })
/** One name, or a path of names from the whole to the part. */
const names = z
  .union([z.string(), listOf(z.string())])
  .nullish()
  .catch(null)

const shared = {
  shortcode: pathId,
  title: z.string().min(1),
  code: text,
  city: text,
  state: text,
  country: text,
  locations: listOf(Place),
  department: names,
  function: text,
  industry: text,
  type: text,
  employment_type: text,
  experience: text,
  description: text,
}

/** As in the widget, complete. */
export const WidgetJob = z.object({
  ...shared,
  url: httpUrl,
  application_url: text,
  published_on: text,
  created_at: text,
  telecommuting: flag,
})

/** As in the paged API, in a list or complete. */
export const PagedJob = z.object({
  ...shared,
  location: part(Place),
  remote: flag,
  workplace: text,
  published: text,
  language: text,
  requirements: text,
  benefits: text,
})

export function widgetPosting(job: z.output<typeof WidgetJob>, board: string, company: string, now: Date): Posting {
  return toPosting(
    'workable',
    {
      ...fields(job, board),
      company,
      // "false" is the default of every posting that does not say anything.
      is_remote: job.telecommuting,
      date_posted: job.published_on ?? job.created_at,
      description_html: job.description,
      job_url: job.url,
      apply_url: job.application_url,
    },
    { now },
  )
}

export function pagedPosting(job: z.output<typeof PagedJob>, board: string, now: Date): Posting {
  return toPosting(
    'workable',
    {
      ...fields({ ...job, locations: job.locations.length > 0 ? job.locations : [job.location ?? {}] }, board),
      company: nameOfToken(board),
      workplace: job.workplace,
      is_remote: job.remote,
      date_posted: job.published,
      description_html: [job.description, job.requirements, job.benefits].filter(Boolean).join('\n'),
      job_url: `https://apply.workable.com/${board}/j/${job.shortcode}/`,
      language: job.language,
      raw: { company_from: 'board' },
    },
    { now },
  )
}

type Fields = Pick<z.output<typeof WidgetJob>, Exclude<keyof typeof shared, 'locations' | 'description'>> & {
  locations: readonly Partial<z.output<typeof Place>>[]
}

function fields(job: Fields, board: string) {
  const [department, team] = typeof job.department === 'string' ? [job.department] : (job.department ?? [])
  return {
    source_job_id: job.shortcode,
    board_token: board,
    requisition_id: job.code,
    title: job.title,
    locations: placesOf(job),
    employment_type: job.employment_type || job.type,
    department,
    team,
    seniority: job.experience,
    industry: job.industry,
    function: job.function,
  }
}

function placesOf({ locations, city, state, country }: Fields): RawPlace[] {
  const shown = locations.filter(({ hidden }) => hidden !== true)
  const places = shown.map((place) => ({
    city: place.city,
    region: place.region ?? place.state,
    country: place.countryCode ?? place.country,
    name: place.country,
  }))
  const all = places.length > 0 ? places : [{ city, region: state, country, name: country }]
  return all.map(({ name, ...place }) => ({
    ...place,
    raw: [place.city, place.region, name ?? place.country].filter(Boolean).join(', '),
  }))
}
