/** The Personio board against its loopback mock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf, runBoard } from '../../../test/site/boards/ats-run.ts'
import { notFound } from '../../../test/site/boards/ats-server.ts'
import { boardConformance } from '../../../test/site/boards/ats-suite.ts'
import { startPersonioMock } from '../../../test/site/boards/personio.ts'
import personio from './personio.ts'

boardConformance({
  scraper: personio,
  start: startPersonioMock,
  args: { board: 'acme' },
  idOf: (n) => String(9000 + n),
  jobs: 60,
  startNobody: () => startPersonioMock({ jobs: 0, trouble: () => notFound }),
})

test('reads everything in a posting', async () => {
  await using site = await startPersonioMock({ jobs: 1 })
  const { postings } = await runBoard(personio, site, { board: 'acme' })
  const { job_hash, content_hash, locations, ...posting } = postings[0]!
  assert.deepEqual(
    locations.map(({ raw, city }) => [raw, city]),
    [
      ['Berlin', 'Berlin'],
      ['Hamburg', 'Hamburg'],
    ],
  )
  assert.deepEqual(posting, {
    source: 'personio',
    source_job_id: '9000',
    board_token: 'acme',
    requisition_id: null,
    title: 'Cook & Baker 0',
    company: 'Acme Küchen GmbH',
    company_url: null,
    company_logo: null,
    workplace: null,
    is_remote: null,
    remote_countries: [],
    employment_type: 'full_time',
    employment_type_raw: 'full-time',
    salary: null,
    salary_annual_min: null,
    salary_annual_max: null,
    date_posted: '2026-11-10T09:00:00.000Z',
    date_posted_precision: 'instant',
    valid_through: null,
    description_html: '<h3>Your tasks</h3>\n<p>Knead rye dough.</p>\n<h3>Benefits</h3>\n<ul><li>Bread</li></ul>',
    description_text: 'Your tasks\n\nKnead rye dough.\n\nBenefits\n- Bread',
    job_url: `${site.url}job/9000`,
    apply_url: null,
    department: 'Kitchen',
    team: 'Service',
    seniority: 'experienced',
    industry: 'gastronomy',
    function: 'cook',
    language: 'en',
    raw: { yearsOfExperience: '2-5', keywords: 'food,oven' },
  })
})

test('requests the given language', async () => {
  await using site = await startPersonioMock({ jobs: 1 })
  const { postings } = await runBoard(personio, site, { board: 'acme', language: 'de' })
  assert.equal(postings[0]!.title, 'Köchin & Baker 0')
})

test('reads the page’s search if the feed is off', async () => {
  await using site = await startPersonioMock({ jobs: 5, isFeedOff: true })
  const { record, postings } = await runBoard(personio, site, { board: 'acme' })
  assert.equal(record.exitCode, 0)
  assert.equal(postings.length, 5)
  assert.deepEqual(
    [postings[1]!.title, postings[1]!.employment_type, postings[1]!.locations[0]!.raw],
    ['Köchin & Waiter 1', 'internship', 'Wien'],
  )
})

test('raises an alarm for a truncated feed, or a page instead of it', async () => {
  await using cut = await startPersonioMock({ jobs: 5, cutAt: 1500 })
  const { record, postings, errors } = await runBoard(personio, cut, { board: 'acme' }, { retries: 0 })
  assert.equal(record.exitCode, 1)
  assert.match(errors[0]!.message, /cut off/)
  assert.deepEqual(postings, [])
  const page = () => ({ body: '<!doctype html><html><body>We have moved</body></html>' })
  await using site = await startPersonioMock({ jobs: 5, trouble: page })
  assert.equal((await runBoard(personio, site, { board: 'acme' }, { retries: 0 })).record.exitCode, 1)
})

test('returns only what was asked for', async () => {
  await using site = await startPersonioMock({ jobs: 30 })
  const count = async (args: object) => (await runBoard(personio, site, { board: 'acme', ...args })).postings.length
  assert.equal(await count({ search: 'waiter' }), 15)
  assert.equal(await count({ search: 'rye' }), 6)
  assert.equal(await count({ location: 'Wien' }), 15)
  assert.equal(await count({ type: 'internship' }), 10)
  const since = (Date.now() - Date.parse('2026-11-10T09:00:00Z')) / 86_400_000 + 1.5
  assert.deepEqual(idsOf((await runBoard(personio, site, { board: 'acme', since })).postings), ['9000', '9001'])
})
