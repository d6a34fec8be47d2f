/** The Ashby board against its loopback mock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ashbyId, startAshbyMock } from '../../../test/site/boards/ashby.ts'
import { idsOf, runBoard } from '../../../test/site/boards/ats-run.ts'
import { boardConformance, oddConformance } from '../../../test/site/boards/ats-suite.ts'
import ashby from './ashby.ts'

const ACME = { board: 'acme' }

const BOARD = {
  scraper: ashby,
  start: startAshbyMock,
  args: ACME,
  nobody: { board: 'nobody' },
  idOf: ashbyId,
  jobs: 60,
}
boardConformance(BOARD)
oddConformance(BOARD)

test('reads everything in a posting, with the pay of all its tiers', async () => {
  await using site = await startAshbyMock({ jobs: 1 })
  const { postings } = await runBoard(ashby, site, ACME)
  const { job_hash, content_hash, raw, ...posting } = postings[0]!
  assert.deepEqual(posting, {
    source: 'ashby',
    source_job_id: ashbyId(0),
    board_token: 'acme',
    requisition_id: null,
    title: 'Backend Engineer 0',
    company: 'Acme',
    company_url: null,
    company_logo: null,
    locations: [
      { raw: 'San Francisco', city: 'San Francisco', region: 'CA', country_iso2: 'US', lat: null, lon: null },
      { raw: 'Paris', city: 'Paris', region: null, country_iso2: 'FR', lat: null, lon: null },
    ],
    workplace: 'remote',
    is_remote: true,
    remote_countries: [],
    employment_type: 'internship',
    employment_type_raw: 'Intern',
    salary: {
      min: 120_000,
      max: 200_000,
      currency: 'USD',
      interval: 'year',
      source: 'structured',
      raw: '$120K – $200K • Offers Equity',
    },
    salary_annual_min: 120_000,
    salary_annual_max: 200_000,
    date_posted: '2026-11-10T09:00:00.000Z',
    date_posted_precision: 'instant',
    valid_through: null,
    description_html: '<p>Build <b>Rust</b>.</p>',
    description_text: 'Build Rust.',
    job_url: `https://jobs.ashbyhq.com/acme/${ashbyId(0)}`,
    apply_url: `https://jobs.ashbyhq.com/acme/${ashbyId(0)}/application`,
    department: 'Engineering',
    team: 'Core',
    seniority: null,
    industry: null,
    function: null,
    language: null,
  })
  assert.equal((raw['compensation_tiers'] as unknown[]).length, 2)
})

test('omits unlisted postings', async () => {
  await using site = await startAshbyMock({ jobs: 4, unlisted: 3 })
  const { postings } = await runBoard(ashby, site, ACME)
  assert.deepEqual(idsOf(postings), [0, 1, 2, 3].map(ashbyId))
})

test('logs a hint for an empty board, since the response does not distinguish it from a wrong name', async () => {
  await using site = await startAshbyMock({ jobs: 0 })
  const { record, warnings } = await runBoard(ashby, site, ACME)
  assert.equal(record.exitCode, 0)
  assert.ok(warnings.some((warning) => warning.includes('"acme" is empty, or there is no such board')))
})

test('returns only what was asked for', async () => {
  await using site = await startAshbyMock({ jobs: 40 })
  const count = async (args: object) => (await runBoard(ashby, site, { ...ACME, ...args })).postings.length
  assert.equal(await count({ search: 'rust' }), 20)
  assert.equal(await count({ location: 'France' }), 14)
  assert.equal(await count({ remote: false }), 30)
  assert.equal(await count({ type: 'internship' }), 8)
  const since = (Date.now() - Date.parse('2026-11-10T09:00:00Z')) / 86_400_000 + 4.5
  assert.equal(await count({ since }), 5)
})
