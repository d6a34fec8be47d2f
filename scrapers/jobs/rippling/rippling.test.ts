/** The Rippling board against its loopback mock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runBoard } from '../../../test/site/boards/ats-run.ts'
import { boardConformance } from '../../../test/site/boards/ats-suite.ts'
import { ripplingId, startRipplingMock } from '../../../test/site/boards/rippling.ts'
import rippling from './rippling.ts'

boardConformance({
  scraper: rippling,
  start: startRipplingMock,
  args: { board: 'acme' },
  nobody: { board: 'nobody' },
  idOf: ripplingId,
  jobs: 60,
})

test('reads everything in a posting, with its locations combined', async () => {
  await using site = await startRipplingMock({ jobs: 1 })
  const { postings } = await runBoard(rippling, site, { board: 'acme' })
  const { job_hash, content_hash, raw, ...posting } = postings[0]!
  assert.deepEqual(posting, {
    source: 'rippling',
    source_job_id: ripplingId(0),
    board_token: 'acme',
    requisition_id: null,
    title: 'Nurse 0',
    company: 'Acme Care, Inc.',
    company_url: null,
    company_logo: null,
    locations: [
      { raw: 'San Francisco, CA', city: 'San Francisco', region: 'CA', country_iso2: 'US', lat: null, lon: null },
      { raw: 'Dublin, Ireland', city: 'Dublin', region: null, country_iso2: 'IE', lat: null, lon: null },
    ],
    workplace: null,
    is_remote: null,
    remote_countries: [],
    employment_type: 'full_time',
    employment_type_raw: 'SALARIED_FT',
    salary: { min: 100_000, max: 140_000, currency: 'USD', interval: 'year', source: 'structured', raw: null },
    salary_annual_min: 100_000,
    salary_annual_max: 140_000,
    date_posted: '2026-11-10T09:00:00.000Z',
    date_posted_precision: 'instant',
    valid_through: null,
    description_html: '<p>Work by night.</p>\n<p>About Acme.</p>',
    description_text: 'Work by night.\n\nAbout Acme.',
    job_url: `https://ats.rippling.com/acme/jobs/${ripplingId(0)}`,
    apply_url: null,
    department: 'Care',
    team: null,
    seniority: null,
    industry: null,
    function: null,
    language: null,
  })
  assert.equal((raw['payRangeDetails'] as unknown[]).length, 3)
})

test('returns only what was asked for, and requests only postings that may match', async () => {
  await using site = await startRipplingMock({ jobs: 30 })
  const asked = async (args: object) => {
    const before = site.stats().requests.length
    const { postings } = await runBoard(rippling, site, { board: 'acme', ...args })
    return [postings.length, site.stats().requests.length - before]
  }
  assert.deepEqual(await asked({ search: 'night' }), [6, 31])
  assert.deepEqual(await asked({ location: 'Dublin' }), [16, 17])
  assert.deepEqual(await asked({ type: 'part_time' }), [10, 31])
  assert.deepEqual(await asked({ remote: false }), [23, 24])
  assert.deepEqual(await asked({ search: 'night', results: 2 }), [2, 7])
})
