/** Careers pages with JobPosting markup, from a loopback site that writes it in many ways. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runBoard } from '../../../test/site/boards/ats-run.ts'
import { type BoardServer, blocked, flaky, whenPath } from '../../../test/site/boards/ats-server.ts'
import { type CareersOptions, startCareersMock } from '../../../test/site/boards/jsonld.ts'
import jsonld from './jsonld.ts'

const run = (site: BoardServer, args: object = {}, options: { retries?: number } = {}) =>
  runBoard(jsonld, site, { site: `${site.url}careers/`, ...args }, options)

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

for (const list of ['links', 'itemList', 'postings'] as const) {
  test(`finds every job of a list of ${list} once, across all its pages`, async () => {
    await using site = await startCareersMock({ jobs: 24, list })
    const { record, postings } = await run(site)
    assert.equal(record.exitCode, 0, JSON.stringify(record.errors))
    const titles = postings.map(({ title }) => Number(title.split(' ')[1])).sort((a, b) => a - b)
    assert.deepEqual(titles, numbers(24))
    assert.ok(
      postings.every(({ company, date_posted, description_text }) => company && date_posted && description_text),
    )
  })
}

test('reads everything in a posting', async () => {
  await using site = await startCareersMock({ jobs: 1 })
  const { postings } = await run(site)
  const { job_hash, content_hash, raw, ...posting } = postings[0]!
  const url = `${site.url}careers/jobs/0-grow?lang=en`
  assert.deepEqual(posting, {
    source: 'jsonld',
    source_job_id: '/careers/jobs/0-grow?lang=en',
    board_token: '127.0.0.1',
    requisition_id: 'G-0',
    title: 'Gardener 0',
    company: 'Acme Gardens',
    company_url: 'https://acme.test/',
    company_logo: null,
    locations: [{ raw: 'Kew, GB', city: 'Kew', region: null, country_iso2: 'GB', lat: null, lon: null }],
    workplace: null,
    is_remote: null,
    remote_countries: [],
    employment_type: 'full_time',
    employment_type_raw: 'FULL_TIME',
    salary: { min: 30_000, max: 40_000, currency: 'EUR', interval: 'year', source: 'structured', raw: null },
    salary_annual_min: 30_000,
    salary_annual_max: 40_000,
    date_posted: '2026-11-10',
    date_posted_precision: 'day',
    valid_through: null,
    description_html: '<p>Grow roses.</p>',
    description_text: 'Grow roses.',
    job_url: url,
    apply_url: null,
    department: null,
    team: null,
    seniority: null,
    industry: null,
    function: null,
    language: null,
  })
})

test('reads the sitemaps if asked to, even if the page itself shows nothing', async () => {
  await using site = await startCareersMock({ jobs: 12, list: 'nothing' })
  const { record, postings } = await run(site, { sitemap: true })
  assert.equal(record.exitCode, 0, JSON.stringify(record.errors))
  assert.equal(postings.length, 12)
  assert.equal((await run(site, { sitemap: true, results: 5 })).postings.length, 5)
})

test('survives a site that throttles and fails for a while', async () => {
  await using site = await startCareersMock({ jobs: 3, trouble: whenPath(/\/1-grow$/, flaky) })
  const { record, postings } = await run(site)
  assert.equal(record.exitCode, 0, JSON.stringify(record.errors))
  assert.equal(postings.length, 3)
})

test('returns only what was asked for', async () => {
  await using site = await startCareersMock({ jobs: 24 })
  const count = async (args: object) => (await run(site, args)).postings.length
  assert.equal(await count({ search: 'florist' }), 12)
  assert.equal(await count({ search: 'roses' }), 5)
  assert.equal(await count({ location: 'Leiden' }), 12)
  assert.equal(await count({ type: 'temporary' }), 12, 'not the four whose microdata does not tell')
  assert.equal(await count({ search: 'florist', results: 2 }), 2)
  assert.equal(await count({ links: '/jobs/7-' }), 1)
})

test('ends after as many postings as were asked for, in the middle of a list', async () => {
  await using site = await startCareersMock({ jobs: 24, list: 'itemList' })
  assert.equal((await run(site, { results: 13 })).postings.length, 13)
})

const ALARMS: [what: string, options: Partial<CareersOptions>, said: RegExp][] = [
  ['a page without jobs and without links to any', { list: 'nothing' }, /no job postings|expected at least 1/],
  ['markup that nobody can read', { isBroken: true }, /no readable JobPosting markup/],
  ['a list of pages that have no markup', { list: 'itemList', isBare: true }, /no readable JobPosting markup/],
  ['a guard in front of the site', { trouble: blocked }, /./],
  ['a guard in front of the job pages', { trouble: whenPath(/\/jobs\//, blocked) }, /./],
]
for (const [what, options, said] of ALARMS) {
  test(`raises an alarm for ${what}`, async () => {
    await using site = await startCareersMock({ jobs: 3, ...options })
    const { record, errors, postings } = await run(site, {}, { retries: 0 })
    assert.equal(record.exitCode, 1)
    assert.match([record.reason, ...errors.map(({ message }) => message)].join('\n'), said)
    assert.deepEqual(postings, [])
  })
}

test('also raises an alarm for links without any markup behind them', async () => {
  await using site = await startCareersMock({ jobs: 3, isBare: true })
  assert.equal((await run(site)).record.exitCode, 1)
})
