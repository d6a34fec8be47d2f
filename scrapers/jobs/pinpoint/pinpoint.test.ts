/** The Pinpoint board against its loopback mock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf, runBoard } from '../../../test/site/boards/ats-run.ts'
import { notFound } from '../../../test/site/boards/ats-server.ts'
import { boardConformance } from '../../../test/site/boards/ats-suite.ts'
import { pinpointJob, startPinpointMock } from '../../../test/site/boards/pinpoint.ts'
import pinpoint from './pinpoint.ts'

boardConformance({
  scraper: pinpoint,
  start: startPinpointMock,
  args: { board: 'acme' },
  idOf: (n) => String(70_000 + n),
  jobs: 60,
  startNobody: () => startPinpointMock({ jobs: 0, trouble: () => notFound }),
})

test('reads everything in a posting', async () => {
  await using site = await startPinpointMock({ jobs: 1 })
  const { postings } = await runBoard(pinpoint, site, { board: 'acme-care' })
  const { job_hash, content_hash, ...posting } = postings[0]!
  assert.deepEqual(posting, {
    source: 'pinpoint',
    source_job_id: '70000',
    board_token: 'acme-care',
    requisition_id: 'P-0',
    title: 'Support Partner 0',
    company: 'Acme Care',
    company_url: null,
    company_logo: null,
    locations: [{ raw: 'Bristol', city: 'Bristol', region: 'England', country_iso2: null, lat: null, lon: null }],
    workplace: 'hybrid',
    is_remote: false,
    remote_countries: [],
    employment_type: 'full_time',
    employment_type_raw: 'full_time',
    salary: { min: 30_000, max: 40_000, currency: 'GBP', interval: 'year', source: 'structured', raw: null },
    salary_annual_min: 30_000,
    salary_annual_max: 40_000,
    date_posted: '2026-11-10T09:00:00.000Z',
    date_posted_precision: 'instant',
    valid_through: '2026-12-31T23:59:59.000Z',
    description_html: '<div>Look after gold customers.</div>\n<ul><li>Listen</li></ul>',
    description_text: 'Look after gold customers.\n- Listen',
    job_url: pinpointJob(0).url,
    apply_url: null,
    department: 'Customers',
    team: 'Care',
    seniority: null,
    industry: null,
    function: null,
    language: null,
    raw: {},
  })
})

test('omits pay that the employer does not show', async () => {
  await using site = await startPinpointMock({ jobs: 2 })
  const { postings } = await runBoard(pinpoint, site, { board: 'acme' })
  assert.deepEqual(
    postings.map(({ salary }) => salary?.min),
    [30_000, undefined],
  )
})

test('returns only what was asked for', async () => {
  await using site = await startPinpointMock({ jobs: 30 })
  const count = async (args: object) => (await runBoard(pinpoint, site, { board: 'acme', ...args })).postings.length
  assert.equal(await count({ search: 'gold' }), 6)
  assert.equal(await count({ location: 'Leeds' }), 15)
  assert.equal(await count({ remote: true }), 10)
  assert.equal(await count({ type: 'part_time' }), 15)
  const since = (Date.now() - Date.parse('2026-11-10T09:00:00Z')) / 86_400_000 + 2.5
  assert.deepEqual(idsOf((await runBoard(pinpoint, site, { board: 'acme', since })).postings), [
    '70000',
    '70001',
    '70002',
  ])
})
