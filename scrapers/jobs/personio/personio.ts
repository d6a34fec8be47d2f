/** Personio: a whole board in one XML feed. If the employer has disabled it, the search of the page still works. */
import { defineScraper } from 'sluice'
import {
  isWanted,
  type Posting,
  postingKey,
  postingSchema,
  type RawPosting,
  readXml,
  searchArgs,
  toPosting,
  type XmlElement,
} from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  assertStayed,
  boardToken,
  entriesOf,
  GONE_STATUSES,
  id,
  nameOfToken,
  readAs,
  tenantBase,
  text,
  under,
} from '../shared.ts'

const HOST = 'jobs.personio.de'

/** The same fields in the feed and in the search, in two spellings. */
const Position = z.object({
  id,
  name: z.string().min(1),
  subcompany: text,
  offices: z.array(z.string()),
  department: text,
  recruitingCategory: text,
  employmentType: text,
  schedule: text,
  seniority: text,
  yearsOfExperience: text,
  keywords: text,
  occupation: text,
  occupationCategory: text,
  createdAt: text,
  description: text,
})
type Position = z.output<typeof Position>

export default defineScraper({
  name: 'personio',
  description: 'Postings of an employer’s Personio board (BOARD.jobs.personio.de)',
  args: z.object({
    board: boardToken.describe('the employer, as in BOARD.jobs.personio.de'),
    site: z
      .url()
      .optional()
      .describe('in place of https://BOARD.jobs.personio.de/, e.g. https://BOARD.jobs.personio.com/'),
    language: z
      .string()
      .regex(/^[a-z]{2}$/, 'two letters, e.g. en or de')
      .default('en')
      .describe('language of the texts, where the employer has them'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: { feed: { accept: GONE_STATUSES }, search: { accept: GONE_STATUSES } },
  start: ({ args, enqueue }) => enqueue('feed', under(tenantBase(args, HOST), `xml?language=${args.language}`)),
  handlers: {
    async feed({ args, status, url, fetchedAt, html, emit, enqueue }) {
      const base = tenantBase(args, HOST)
      if (GONE_STATUSES.includes(status)) {
        await enqueue('search', under(base, 'search.json'))
        return
      }
      // From .de to .com the feed moves unchanged; only a target without the feed means that there is no board.
      if (!url.pathname.endsWith('/xml')) assertStayed(url, { board: args.board, base })
      const positions = readXml(html, { root: 'workzag-jobs', url: url.href }).all('position').map(fromXml)
      for (const posting of wantedOf(await entriesOf(Position, positions, emit), args, fetchedAt)) await emit(posting)
    },
    async search({ args, status, url, fetchedAt, json, emit }) {
      assertBoard(status, { board: args.board, url })
      assertStayed(url, { board: args.board, base: tenantBase(args, HOST) })
      const positions = readAs(z.array(z.looseObject({})), json(), url).map(fromSearch)
      for (const posting of wantedOf(await entriesOf(Position, positions, emit), args, fetchedAt)) await emit(posting)
    },
  },
  limits: { concurrency: 6, perHost: { concurrency: 6, rps: 6 }, bodyMax: '64MiB' },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

type Args = z.output<z.ZodObject<typeof searchArgs>> & { board: string; site?: string | undefined; language: string }

function wantedOf(positions: readonly Position[], args: Args, now: Date): Posting[] {
  return positions
    .map((position) => toPosting('personio', rawOf(position, args), { now }))
    .filter((posting) => isWanted(posting, args, now))
    .slice(0, args.results)
}

/** Raw values: required ones are checked together later. */
function fromXml(position: XmlElement): unknown {
  const sections = position.all('jobDescriptions', 'jobDescription').map((section) => {
    const heading = section.textOf('name')
    return `${heading === undefined ? '' : `<h3>${heading}</h3>\n`}${section.textOf('value') ?? ''}`
  })
  const fields = Object.fromEntries(position.children.map(({ name, text: value }) => [name, value]))
  const offices = [...position.all('office'), ...position.all('additionalOffices', 'office')].map(
    (office) => office.text,
  )
  return { ...fields, offices: offices.filter(Boolean), description: sections.join('\n') }
}

function fromSearch(position: Record<string, unknown>): unknown {
  const { office, offices, employment_type, recruiting_category, created_at, description } = position
  const listed = Array.isArray(offices) ? offices.filter((each) => typeof each === 'string') : []
  return {
    ...position,
    offices: listed.length > 0 ? listed : typeof office === 'string' && office !== '' ? [office] : [],
    employmentType: employment_type,
    recruitingCategory: recruiting_category,
    createdAt: created_at,
    description,
  }
}

function rawOf(position: Position, args: Args): RawPosting {
  const { board, language } = args
  const { yearsOfExperience, keywords } = position
  return {
    source_job_id: position.id,
    board_token: board,
    title: position.name,
    company: position.subcompany || nameOfToken(board),
    locations: position.offices,
    // "permanent" says nothing about hours: those are in the schedule. Non-permanent employment is expressed by the type alone.
    employment_type: [position.employmentType, position.schedule].filter(
      (kind) => kind !== null && kind !== undefined && kind !== '' && !(kind === 'permanent' && position.schedule),
    ) as string[],
    date_posted: position.createdAt,
    description_html: position.description,
    job_url: under(tenantBase(args, HOST), `job/${encodeURIComponent(position.id)}`).href,
    department: position.department,
    team: position.recruitingCategory,
    seniority: position.seniority,
    industry: position.occupationCategory,
    function: position.occupation,
    language,
    raw: { ...(yearsOfExperience ? { yearsOfExperience } : {}), ...(keywords ? { keywords } : {}) },
  }
}
