/** A job board: its entries become postings in a common format, with parsed locations, pay and dates; arguments filter them. */
import { defineScraper } from 'sluice'
import { isWanted, postingKey, postingSchema, searchArgs, toPosting } from 'sluice/jobs'
import * as z from 'zod'

const Board = z.object({
  jobs: z.array(z.object({ id: z.string(), title: z.string(), location: z.string(), salary: z.string() })),
})

export default defineScraper({
  name: 'board',
  description: 'Postings of one employer’s own board',
  args: z.object({
    site: z.url().default('http://127.0.0.1:4180/'),
    company: z.string().default('Demo Works'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: { list: { match: '/api/jobs' } },
  start: ({ args, enqueue }) => enqueue('list', new URL('api/jobs', args.site)),
  handlers: {
    async list({ args, json, fetchedAt, emit }) {
      const postings = Board.parse(json()).jobs.map(({ id, title, location, salary }) => {
        const job_url = new URL(`jobs/${id}`, args.site).href
        const raw = { source_job_id: id, board_token: 'demo', title, company: args.company, job_url }
        return toPosting('jsonld', { ...raw, locations: [location], salary }, { now: fetchedAt })
      })
      const wanted = postings.filter((posting) => isWanted(posting, args, fetchedAt))
      for (const posting of wanted.slice(0, args.results)) await emit(posting)
    },
  },
  limits: { perHost: { rps: 5 } },
  expect: { filled: { title: 1, job_url: 1 } },
})
