/** The BambooHR board against its loopback mock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf, runBoard } from '../../../test/site/boards/ats-run.ts'
import { notFound, whenPath } from '../../../test/site/boards/ats-server.ts'
import { boardConformance } from '../../../test/site/boards/ats-suite.ts'
import { startBamboohrMock } from '../../../test/site/boards/bamboohr.ts'
import bamboohr from './bamboohr.ts'

boardConformance({
  scraper: bamboohr,
  start: startBamboohrMock,
  args: { board: 'acme' },
  idOf: (n) => String(500 + n),
  jobs: 60,
  startNobody: () => startBamboohrMock({ jobs: 0, trouble: () => notFound }),
})

test('reads everything in a posting, from the list and from its own response', async () => {
  await using site = await startBamboohrMock({ jobs: 1 })
  const { postings } = await runBoard(bamboohr, site, { board: 'acme' })
  const { job_hash, content_hash, raw, salary, ...posting } = postings[0]!
  assert.deepEqual([salary?.min, salary?.max, salary?.currency, salary?.interval], [25, 30, 'USD', 'hour'])
  assert.deepEqual(posting, {
    source: 'bamboohr',
    source_job_id: '500',
    board_token: 'acme',
    requisition_id: null,
    title: 'Welder 0',
    company: 'Acme',
    company_url: null,
    company_logo: null,
    locations: [
      { raw: 'Lindon, Utah, United States', city: 'Lindon', region: 'UT', country_iso2: 'US', lat: null, lon: null },
    ],
    workplace: 'onsite',
    is_remote: false,
    remote_countries: [],
    employment_type: 'full_time',
    employment_type_raw: 'Full-Time',
    salary_annual_min: 52_000,
    salary_annual_max: 62_400,
    date_posted: '2026-11-10',
    date_posted_precision: 'day',
    valid_through: null,
    description_html: '<p>Work with titanium.</p>',
    description_text: 'Work with titanium.',
    job_url: `${site.url}careers/500`,
    apply_url: null,
    department: 'Workshop',
    team: null,
    seniority: 'Mid-level',
    industry: null,
    function: null,
    language: null,
  })
})

test('reads the embedded page if the list is off', async () => {
  await using site = await startBamboohrMock({ jobs: 7, isListOff: true })
  const { record, postings } = await runBoard(bamboohr, site, { board: 'acme' })
  assert.equal(record.exitCode, 0)
  assert.equal(postings.length, 7)
  const seventh = postings.find(({ source_job_id }) => source_job_id === '506')!
  assert.deepEqual([seventh.title, seventh.description_text], ['Welder 6', 'Work with steel.'])
})

test('raises an alarm for an embedded page with another layout', async () => {
  const another = whenPath(/embed2/, () => ({ body: '<main><h1>Careers</h1></main>' }))
  await using site = await startBamboohrMock({ jobs: 3, isListOff: true, trouble: another })
  const { record, errors } = await runBoard(bamboohr, site, { board: 'acme' }, { retries: 0 })
  assert.equal(record.exitCode, 1)
  assert.match(errors[0]!.message, /another layout/)
})

test('omits a posting that is closed between the list and its own response', async () => {
  const closed = whenPath(/\/501\/detail$/, () => ({ status: 404, body: {} }))
  await using site = await startBamboohrMock({ jobs: 3, trouble: closed })
  const { record, postings } = await runBoard(bamboohr, site, { board: 'acme' })
  assert.equal(record.exitCode, 0)
  assert.deepEqual(idsOf(postings), ['500', '502'])
})

test('returns only what was asked for, and requests only postings that may match', async () => {
  await using site = await startBamboohrMock({ jobs: 30 })
  const asked = async (args: object) => {
    const before = site.stats().requests.length
    const { postings } = await runBoard(bamboohr, site, { board: 'acme', ...args })
    return [postings.length, site.stats().requests.length - before]
  }
  assert.deepEqual(await asked({ search: 'titanium' }), [6, 31])
  assert.deepEqual(await asked({ location: 'Boise' }), [15, 16])
  assert.deepEqual(await asked({ remote: true }), [10, 11])
  assert.deepEqual(await asked({ type: 'contract' }), [15, 16])
  // One by one, until enough are found: 0, 5 and 10 match.
  assert.deepEqual(await asked({ search: 'titanium', results: 3 }), [3, 12])
  const since = (Date.now() - Date.parse('2026-11-10T00:00:00Z')) / 86_400_000 + 1.5
  // Only the day is known: all of the third one may be recent enough.
  assert.equal((await asked({ since }))[0], 3)
})
