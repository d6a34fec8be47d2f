/** BambooHR: a list, and a separate response for each posting. If the list is off, the page that sites embed has it. */
import { type DocumentSelection, defineScraper, ScrapeError } from 'sluice'
import { isWanted, mayBeWanted, type Posting, postingKey, postingSchema, searchArgs, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  assertStayed,
  boardToken,
  entriesOf,
  flag,
  GONE_STATUSES,
  id,
  jobTargets,
  nameOfToken,
  part,
  readAs,
  restSchema,
  tenantBase,
  text,
  under,
  walkOn,
} from '../shared.ts'

const Place = z.object({ city: text, state: text, country: text, addressCountry: text })
const Entry = z.object({
  id,
  jobOpeningName: z.string().min(1),
  departmentLabel: text,
  employmentStatusLabel: text,
  location: part(Place),
  atsLocation: part(Place),
  isRemote: flag,
  locationType: part(z.coerce.string()),
})
type Entry = z.output<typeof Entry>

/** All of an entry, and what the list lacks. */
const Opening = Entry.omit({ id: true }).extend({
  description: text,
  compensation: text,
  datePosted: text,
  minimumExperience: text,
})
const JobAnswer = z.object({ result: z.object({ jobOpening: Opening }) })

export default defineScraper({
  name: 'bamboohr',
  description: 'Postings of an employer’s BambooHR board (BOARD.bamboohr.com/careers)',
  args: z.object({
    board: boardToken.describe('the employer, as in BOARD.bamboohr.com'),
    site: z.url().optional().describe('in place of https://BOARD.bamboohr.com/'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: {
    list: { accept: GONE_STATUSES, priority: 1 },
    embedded: { accept: GONE_STATUSES, priority: 1 },
    job: { match: '/*careers/:id/detail', accept: [404, 410], data: z.object({ rest: restSchema.optional() }) },
  },
  start: ({ args, enqueue }) => enqueue('list', under(tenantBase(args, 'bamboohr.com'), 'careers/list')),
  handlers: {
    async list({ args, status, url, fetchedAt, json, emit, enqueue }) {
      const base = tenantBase(args, 'bamboohr.com')
      if (GONE_STATUSES.includes(status)) {
        await enqueue('embedded', under(base, 'jobs/embed2.php'))
        return
      }
      assertStayed(url, { board: args.board, base })
      const { result } = readAs(z.object({ result: z.array(z.unknown()) }), json(), url)
      const entries = await entriesOf(Entry, result, emit)
      await enqueue('job', detailsOf(entries, args, fetchedAt))
    },
    async embedded({ $, args, status, url, fetchedAt, enqueue }) {
      assertBoard(status, { board: args.board, url })
      assertStayed(url, { board: args.board, base: tenantBase(args, 'bamboohr.com') })
      await enqueue('job', detailsOf(embeddedEntries($, url), args, fetchedAt))
    },
    async job({ args, data, status, url, fetchedAt, json, emit, enqueue, log }) {
      let emitted = 0
      if (status !== 200) log.info('the posting was closed a moment ago')
      else {
        const { jobOpening } = readAs(JobAnswer, json(), url).result
        const posting = postingOf({ ...jobOpening, id: idOf(url) }, args, fetchedAt)
        if (isWanted(posting, args, fetchedAt) && (await emit(posting)) === 'new') emitted = 1
      }
      await enqueue('job', walkOn(data.rest, emitted))
    },
  },
  limits: { concurrency: 4, perHost: { concurrency: 4, rps: 4 }, linksMax: 100_000 },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

type Args = z.output<z.ZodObject<typeof searchArgs>> & { board: string; site?: string | undefined }

const careersUrl = (args: Args, path: string) => under(tenantBase(args, 'bamboohr.com'), `careers/${path}`).href

/** `…/careers/17/detail` → 17 */
const idOf = (url: URL) => decodeURIComponent(url.pathname.split('/').at(-2) ?? '')

function detailsOf(entries: readonly Entry[], args: Args, now: Date) {
  const wanted = entries.filter((entry) => mayBeWanted(postingOf(entry, args, now), args, now))
  const urls = wanted.map((entry) => careersUrl(args, `${encodeURIComponent(entry.id)}/detail`))
  return jobTargets(urls, args)
}

/** `li#bhrPositionID_17` with a link and a location. A page without any part of the widget is another page. */
function embeddedEntries($: DocumentSelection, url: URL): Entry[] {
  if (!$.exists('[class*="BambooHR-ATS"], #BambooHR'))
    throw new ScrapeError('E_SELECTOR_EMPTY', `the page has another layout: no list of BambooHR in it (${url.href})`, {
      url: url.href,
    })
  return $.all('li[id^="bhrPositionID_"]').map((row) =>
    readAs(
      Entry,
      {
        id: row.ownAttr('id')?.slice('bhrPositionID_'.length),
        jobOpeningName: row.text('a'),
        location: { city: row.text('.BambooHR-ATS-Location', { optional: true }) },
      },
      url,
    ),
  )
}

/** A list entry has fewer fields; unknown ones do not count against it. */
function postingOf(job: Entry & Partial<z.output<typeof Opening>>, args: Args, now: Date): Posting {
  const { location, atsLocation } = job
  return toPosting(
    'bamboohr',
    {
      source_job_id: job.id,
      board_token: args.board,
      title: job.jobOpeningName,
      company: nameOfToken(args.board),
      locations: [
        {
          city: location?.city ?? atsLocation?.city,
          region: location?.state ?? atsLocation?.state,
          country: location?.addressCountry ?? location?.country ?? atsLocation?.country,
        },
      ],
      workplace: job.locationType,
      is_remote: job.isRemote,
      employment_type: job.employmentStatusLabel,
      salary: job.compensation,
      date_posted: job.datePosted,
      description_html: job.description,
      job_url: careersUrl(args, encodeURIComponent(job.id)),
      department: job.departmentLabel,
      seniority: job.minimumExperience,
    },
    { now },
  )
}
