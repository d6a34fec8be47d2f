/** The Lever board against its loopback mock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf, runBoard } from '../../../test/site/boards/ats-run.ts'
import { boardConformance, oddConformance } from '../../../test/site/boards/ats-suite.ts'
import { leverId, startLeverMock } from '../../../test/site/boards/lever.ts'
import lever from './lever.ts'

const ACME = { board: 'acme-robotics' }

const BOARD = {
  scraper: lever,
  start: startLeverMock,
  args: ACME,
  nobody: { board: 'nobody' },
  idOf: leverId,
  jobs: 250,
}
boardConformance(BOARD)
oddConformance(BOARD)

test('ends a board whose last page is full with an empty one', async () => {
  await using site = await startLeverMock({ jobs: 200 })
  const { record, postings } = await runBoard(lever, site, ACME)
  assert.equal(record.exitCode, 0)
  assert.equal(postings.length, 200)
  assert.deepEqual(
    site.stats().requests.map(({ query }) => query.get('skip')),
    ['0', '100', '200'],
  )
})

test('reads everything in a posting, with every part of its text', async () => {
  await using site = await startLeverMock({ jobs: 1 })
  const { postings } = await runBoard(lever, site, ACME)
  const { job_hash, content_hash, ...posting } = postings[0]!
  assert.deepEqual(posting, {
    source: 'lever',
    source_job_id: leverId(0),
    board_token: 'acme-robotics',
    requisition_id: null,
    title: 'Backend Engineer 0',
    company: 'Acme Robotics',
    company_url: null,
    company_logo: null,
    locations: [
      { raw: 'Berlin', city: 'Berlin', region: null, country_iso2: null, lat: null, lon: null },
      { raw: 'Munich', city: 'Munich', region: null, country_iso2: null, lat: null, lon: null },
    ],
    workplace: 'onsite',
    is_remote: false,
    remote_countries: [],
    employment_type: 'part_time',
    employment_type_raw: 'Part-time',
    salary: { min: 70_000, max: 90_000, currency: 'EUR', interval: 'year', source: 'structured', raw: null },
    salary_annual_min: 70_000,
    salary_annual_max: 90_000,
    date_posted: '2026-11-10T09:00:00.000Z',
    date_posted_precision: 'instant',
    valid_through: null,
    description_html:
      '<div>We build engines.</div>\n<h3>What you do</h3><ul><li>Write Rust</li><li>Review</li></ul>\n<h3>What you get</h3><ul><li>A desk</li></ul>\n<div>Equal opportunity.</div>',
    description_text: posting.description_text,
    job_url: `https://jobs.lever.co/acme/${leverId(0)}`,
    apply_url: `https://jobs.lever.co/acme/${leverId(0)}/apply`,
    department: 'Engineering',
    team: 'Platform',
    seniority: null,
    industry: null,
    function: null,
    language: null,
    raw: { company_from: 'board' },
  })
  for (const words of ['We build engines', 'What you do', 'Write Rust', 'A desk', 'Equal opportunity'])
    assert.ok(posting.description_text?.includes(words), words)
})

test('applies the country to the only location, and accepts the employer’s name', async () => {
  await using site = await startLeverMock({ jobs: 2 })
  const { postings } = await runBoard(lever, site, { ...ACME, company: 'ACME GmbH' })
  assert.equal(postings[1]!.locations[0]!.country_iso2, 'DE')
  assert.equal(postings[1]!.company, 'ACME GmbH')
})

test('returns only what was asked for, across all pages, and stops when it has enough', async () => {
  await using site = await startLeverMock({ jobs: 240 })
  const count = async (args: object) => (await runBoard(lever, site, { ...ACME, ...args })).postings.length
  assert.equal(await count({ search: 'rust' }), 48)
  assert.equal(await count({ location: 'Munich' }), 80)
  assert.equal(await count({ remote: false }), 180)
  assert.equal(await count({ type: 'part_time' }), 60)
  const before = site.stats().requests.length
  assert.equal(await count({ search: 'rust', results: 25 }), 25)
  assert.equal(site.stats().requests.length - before, 2)
})

test('omits postings older than the requested days', async () => {
  await using site = await startLeverMock({ jobs: 20 })
  const since = (Date.now() - Date.parse('2026-11-10T09:00:00Z')) / 86_400_000 + 4.5
  const { postings } = await runBoard(lever, site, { ...ACME, since })
  assert.deepEqual(idsOf(postings), [0, 1, 2, 3, 4].map(leverId))
})

test('raises an alarm for a board that repeats the same page forever', async () => {
  await using site = await startLeverMock({ jobs: 200, ignoresSkip: true })
  const { record, errors } = await runBoard(lever, site, ACME, { retries: 0 })
  assert.equal(record.exitCode, 1)
  assert.match(errors[0]!.message, /same postings/)
  assert.equal(site.stats().requests.length, 2)
})
