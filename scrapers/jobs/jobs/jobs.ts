/**
 * The jobs of an employer, from just the URL of its careers page: the page names the board it embeds, and that board's own
 * scraper reads it. A page that names none is read by its markup.
 */
import { defineScraper, type Scraper } from 'sluice'
import { type BoardAddress, findBoards, postingKey, postingSchema, resolveBoard, searchArgs } from 'sluice/jobs'
import * as z from 'zod'
import ashby from '../ashby/ashby.ts'
import bamboohr from '../bamboohr/bamboohr.ts'
import breezy from '../breezy/breezy.ts'
import greenhouse from '../greenhouse/greenhouse.ts'
import jsonld from '../jsonld/jsonld.ts'
import lever from '../lever/lever.ts'
import personio from '../personio/personio.ts'
import pinpoint from '../pinpoint/pinpoint.ts'
import recruitee from '../recruitee/recruitee.ts'
import rippling from '../rippling/rippling.ts'
import smartrecruiters from '../smartrecruiters/smartrecruiters.ts'
import teamtailor from '../teamtailor/teamtailor.ts'
import workable from '../workable/workable.ts'
import workday from '../workday/workday.ts'
import { delegateTo, handlersOf, type OwnContext, routesOf } from './delegate.ts'

const BOARDS: Readonly<Record<string, Scraper>> = {
  ashby,
  bamboohr,
  breezy,
  greenhouse,
  jsonld,
  lever,
  personio,
  pinpoint,
  recruitee,
  rippling,
  smartrecruiters,
  teamtailor,
  workable,
  workday,
}

/** A careers page embeds one board, or one for each part of the company; more than that is a list of employers. */
const BOARDS_MAX = 5

export default defineScraper({
  name: 'jobs',
  description: 'Postings of an employer, from the address of its careers page, whatever board is behind it',
  args: z.object({
    url: z
      .url({ protocol: /^https?$/, error: 'the address of the careers page is needed: --arg url=https://…' })
      .describe('the careers page, or any page of a board'),
    site: z.url().optional().describe('in place of the API of the board that is found'),
    ...searchArgs,
  }),
  item: postingSchema,
  key: postingKey,
  routes: { page: {}, ...routesOf(BOARDS) },
  async start({ args, enqueue, log }) {
    const board = resolveBoard(args.url)
    if (board === undefined) await enqueue('page', args.url)
    else await startBoard(board, { args, enqueue, log } as unknown as OwnContext)
  },
  handlers: {
    async page(context) {
      const { args, html, url, log } = context
      const found = findBoards(html, url.href).filter(({ source }) => source in BOARDS)
      if (found.length > BOARDS_MAX) log.warn(`the page names ${found.length} boards; the first ${BOARDS_MAX} are read`)
      for (const board of found.slice(0, BOARDS_MAX)) {
        log.info(`the page is a front of ${board.source}: ${JSON.stringify(board.args)}`)
        await startBoard(board, context as unknown as OwnContext)
      }
      if (found.length > 0) return
      log.info('the page names no board that is known; its own markup is read')
      await delegateTo(jsonld, 'list', context as unknown as OwnContext, { site: args.url })
    },
    ...handlersOf(BOARDS),
  },
  // What the most sensitive of these hosts tolerates.
  limits: { concurrency: 8, perHost: { concurrency: 2, rps: 2 }, bodyMax: '128MiB', linksMax: 100_000 },
  // It is not known whether there are jobs: a page without any and a page that is misread look the same.
  expect: { items: { min: 1 }, filled: { title: 0.99, job_url: 0.99 } },
})

async function startBoard({ source, args }: BoardAddress, context: OwnContext): Promise<void> {
  const board = BOARDS[source]
  if (board === undefined) throw new Error(`there is no scraper for boards of ${source}`)
  const { site } = context.args
  await delegateTo(board, 'start', context, { ...args, ...(typeof site === 'string' ? { site } : {}) })
}
