/** The Teamtailor board against its loopback mock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf, runBoard } from '../../../test/site/boards/ats-run.ts'
import { notFound } from '../../../test/site/boards/ats-server.ts'
import { boardConformance } from '../../../test/site/boards/ats-suite.ts'
import { startTeamtailorMock } from '../../../test/site/boards/teamtailor.ts'
import teamtailor from './teamtailor.ts'

boardConformance({
  scraper: teamtailor,
  start: startTeamtailorMock,
  args: { board: 'acme' },
  idOf: (n) => String(3000 + n),
  jobs: 60,
  startNobody: () => startTeamtailorMock({ jobs: 0, trouble: () => notFound }),
})

test('reads everything in a posting', async () => {
  await using site = await startTeamtailorMock({ jobs: 2 })
  const { postings } = await runBoard(teamtailor, site, { board: 'acme' })
  const { job_hash, content_hash, locations, ...posting } = postings[0]!
  assert.deepEqual(
    locations.map(({ city, country_iso2 }) => [city, country_iso2]),
    [
      ['Stockholm', 'SE'],
      ['Oslo', 'NO'],
    ],
  )
  assert.deepEqual(posting, {
    source: 'teamtailor',
    source_job_id: '3000',
    board_token: 'acme',
    requisition_id: null,
    title: 'Sales & Service 0',
    company: 'Acme Boats',
    company_url: null,
    company_logo: null,
    workplace: 'hybrid',
    is_remote: false,
    remote_countries: [],
    employment_type: null,
    employment_type_raw: null,
    salary: null,
    salary_annual_min: null,
    salary_annual_max: null,
    date_posted: '2026-11-10T09:00:00.000Z',
    date_posted_precision: 'instant',
    valid_through: null,
    description_html: '<p>Sell boats &amp; more.</p>',
    description_text: 'Sell boats & more.',
    job_url: 'https://acme.teamtailor.com/jobs/3000-sales-service',
    apply_url: null,
    department: 'Sales',
    team: null,
    seniority: null,
    industry: null,
    function: 'Account manager',
    language: null,
    raw: { guid: 'uuid-0' },
  })
  assert.equal(postings[1]!.description_html, '<p>Sell cars &amp; more.</p>')
})

test('raises an alarm for a truncated feed', async () => {
  await using site = await startTeamtailorMock({ jobs: 5, cutAt: 1500 })
  const { record, postings, errors } = await runBoard(teamtailor, site, { board: 'acme' }, { retries: 0 })
  assert.equal(record.exitCode, 1)
  assert.match(errors[0]!.message, /cut off/)
  assert.deepEqual(postings, [])
})

test('returns only what was asked for', async () => {
  await using site = await startTeamtailorMock({ jobs: 40 })
  const count = async (args: object) => (await runBoard(teamtailor, site, { board: 'acme', ...args })).postings.length
  assert.equal(await count({ search: 'boats' }), 8)
  assert.equal(await count({ location: 'Oslo' }), 20)
  assert.equal(await count({ remote: false }), 30)
  const since = (Date.now() - Date.parse('2026-11-10T09:00:00Z')) / 86_400_000 + 1.5
  assert.deepEqual(idsOf((await runBoard(teamtailor, site, { board: 'acme', since })).postings), ['3000', '3001'])
})
