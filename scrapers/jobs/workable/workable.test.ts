/** The Workable board against its loopback mock, over the widget and over the paged API. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf, runBoard } from '../../../test/site/boards/ats-run.ts'
import { whenPath } from '../../../test/site/boards/ats-server.ts'
import { boardConformance, oddConformance } from '../../../test/site/boards/ats-suite.ts'
import { startWorkableMock, workableCode } from '../../../test/site/boards/workable.ts'
import workable from './workable.ts'

const ACME = { board: 'acme-robotics' }
const PAGES = { ...ACME, api: 'pages' }

for (const args of [ACME, PAGES]) {
  const board = {
    scraper: workable,
    start: startWorkableMock,
    args,
    nobody: { board: 'nobody' },
    idOf: workableCode,
    jobs: 35,
  }
  boardConformance(board)
  oddConformance(board)
}

test('reads everything in a posting of the widget, the whole board in one request', async () => {
  await using site = await startWorkableMock({ jobs: 3 })
  const { postings } = await runBoard(workable, site, ACME)
  const { job_hash, content_hash, ...posting } = postings[0]!
  assert.deepEqual(posting, {
    source: 'workable',
    source_job_id: workableCode(0),
    board_token: 'acme-robotics',
    requisition_id: 'INT-0',
    title: 'Backend Engineer 0',
    company: 'Acme Robotics, Inc.',
    company_url: null,
    company_logo: null,
    locations: [{ ...posting.locations[0]!, raw: 'Athens, Attica, Greece', city: 'Athens', country_iso2: 'GR' }],
    workplace: null,
    is_remote: null,
    remote_countries: [],
    employment_type: 'part_time',
    employment_type_raw: 'Part-time',
    salary: null,
    salary_annual_min: null,
    salary_annual_max: null,
    date_posted: '2026-11-10',
    date_posted_precision: 'day',
    valid_through: null,
    description_html: '<p>Write Rust.</p><ul><li>Patience</li></ul>',
    description_text: posting.description_text,
    job_url: `https://apply.workable.com/j/${workableCode(0)}`,
    apply_url: `https://apply.workable.com/j/${workableCode(0)}/apply`,
    department: 'Engineering',
    team: null,
    seniority: 'Mid-Senior level',
    industry: 'Software',
    function: 'Engineering',
    language: null,
    raw: {},
  })
  assert.equal(postings[1]!.workplace, 'remote')
  assert.equal(site.stats().requests.length, 1)
})

test('reads everything in a posting of the paged API, with every part of its text', async () => {
  await using site = await startWorkableMock({ jobs: 3 })
  const { postings } = await runBoard(workable, site, PAGES)
  const hybrid = postings.find(({ source_job_id }) => source_job_id === workableCode(2))!
  assert.deepEqual(
    [hybrid.workplace, hybrid.employment_type, hybrid.date_posted, hybrid.department, hybrid.team, hybrid.company],
    ['hybrid', 'full_time', '2026-11-08T09:00:00.000Z', 'Engineering', 'Platform', 'Acme Robotics'],
  )
  assert.equal(hybrid.description_html, '<p>Write Go.</p>\n<ul><li>Patience</li></ul>\n<p>A desk</p>')
  assert.equal(hybrid.job_url, `https://apply.workable.com/acme-robotics/j/${workableCode(2)}/`)
  const first = site.stats().requests[0]!
  assert.deepEqual(
    [first.method, first.body],
    ['POST', { query: '', location: [], department: [], worktype: [], remote: [] }],
  )
})

test('returns only what was asked for, over both APIs', async () => {
  await using site = await startWorkableMock({ jobs: 36 })
  for (const args of [ACME, PAGES]) {
    const count = async (more: object) => (await runBoard(workable, site, { ...args, ...more })).postings.length
    assert.equal(await count({ search: 'rust patience' }), 8)
    assert.equal(await count({ location: 'Greece' }), 12)
    assert.equal(await count({ remote: false }), 27)
    assert.equal(await count({ type: 'part_time' }), 9)
    assert.equal(await count({ search: 'rust', results: 3 }), 3)
  }
})

test('continues a search for a few until it has them, across pages and closed postings, and no further', async () => {
  const closed = whenPath(new RegExp(`/${workableCode(5)}$`), () => ({ status: 404, body: {} }))
  await using site = await startWorkableMock({ jobs: 36, trouble: closed })
  const { record, postings } = await runBoard(workable, site, { ...PAGES, search: 'rust', results: 3 })
  assert.equal(record.exitCode, 0)
  assert.deepEqual(idsOf(postings), [0, 10, 15].map(workableCode))
  assert.equal(site.stats().requests.length, 2 + 16)
})

test('waits for a board that throttles, however often, and never treats it as gone', async () => {
  const busy = (_: unknown, asked: number) => (asked <= 2 ? { status: 429, body: {} } : undefined)
  await using site = await startWorkableMock({ jobs: 3, trouble: busy })
  const { record, postings } = await runBoard(workable, site, ACME)
  assert.equal(record.exitCode, 0)
  assert.equal(postings.length, 3)
})

test('raises an alarm for a list that does not advance, or loops', async () => {
  const results = Array.from({ length: 20 }, (_, n) => ({ shortcode: `AB${n}`, title: 'Engineer' }))
  let asked = 0
  const stuck = whenPath(/\/v3\//, () => ({ body: { total: 9, results, nextPage: ['a', 'b'][asked++ % 2] } }))
  await using site = await startWorkableMock({ jobs: 9, trouble: stuck })
  const { record, errors } = await runBoard(workable, site, PAGES)
  assert.equal(record.exitCode, 1)
  assert.match(errors[0]!.message, /goes on after all 9 postings/)
})
