/** Recruitee: a whole board in one response, on the employer's own host. */
import { defineScraper } from 'sluice'
import { isWanted, type Posting, postingKey, postingSchema, type RawPlace, searchArgs, toPosting } from 'sluice/jobs'
import * as z from 'zod'
import {
  assertBoard,
  boardToken,
  entriesOf,
  flag,
  GONE_STATUSES,
  httpUrl,
  id,
  listOf,
  nameOfToken,
  part,
  readAs,
  text,
  under,
} from '../shared.ts'

const amount = z.union([z.number(), z.string()]).nullish().catch(null)
const Place = z.object({ name: text, city: text, state: text, state_code: text, country: text, country_code: text })

const Offer = z.object({
  id,
  title: z.string().min(1),
  careers_url: httpUrl,
  careers_apply_url: text,
  company_name: text,
  location: text,
  city: text,
  state_code: text,
  country_code: text,
  locations: listOf(Place),
  remote: flag,
  hybrid: flag,
  on_site: flag,
  employment_type_code: text,
  department: text,
  salary: part(z.object({ min: amount, max: amount, currency: text, period: text })),
  description: text,
  requirements: text,
  published_at: text,
  created_at: text,
})
type Offer = z.output<typeof Offer>

export default defineScraper({
  name: 'recruitee',
  description: 'Postings of an employer’s Recruitee board (BOARD.recruitee.com)',
  args: z.object({
    board: boardToken.describe('the employer, as in BOARD.recruitee.com'),
    site: z.url().optional().describe('in place of BOARD.recruitee.com, for career sites on a host of their own'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: { list: { match: '/*/offers', accept: GONE_STATUSES } },
  start: ({ args, enqueue }) =>
    enqueue('list', under(args.site ?? `https://${args.board}.recruitee.com/`, 'api/offers')),
  handlers: {
    async list({ args, status, url, fetchedAt, json, emit }) {
      assertBoard(status, { board: args.board, url })
      const { offers } = readAs(z.object({ offers: z.array(z.unknown()) }), json(), url)
      const postings = (await entriesOf(Offer, offers, emit))
        .map((offer) => postingOf(offer, args.board, fetchedAt))
        .filter((posting) => isWanted(posting, args, fetchedAt))
        .slice(0, args.results)
      for (const posting of postings) await emit(posting)
    },
  },
  limits: { concurrency: 6, perHost: { concurrency: 6, rps: 6 }, bodyMax: '64MiB' },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

function postingOf(offer: Offer, board: string, now: Date): Posting {
  return toPosting(
    'recruitee',
    {
      source_job_id: offer.id,
      board_token: board,
      title: offer.title,
      company: offer.company_name ?? nameOfToken(board),
      locations: placesOf(offer),
      workplace: workplaceOf(offer),
      is_remote: offer.remote,
      employment_type: offer.employment_type_code,
      salary: payOf(offer),
      date_posted: offer.published_at ?? offer.created_at,
      description_html: [offer.description, offer.requirements].filter(Boolean).join('\n'),
      job_url: offer.careers_url,
      apply_url: offer.careers_apply_url,
      department: offer.department,
      raw: {},
    },
    { now },
  )
}

function placesOf(offer: Offer): RawPlace[] {
  if (offer.locations.length === 0)
    return [{ raw: offer.location, city: offer.city, region: offer.state_code, country: offer.country_code }]
  return offer.locations.map(({ name, city, state, state_code, country, country_code }) => ({
    raw: [city, state, country].filter(Boolean).join(', ') || name,
    city,
    region: state_code ?? state,
    country: country_code ?? country,
  }))
}

/** Several may be true: a choice, or occasional office days, means hybrid. */
function workplaceOf({ hybrid, remote, on_site }: Offer): string | undefined {
  if (hybrid || (remote && on_site)) return 'hybrid'
  return remote ? 'remote' : on_site ? 'onsite' : undefined
}

/** An offer without pay has the object, too, but empty. */
function payOf({ salary }: Offer) {
  if (salary === null || salary === undefined || (salary.min ?? salary.max ?? null) === null) return undefined
  const { min, max, currency, period } = salary
  return { min, max, currency, interval: period }
}
