import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as z from 'zod'
import { defineScraper } from '../../core/scraper.ts'
import { searchArgs } from '../../jobs/match/search.ts'
import { chainWish, taskArgs } from './task-args.ts'

const scraperWith = (args: z.ZodObject) =>
  defineScraper({
    name: 'x',
    args,
    item: z.object({ id: z.string() }),
    routes: { page: {} },
    start() {},
    handlers: { page() {} },
  } as never) as never

test('maps names on the wire to the names our job scrapers use', () => {
  const now = () => Date.parse('2026-11-15T00:00:00Z')
  const { args, ignored } = taskArgs(
    scraperWith(z.object({ board: z.string(), ...searchArgs })),
    {
      search_term: 'go',
      results_wanted: 5,
      is_remote: true,
      posted_since: '2026-11-10',
      job_type: 'contract',
      page_limit: 3,
      proxy: 'u:p@proxy:1',
      args: { board: 'acme' },
    },
    now,
  )
  assert.deepEqual(
    [args, ignored],
    [{ board: 'acme', search: 'go', location: '', results: 5, since: 5, remote: true, type: 'contract' }, []],
  )
})

test('reports wire parameters that a scraper cannot use, and rejects unknown ones', () => {
  const scraper = scraperWith(z.object({ board: z.string().default('a') }))
  assert.deepEqual(taskArgs(scraper, { search_term: 'go', location: 'x' }).ignored, ['search_term', 'location'])
  assert.throws(() => taskArgs(scraper, { bord: 'acme' }), /arguments of "x" are not usable/)
  assert.throws(() => taskArgs(scraper, { args: { bord: 'acme' } }), /arguments of "x" are not usable/)
})

test('lets a task name its own egress', () => {
  assert.deepEqual(chainWish({ proxy: 'u:p@proxy:8080', delay_range: [1, 3], user_agent: 'me' }), {
    proxy: 'u:p@proxy:8080',
    userAgent: 'me',
    delayMs: [1000, 3000],
  })
  assert.deepEqual(chainWish({ proxy: 'socks5://proxy:1' }), { proxy: 'socks5://proxy:1' })
  assert.deepEqual(chainWish({}), {})
})
