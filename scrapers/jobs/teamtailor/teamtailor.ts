/** Teamtailor: a whole board in one RSS feed, with locations in custom elements. */
import { defineScraper } from 'sluice'
import {
  isWanted,
  type Posting,
  postingKey,
  postingSchema,
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
  httpUrl,
  nameOfToken,
  tenantBase,
  text,
  under,
} from '../shared.ts'

const HOST = 'teamtailor.com'

const Item = z.object({
  id: z.string(),
  title: z.string().min(1),
  link: httpUrl,
  guid: text,
  pubDate: text,
  description: text,
  remoteStatus: text,
  department: text,
  role: text,
  places: z.array(z.object({ name: text, city: text, country: text })),
})
type Item = z.output<typeof Item>

export default defineScraper({
  name: 'teamtailor',
  description: 'Postings of an employer’s Teamtailor board (BOARD.teamtailor.com)',
  args: z.object({
    board: boardToken.describe('the employer, as in BOARD.teamtailor.com'),
    site: z.url().optional().describe('in place of https://BOARD.teamtailor.com/, e.g. https://careers.example.com/'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: { feed: { accept: GONE_STATUSES } },
  start: ({ args, enqueue }) => enqueue('feed', under(tenantBase(args, HOST), 'jobs.rss')),
  handlers: {
    async feed({ args, status, url, fetchedAt, html, emit }) {
      assertBoard(status, { board: args.board, url })
      // An employer with its own domain is redirected there, including the feed; only a target without the feed means that there
      // is no board.
      if (!url.pathname.endsWith('/jobs.rss')) assertStayed(url, { board: args.board, base: tenantBase(args, HOST) })
      const [channel] = readXml(html, { root: 'rss', url: url.href }).all('channel')
      const items = await entriesOf(Item, channel?.all('item').map(fromXml) ?? [], emit)
      const company = channel?.textOf('title') ?? nameOfToken(args.board)
      const postings = items
        .map((item) => postingOf(item, { board: args.board, company }, fetchedAt))
        .filter((posting) => isWanted(posting, args, fetchedAt))
      for (const posting of postings.slice(0, args.results)) await emit(posting)
    },
  },
  limits: { concurrency: 6, perHost: { concurrency: 6, rps: 6 }, bodyMax: '64MiB' },
  expect: { filled: { title: 0.99, company: 0.99, job_url: 0.99 } },
})

/** Raw values: required ones are checked together later. */
function fromXml(item: XmlElement): unknown {
  const link = item.textOf('link')
  return {
    id: /\/jobs\/(\d+)/.exec(link ?? '')?.[1] ?? item.textOf('guid'),
    title: item.textOf('title'),
    link,
    guid: item.textOf('guid'),
    pubDate: item.textOf('pubDate'),
    description: item.textOf('description'),
    remoteStatus: item.textOf('remoteStatus'),
    department: item.textOf('department'),
    role: item.textOf('role'),
    places: item.all('locations', 'location').map((place) => ({
      name: place.textOf('name'),
      city: place.textOf('city'),
      country: place.textOf('country'),
    })),
  }
}

function postingOf(item: Item, { board, company }: { board: string; company: string }, now: Date): Posting {
  return toPosting(
    'teamtailor',
    {
      source_job_id: item.id,
      board_token: board,
      title: item.title,
      company,
      locations: item.places.map(({ name, city, country }) => (city ? { city, country } : { raw: name, country })),
      workplace: item.remoteStatus,
      date_posted: item.pubDate,
      description_html: item.description,
      job_url: item.link,
      department: item.department,
      function: item.role,
      raw: item.guid ? { guid: item.guid } : {},
    },
    { now },
  )
}
