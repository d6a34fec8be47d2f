/** Wrong programs that the compiler must reject. `tsc` fails when one of these lines starts to compile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as z from 'zod'
import type { ScrapeError } from './errors.ts'
import { csv, defineScraper, jsonl } from './scraper.ts'

const Job = z.object({
  id: z.string(),
  title: z.string().min(1),
  company: z.string(),
  salaryMin: z.number().optional(),
  url: z.url(),
})

const routes = {
  list: { match: '/jobs', data: z.object({ page: z.number().default(1) }) },
  job: { match: '/job/:id', data: z.object({ company: z.string() }) },
} as const

test('accepts the definition from the documentation', () => {
  const jobs = defineScraper({
    name: 'jobs-demo',
    args: z.object({ base: z.url().default('http://127.0.0.1:4100/') }),
    item: Job,
    key: 'id',
    routes,
    start: ({ args, enqueue }) => enqueue('list', new URL('/jobs', args.base)),
    handlers: {
      async list({ $, data, enqueue }) {
        await enqueue.links('job', 'a.job', (a) => ({ company: a.attr('data-company') ?? '?' }))
        if ($.exists('a.next')) await enqueue('list', { url: $.attr('a.next', 'href'), data: { page: data.page + 1 } })
      },
      async job({ $, params, data, url, emit }) {
        await emit({ id: params.id, company: data.company, url: url.href, title: $.text('h1') })
      },
    },
    limits: { pages: 5_000, depth: 6, perHost: { concurrency: 4, rps: 5 }, retries: 3, timeout: '30s', failAt: '5%' },
    mode: 'single',
    sinks: [jsonl(), csv({ columns: ['id', 'title'] })],
    schedule: { cron: '0 6 * * *', tz: 'Europe/Rome', overlap: 'skip' },
    expect: { items: { min: 1 }, filled: { company: 0.99 } },
  })
  assert.equal(jobs.name, 'jobs-demo')
})

test('knows the path parameters of patterns with dots and hyphens', () => {
  defineScraper({
    name: 'catalogue',
    item: Job,
    routes: { page: { match: '/c/:category/page-:n.html' } },
    start() {},
    handlers: {
      page({ params }) {
        const both: string = params.category + params.n
        // @ts-expect-error no such path parameter
        params.html
        return both
      },
    },
  })
})

test('rejects wrong programs at compile time', () => {
  defineScraper({
    name: 'wrong',
    item: Job,
    key: 'id',
    routes,
    start: ({ enqueue }) => enqueue('list', 'http://x/'),
    handlers: {
      async list({ enqueue, data, page }) {
        // @ts-expect-error unknown label
        await enqueue('jbo', 'http://x/')
        // @ts-expect-error 'job' needs data.company
        await enqueue('job', 'http://x/')
        // @ts-expect-error a mapper is required because company has no default
        await enqueue.links('job', 'a')
        // @ts-expect-error data.page is a number
        const text: string = data.page
        // @ts-expect-error an http route has no page
        await page.click('a')
        return text
      },
      async job({ emit, params }) {
        // @ts-expect-error title is missing
        await emit({ id: params.id, company: 'x', url: 'http://x/' })
        // @ts-expect-error no such path parameter
        params.slug
        // @ts-expect-error salaryMin must be a number
        await emit({ id: '1', title: 't', company: 'c', url: 'http://x/', salaryMin: '5' })
      },
    },
    // @ts-expect-error no such column
    sinks: [csv({ columns: ['nope'] })],
  })
  assert.throws(
    // @ts-expect-error the key is no field of the item
    () => defineScraper({ name: 'w1', item: Job, key: 'nope', routes: { a: {} }, start() {}, handlers: { a() {} } }),
    /not valid/,
  )
})

test('accepts limits as numbers, numbers as text, and durations', () => {
  const { limits } = defineScraper({
    name: 'limits',
    item: Job,
    routes: { a: {} },
    start() {},
    handlers: { a() {} },
    limits: { concurrency: '8', pages: 10, perHost: { rps: 0.5, delay: '1s-3s', circuit: 'off' }, timeout: '30s' },
  })
  assert.equal(limits?.concurrency, '8')
})

test('rejects limits that are not numbers at compile time', () => {
  const scraper = { name: 'w', item: Job, routes: { a: {} }, start() {}, handlers: { a() {} } }
  // @ts-expect-error numbers, not words or objects
  defineScraper({ ...scraper, limits: { concurrency: 'lots' } })
  // @ts-expect-error numbers, not words or objects
  defineScraper({ ...scraper, limits: { pages: {} } })
  // @ts-expect-error numbers, not words or objects
  defineScraper({ ...scraper, limits: { retries: null } })
  // @ts-expect-error numbers, not words or objects
  defineScraper({ ...scraper, limits: { perHost: { rps: [] } } })
})

test('reports every problem of a definition that the compiler could not see', () => {
  assert.throws(
    () =>
      defineScraper({
        name: 'Not A Name',
        item: Job,
        routes: { a: { match: 'x' }, b: {} },
        start() {},
        // @ts-expect-error a route without a handler
        handlers: { a() {} },
      }),
    (error: ScrapeError) => {
      assert.equal(error.code, 'E_DEFINITION')
      assert.match(
        error.details.notes!.join('\n'),
        /name: use lower-case.*\n.*match: must start.*\n.*"b" has no handler/,
      )
      return true
    },
  )
})
