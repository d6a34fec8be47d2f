/** The Greenhouse board against its loopback mock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf, runBoard } from '../../../test/site/boards/ats-run.ts'
import { flaky, whenPath } from '../../../test/site/boards/ats-server.ts'
import { boardConformance, oddConformance } from '../../../test/site/boards/ats-suite.ts'
import { greenhouseJob, startGreenhouseMock } from '../../../test/site/boards/greenhouse.ts'
import greenhouse from './greenhouse.ts'

const idsUpTo = (jobs: number) => Array.from({ length: jobs }, (_, n) => String(4_000_000 + n)).sort()

const BOARD = {
  scraper: greenhouse,
  start: startGreenhouseMock,
  args: { board: 'acme' },
  nobody: { board: 'nobody' },
  idOf: (n: number) => String(4_000_000 + n),
  jobs: 60,
}
boardConformance(BOARD)
oddConformance(BOARD)

test('reads everything in a posting, its HTML with real tags', async () => {
  await using site = await startGreenhouseMock({ jobs: 1 })
  const { postings } = await runBoard(greenhouse, site, { board: 'acme' })
  const { job_hash, content_hash, ...posting } = postings[0]!
  assert.deepEqual(posting, {
    source: 'greenhouse',
    source_job_id: '4000000',
    board_token: 'acme',
    requisition_id: 'REQ-0',
    title: 'Backend Engineer 0',
    company: 'Acme & Sons',
    company_url: null,
    company_logo: null,
    locations: [{ raw: 'Berlin, Germany', city: 'Berlin', region: null, country_iso2: 'DE', lat: null, lon: null }],
    workplace: null,
    is_remote: null,
    remote_countries: [],
    employment_type: 'full_time',
    employment_type_raw: 'Full-time',
    salary: null,
    salary_annual_min: null,
    salary_annual_max: null,
    date_posted: '2026-11-10T09:00:00.000Z',
    date_posted_precision: 'instant',
    valid_through: null,
    description_html: '<div class="intro"><p>Build &amp; run Rust services.</p></div>',
    description_text: 'Build & run Rust services.',
    job_url: greenhouseJob(0).absolute_url,
    apply_url: null,
    department: 'Engineering',
    team: null,
    seniority: null,
    industry: null,
    function: null,
    language: 'en',
    raw: { metadata: [{ name: 'Employment Type', value: 'Full-time' }] },
  })
})

test('requests each posting’s pay if asked to, and combines all zones of one currency', async () => {
  await using site = await startGreenhouseMock({ jobs: 3, trouble: whenPath(/\/jobs\/\d+$/, flaky) })
  const { record, postings } = await runBoard(greenhouse, site, { board: 'acme', pay: true })
  assert.equal(record.exitCode, 0)
  assert.deepEqual(idsOf(postings), idsUpTo(3))
  const { min, max, currency, interval, source } = postings[0]!.salary!
  assert.deepEqual([min, max, currency, interval, source], [100_000, 150_000, 'USD', 'year', 'structured'])
})

test('omits a posting that is closed between the list and its own response', async () => {
  const closed = whenPath(/\/jobs\/4000001$/, () => ({ status: 404, body: { status: 404 } }))
  await using site = await startGreenhouseMock({ jobs: 3, trouble: closed })
  const { record, postings } = await runBoard(greenhouse, site, { board: 'acme', pay: true })
  assert.equal(record.exitCode, 0)
  assert.deepEqual(idsOf(postings), ['4000000', '4000002'])
})

test('returns only what was asked for, and requests pay for no more postings than that', async () => {
  await using site = await startGreenhouseMock({ jobs: 40 })
  const count = async (args: object) => {
    const { postings } = await runBoard(greenhouse, site, { board: 'acme', ...args })
    return postings.length
  }
  assert.equal(await count({ search: 'frontend' }), 10)
  assert.equal(await count({ search: 'rust' }), 8)
  assert.equal(await count({ location: 'Berlin' }), 10)
  assert.equal(await count({ remote: false }), 30)
  assert.equal(await count({ remote: true }), 10, 'a city says nothing about remote work')
  assert.equal(await count({ type: 'full_time' }), 20)
  assert.equal(await count({ results: 7 }), 7)
  const before = site.stats().requests.length
  assert.equal(await count({ search: 'frontend', results: 4, pay: true }), 4)
  assert.equal(site.stats().requests.length - before, 5)
})

test('omits postings older than the requested days', async () => {
  await using site = await startGreenhouseMock({ jobs: 40 })
  const dayMs = 86_400_000
  const since = (Date.now() - Date.parse('2026-11-10T09:00:00Z')) / dayMs + 4.5
  const { postings } = await runBoard(greenhouse, site, { board: 'acme', since })
  assert.deepEqual(idsOf(postings), idsUpTo(5))
})

test('raises an alarm for a list without postings that states a total', async () => {
  await using site = await startGreenhouseMock({ jobs: 10, sends: 0 })
  const { record, errors } = await runBoard(greenhouse, site, { board: 'acme' }, { retries: 0 })
  assert.equal(record.exitCode, 1)
  assert.match(errors[0]!.message, /an empty page at 0 of 10 postings/)
})

test('says when the board sends less than it has', async () => {
  await using site = await startGreenhouseMock({ jobs: 10, sends: 6 })
  for (const pay of [true, false]) {
    const { postings, warnings } = await runBoard(greenhouse, site, { board: 'acme', pay })
    assert.equal(postings.length, 6)
    assert.ok(postings.every(({ raw }) => raw['truncated'] === true))
    assert.ok(warnings.some((warning) => warning.includes('has 10 postings and sent 6')))
  }
})
