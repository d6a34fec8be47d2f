/** The Workday board against its loopback mock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf, runBoard } from '../../../test/site/boards/ats-run.ts'
import { whenPath } from '../../../test/site/boards/ats-server.ts'
import { boardConformance, oddConformance } from '../../../test/site/boards/ats-suite.ts'
import { startWorkdayMock, workdayId } from '../../../test/site/boards/workday.ts'
import workday from './workday.ts'

const ACME = { board: 'acme', instance: 'wd5', careers: 'External' }

const BOARD = {
  scraper: workday,
  start: startWorkdayMock,
  args: ACME,
  nobody: { careers: 'Nobody' },
  idOf: workdayId,
  jobs: 70,
}
boardConformance(BOARD)
oddConformance(BOARD)

test('reads everything in a posting, from its own response', async () => {
  await using site = await startWorkdayMock({ jobs: 1 })
  const { postings } = await runBoard(workday, site, { ...ACME, company: 'Acme' })
  const { job_hash, content_hash, ...posting } = postings[0]!
  assert.deepEqual(posting, {
    source: 'workday',
    source_job_id: 'R00000',
    board_token: 'acme',
    requisition_id: 'R00000',
    title: 'Backend Engineer 0',
    company: 'Acme',
    company_url: null,
    company_logo: null,
    locations: [
      {
        raw: 'US-TX-AUSTIN-BLDG 1 ~ 1 Main Street',
        city: posting.locations[0]!.city,
        region: 'TX',
        country_iso2: 'US',
        lat: null,
        lon: null,
      },
      { raw: 'Berlin, Germany', city: 'Berlin', region: null, country_iso2: 'DE', lat: null, lon: null },
    ],
    workplace: 'remote',
    is_remote: true,
    remote_countries: [],
    employment_type: 'part_time',
    employment_type_raw: 'Part time',
    salary: null,
    salary_annual_min: null,
    salary_annual_max: null,
    date_posted: new Date().toISOString().slice(0, 10),
    date_posted_precision: 'day',
    valid_through: null,
    description_html: '<p>Write Go.</p>',
    description_text: 'Write Go.',
    job_url: 'https://acme.wd5.myworkdayjobs.com/External/job/Austin/Engineer-0_R00000',
    apply_url: null,
    department: null,
    team: null,
    seniority: null,
    industry: null,
    function: null,
    language: null,
    raw: { careers: 'External', hiring_organization: '100 Acme Inc.' },
  })
  assert.match(posting.locations[0]!.city!, /^austin$/i)
})

const berlin = (jobs: number) =>
  Array.from({ length: jobs }, (_, n) => n)
    .filter((n) => n % 10 === 0 || n % 3 === 1)
    .map(workdayId)

test('reads a board of more than 2000 in parts, without missing or repeating any', async () => {
  const jobs = 2600
  for (const hasOrphans of [false, true]) {
    await using site = await startWorkdayMock({ jobs, hasOrphans })
    const only = { type: 'part_time', remote: false, location: 'Berlin', results: 10_000 }
    const { record, postings } = await runBoard(workday, site, { ...ACME, ...only })
    assert.equal(record.exitCode, 0)
    const expected = berlin(jobs).filter((id) => Number(id.slice(1)) % 4 === 0 && Number(id.slice(1)) % 3 !== 0)
    assert.deepEqual(idsOf(postings), expected)
    const bodies = site.stats().requests.flatMap(({ body }) => (body as { appliedFacets: object } | undefined) ?? [])
    const facet = hasOrphans ? 'timeType' : 'jobFamilyGroup'
    assert.ok(
      bodies.slice(1).every(({ appliedFacets }) => facet in appliedFacets),
      `split by ${facet}`,
    )
  }
})

test('returns no more than asked for, even from a board that is read in parts', async () => {
  await using site = await startWorkdayMock({ jobs: 2100 })
  const { record, postings } = await runBoard(workday, site, { ...ACME, results: 45 })
  assert.equal(record.exitCode, 0)
  assert.equal(new Set(idsOf(postings)).size, 45)
  assert.ok(site.stats().requests.length < 60, 'and no more was asked for')
})

test('continues a search for a few until it has them, and no further', async () => {
  await using site = await startWorkdayMock({ jobs: 100 })
  const few = { ...ACME, location: 'Berlin', type: 'full_time', results: 25 }
  const { record, postings } = await runBoard(workday, site, few)
  assert.equal(record.exitCode, 0)
  assert.equal(new Set(idsOf(postings)).size, 25)
  assert.ok(postings.every(({ locations }) => locations.some(({ city }) => city === 'Berlin')))
})

test('returns only what was asked for; the board itself searches, and the list filters as far as possible', async () => {
  await using site = await startWorkdayMock({ jobs: 60 })
  const count = async (args: object) => {
    const before = site.stats().requests.length
    const { postings } = await runBoard(workday, site, { ...ACME, ...args })
    return [
      postings.length,
      site
        .stats()
        .requests.slice(before)
        .filter(({ method }) => method === 'GET').length,
    ]
  }
  assert.deepEqual(await count({ search: 'rust' }), [6, 6])
  assert.deepEqual(await count({ type: 'part_time' }), [15, 15])
  assert.deepEqual(await count({ remote: false }), [40, 40])
  assert.deepEqual(
    await count({ since: 4 }),
    [5, 5],
    'whatever time of day it is: "4 days ago" may have been late on that day',
  )
  // "2 Locations" is resolved by the posting itself.
  assert.deepEqual(await count({ location: 'London' }), [18, 24])
})

test('omits a closed requisition, and retries a refusal for other reasons', async () => {
  const closed = { status: 403, body: { errorCode: 'S22', message: 'closed' } }
  const throttled = { status: 403, body: { errorCode: 'HTTP_403' } }
  const trouble = whenPath(/\/job\//, ({ path }, asked) => {
    if (path.endsWith('_R00001')) return closed
    return path.endsWith('_R00002') && asked === 1 ? throttled : undefined
  })
  await using site = await startWorkdayMock({ jobs: 4, trouble })
  const { record, postings } = await runBoard(workday, site, ACME)
  assert.equal(record.exitCode, 0)
  assert.deepEqual(idsOf(postings), ['R00000', 'R00002', 'R00003'])
  assert.equal(record.pages.retried, 1)
})

test('treats HTML instead of JSON as an incident: retried, and finally a failure', async () => {
  const page = { body: '<!doctype html><title>Workday is currently unavailable.</title>' }
  await using site = await startWorkdayMock({ jobs: 3, trouble: (_, asked) => (asked === 1 ? page : undefined) })
  const { record, postings } = await runBoard(workday, site, ACME)
  assert.equal(record.exitCode, 0)
  assert.equal(postings.length, 3)
  await using down = await startWorkdayMock({ jobs: 3, trouble: () => page })
  const lost = await runBoard(workday, down, ACME, { retries: 1 })
  assert.equal(lost.record.exitCode, 1)
  assert.match(lost.errors[0]!.message, /HTML in place of JSON/)
})
