/** The SmartRecruiters board against its loopback mock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf, runBoard } from '../../../test/site/boards/ats-run.ts'
import { whenPath } from '../../../test/site/boards/ats-server.ts'
import { boardConformance, oddConformance } from '../../../test/site/boards/ats-suite.ts'
import { smartId, startSmartRecruitersMock } from '../../../test/site/boards/smartrecruiters.ts'
import smartrecruiters from './smartrecruiters.ts'

const ACME = { board: 'Acme' }

const BOARD = {
  scraper: smartrecruiters,
  start: startSmartRecruitersMock,
  args: ACME,
  nobody: { board: 'Nobody' },
  idOf: smartId,
  jobs: 120,
}
boardConformance(BOARD)
oddConformance(BOARD)

test('reads everything in a posting, from its own page', async () => {
  await using site = await startSmartRecruitersMock({ jobs: 1 })
  const { postings } = await runBoard(smartrecruiters, site, ACME)
  const { job_hash, content_hash, ...posting } = postings[0]!
  assert.deepEqual(posting, {
    source: 'smartrecruiters',
    source_job_id: smartId(0),
    board_token: 'Acme',
    requisition_id: 'REF0A',
    title: 'Backend Engineer 0',
    company: 'Acme Inc.',
    company_url: null,
    company_logo: null,
    locations: [{ raw: 'Warsaw, PL', city: 'Warsaw', region: null, country_iso2: 'PL', lat: 52.2297, lon: 21.0122 }],
    workplace: null,
    is_remote: null,
    remote_countries: [],
    employment_type: 'full_time',
    employment_type_raw: 'permanent',
    salary: { min: 50, max: 70, currency: 'USD', interval: 'hour', source: 'structured', raw: null },
    salary_annual_min: 104_000,
    salary_annual_max: 145_600,
    date_posted: '2026-11-10T09:00:00.000Z',
    date_posted_precision: 'instant',
    valid_through: null,
    description_html:
      '<h3>Company Description</h3><p>We are Acme.</p>\n<h3>Job Description</h3><p>Write Go.</p>\n<h3>Qualifications</h3><ul><li>Patience</li></ul>',
    description_text: posting.description_text,
    job_url: `https://jobs.smartrecruiters.com/Acme/${smartId(0)}`,
    apply_url: `https://jobs.smartrecruiters.com/Acme/${smartId(0)}-engineer-0?oga=true`,
    department: 'Engineering',
    team: null,
    seniority: 'Mid-Senior Level',
    industry: 'Computer Software',
    function: 'Engineering',
    language: null,
    raw: posting.raw,
  })
  assert.match(posting.description_text!, /We are Acme\.[\s\S]*Write Go\.[\s\S]*Patience/)
})

test('understands remote, hybrid and the old country "remote", and leaves it open without a flag', async () => {
  await using site = await startSmartRecruitersMock({ jobs: 10 })
  const { postings } = await runBoard(smartrecruiters, site, ACME)
  const byId = new Map(postings.map((posting) => [posting.source_job_id, posting]))
  assert.deepEqual(
    [0, 1, 2, 9].map((n) => byId.get(smartId(n))!.workplace),
    [null, 'remote', 'hybrid', 'remote'],
  )
  assert.equal(byId.get(smartId(9))!.locations[0]!.country_iso2, null)
})

test('requests list pages concurrently, and no posting that is not public', async () => {
  await using site = await startSmartRecruitersMock({ jobs: 120, hidden: 30, pageMax: 25 })
  const { postings } = await runBoard(smartrecruiters, site, ACME)
  assert.equal(postings.length, 120)
  const { requests } = site.stats()
  assert.deepEqual(
    requests.flatMap(({ query }) => query.get('offset') ?? []).sort((a, b) => Number(a) - Number(b)),
    ['0', '25', '50', '75', '100', '125'],
  )
  assert.equal(requests.length, 126)
})

test('filters on the list as far as possible', async () => {
  await using site = await startSmartRecruitersMock({ jobs: 60 })
  const count = async (args: object) => {
    const before = site.stats().requests.length
    const { postings } = await runBoard(smartrecruiters, site, { ...ACME, ...args })
    return [postings.length, site.stats().requests.length - before - 1]
  }
  assert.deepEqual(await count({ location: 'Poland' }), [18, 18])
  assert.deepEqual(await count({ type: 'internship' }), [15, 15])
  assert.deepEqual(await count({ remote: false }), [42, 42])
  assert.deepEqual(await count({ search: 'rust' }), [6, 60])
  const since = (Date.now() - Date.parse('2026-11-10T09:00:00Z')) / 86_400_000 + 4.5
  assert.deepEqual(await count({ since }), [5, 5])
})

test('continues a search for a few until it has them, across pages and closed postings, and no further', async () => {
  const closed = whenPath(new RegExp(`/${smartId(15)}$`), () => ({ status: 404, body: {} }))
  await using site = await startSmartRecruitersMock({ jobs: 250, trouble: closed, pageMax: 10 })
  const { record, postings } = await runBoard(smartrecruiters, site, { ...ACME, search: 'rust', results: 3 })
  assert.equal(record.exitCode, 0)
  assert.deepEqual(idsOf(postings), [5, 25, 35].map(smartId))
  assert.equal(site.stats().requests.length, 4 + 36)
})

test('omits a posting that is closed between the list and its own page', async () => {
  const closed = whenPath(new RegExp(`/${smartId(1)}$`), () => ({ status: 410, body: {} }))
  await using site = await startSmartRecruitersMock({ jobs: 3, trouble: closed })
  const { record, postings } = await runBoard(smartrecruiters, site, ACME)
  assert.equal(record.exitCode, 0)
  assert.deepEqual(idsOf(postings), [0, 2].map(smartId))
})

const listsAre = (list: object) => whenPath(/\/postings$/, () => ({ body: list }))

test('raises an alarm for a contradictory list instead of walking forever', async () => {
  const job = { id: smartId(0), name: 'Engineer', company: { name: 'Acme' } }
  const odd: [object, RegExp][] = [
    [{ totalFound: 50, limit: 100, content: [] }, /an empty page at 0 of 50 postings/],
    [{ totalFound: 1e12, limit: 100, content: [job] }, /every page with the same postings/],
    [{ totalFound: 500, limit: -5, content: [job] }, /every page with the same postings/],
    [{ totalFound: 500, limit: 0.001, content: [job] }, /every page with the same postings/],
  ]
  for (const [list, message] of odd)
    for (const search of ['', 'zebra']) {
      await using site = await startSmartRecruitersMock({ jobs: 1, trouble: listsAre(list) })
      const args = { ...ACME, search, results: 400 }
      const { record, errors } = await runBoard(smartrecruiters, site, args, { retries: 0 })
      assert.equal(record.exitCode, 1, JSON.stringify(list))
      assert.match(errors[0]!.message, message)
      assert.ok(site.stats().requests.length < 10)
    }
})
