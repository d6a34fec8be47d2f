/** The Recruitee board against its loopback mock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runBoard } from '../../../test/site/boards/ats-run.ts'
import { boardConformance, oddConformance } from '../../../test/site/boards/ats-suite.ts'
import { startRecruiteeMock } from '../../../test/site/boards/recruitee.ts'
import recruitee from './recruitee.ts'

const ACME = { board: 'acme' }

const BOARD = {
  scraper: recruitee,
  start: startRecruiteeMock,
  args: ACME,
  // On its own host: its name is not part of the path.
  startNobody: () => startRecruiteeMock({ jobs: 3, isNobodys: true }),
  idOf: (n: number) => String(700_000 + n),
  jobs: 60,
}
boardConformance(BOARD)
oddConformance(BOARD)

test('reads everything in an offer', async () => {
  await using site = await startRecruiteeMock({ jobs: 1 })
  const { postings } = await runBoard(recruitee, site, ACME)
  const { job_hash, content_hash, ...posting } = postings[0]!
  assert.deepEqual(posting, {
    source: 'recruitee',
    source_job_id: '700000',
    board_token: 'acme',
    requisition_id: null,
    title: 'Backend Engineer 0',
    company: 'Acme B.V.',
    company_url: null,
    company_logo: null,
    locations: [
      { raw: 'Amsterdam, Netherlands', city: 'Amsterdam', region: null, country_iso2: 'NL', lat: null, lon: null },
      { raw: 'Antwerp, Belgium', city: 'Antwerp', region: null, country_iso2: 'BE', lat: null, lon: null },
    ],
    workplace: 'onsite',
    is_remote: false,
    remote_countries: [],
    employment_type: 'full_time',
    employment_type_raw: 'fulltime_permanent',
    salary: { min: 4000, max: 5500, currency: 'EUR', interval: 'month', source: 'structured', raw: null },
    salary_annual_min: 48_000,
    salary_annual_max: 66_000,
    date_posted: '2026-11-10T09:00:00.000Z',
    date_posted_precision: 'instant',
    valid_through: null,
    description_html: '<p>Build Rust engines.</p>\n<ul><li>Patience</li></ul>',
    description_text: posting.description_text,
    job_url: 'https://acme.recruitee.com/o/engineer-0',
    apply_url: 'https://acme.recruitee.com/o/engineer-0/c/new',
    department: 'Engineering',
    team: null,
    seniority: null,
    industry: null,
    function: null,
    language: null,
    raw: {},
  })
  assert.match(posting.description_text!, /Build Rust engines\.[\s\S]*Patience/)
})

test('maps three flags to one workplace, and no flag to none', async () => {
  await using site = await startRecruiteeMock({ jobs: 4 })
  const { postings } = await runBoard(recruitee, site, ACME)
  assert.deepEqual(
    postings.map(({ workplace }) => workplace),
    ['onsite', 'remote', 'hybrid', null],
  )
  assert.deepEqual(
    postings.map(({ salary }) => salary?.min),
    [4000, undefined, 4000, undefined],
  )
})

test('returns only what was asked for', async () => {
  await using site = await startRecruiteeMock({ jobs: 40 })
  const count = async (args: object) => (await runBoard(recruitee, site, { ...ACME, ...args })).postings.length
  assert.equal(await count({ search: 'rust patience' }), 8)
  assert.equal(await count({ location: 'Belgium' }), 14)
  assert.equal(await count({ remote: false }), 30)
  assert.equal(await count({ type: 'internship' }), 10)
  const since = (Date.now() - Date.parse('2026-11-10T09:00:00Z')) / 86_400_000 + 4.5
  assert.equal(await count({ since }), 5)
})
