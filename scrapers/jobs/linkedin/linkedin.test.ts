/** The LinkedIn scraper against a loopback LinkedIn: every posting once, its end, its walls, and the opt-in. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { idsOf } from '../../../test/site/boards/ats-run.ts'
import { isClosed, LINKEDIN_SEARCH, linkedinId, startLinkedinMock } from '../../../test/site/boards/linkedin.ts'
import { runOptIn } from '../../../test/site/boards/opt-in-run.ts'
import { queriesOf, type Wall } from '../../../test/site/boards/walls.ts'
import linkedin from './linkedin.ts'

const startsOf = (mock: { asked: readonly string[] }) =>
  queriesOf(mock, LINKEDIN_SEARCH).map((query) => Number(query.get('start')))
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

test('finds every posting of a search once, in steps of ten, and omits closed ones', async () => {
  await using mock = await startLinkedinMock({ jobs: 24 })
  const { record, postings, errors } = await runOptIn(linkedin, mock)
  assert.deepEqual([record.exitCode, errors], [0, []])
  assert.deepEqual(
    idsOf(postings),
    numbers(24)
      .filter((n) => !isClosed(n))
      .map(linkedinId),
  )
  assert.deepEqual(startsOf(mock), [0, 10, 20, 30])
})

test('reads a posting in full from its card and its page', async () => {
  await using mock = await startLinkedinMock({ jobs: 1 })
  const { postings } = await runOptIn(linkedin, mock)
  const [item] = postings
  assert.equal(postings.length, 1)
  assert.deepEqual(
    {
      id: item!.source_job_id,
      board: item!.board_token,
      title: item!.title,
      company: [item!.company, item!.company_url],
      location: item!.locations.map(({ city, country_iso2 }) => [city, country_iso2]),
      type: item!.employment_type,
      seniority: item!.seniority,
      work: [item!.function, item!.industry],
      date: [item!.date_posted, item!.date_posted_precision],
      url: item!.job_url,
      text: item!.description_text,
      pay: [item!.salary?.min, item!.salary?.max, item!.salary?.currency, item!.salary?.interval],
      raw: [item!.raw['easy_apply'], item!.raw['applicants']],
    },
    {
      id: linkedinId(0),
      board: new URL(mock.url).host,
      title: 'Engineer 0',
      company: ['Acme & Sons', 'https://uk.linkedin.com/company/acme'],
      location: [['London', 'GB']],
      type: 'full_time',
      seniority: 'Mid-Senior level',
      work: ['Engineering', 'Software Development'],
      date: ['2026-11-10', 'day'],
      url: `${mock.url}/jobs/view/${linkedinId(0)}`,
      text: 'Build engine 0.',
      pay: [120_000, 150_000, 'USD', 'year'],
      raw: [true, '25 applicants'],
    },
  )
})

test('passes the search on to the site, and uses only the cards without details', async () => {
  await using mock = await startLinkedinMock({ jobs: 40 })
  const search = {
    search: 'engineer',
    location: 'London',
    since: 100_000,
    remote: true,
    type: 'contract',
    distance: 25,
  }
  const { postings } = await runOptIn(linkedin, mock, { details: false, ...search, results: 15 })
  assert.equal(postings.length, 15)
  assert.ok(postings.every((item) => item.is_remote === true && item.employment_type === 'contract'))
  assert.deepEqual(Object.fromEntries(queriesOf(mock, LINKEDIN_SEARCH)[0]!), {
    keywords: 'engineer',
    location: 'London',
    distance: '25',
    f_TPR: `r${100_000 * 86_400}`,
    f_WT: '2',
    f_JT: 'C',
    sortBy: 'DD',
    start: '0',
  })
  assert.deepEqual(startsOf(mock), [0, 10])
})

test('does not open postings that are older than asked for', async () => {
  const newestDay = new Date().toISOString().slice(0, 10)
  await using mock = await startLinkedinMock({ jobs: 9, newestDay })
  const { postings } = await runOptIn(linkedin, mock, { since: 3 })
  assert.equal(mock.asked.filter((line) => line.includes('/jobPosting/')).length, postings.length)
  assert.ok(postings.length === 3 || postings.length === 4, String(postings.length)) // the day may have changed during the test
})

test('treats status 400 as the end, but not on the first page', async () => {
  await using mock = await startLinkedinMock({ jobs: 10, end: 'status400' })
  const { record, postings } = await runOptIn(linkedin, mock, { details: false })
  assert.deepEqual([record.exitCode, postings.length], [0, 10])
  await using refusing = await startLinkedinMock({ jobs: 0, end: 'status400' })
  const refused = await runOptIn(linkedin, refusing)
  assert.deepEqual([refused.record.exitCode, refused.errors.map(({ code }) => code)], [1, ['E_STATUS']])
})

test('succeeds with an empty search, and fails with a changed layout', async () => {
  await using empty = await startLinkedinMock({ jobs: 0 })
  const nothing = await runOptIn(linkedin, empty)
  assert.deepEqual([nothing.record.exitCode, nothing.postings.length, nothing.errors], [0, 0, []])
  await using changed = await startLinkedinMock({ jobs: 20, isRedesigned: true })
  const { record, errors } = await runOptIn(linkedin, changed)
  assert.deepEqual([record.exitCode, errors.map(({ code }) => code)], [1, ['E_SELECTOR_EMPTY']])
})

test('survives a 429 and a 502 between the pages', async () => {
  for (const is of ['rateLimit', 'serverError'] as const) {
    await using mock = await startLinkedinMock({ jobs: 20, wall: { at: 2, is } })
    const { record, postings } = await runOptIn(linkedin, mock, { details: false })
    assert.deepEqual([is, record.exitCode, postings.length], [is, 0, 20])
  }
})

describe('reports a wall, keeps what was found before it, and does not retry it forever', () => {
  const codes: Partial<Record<Wall, RegExp>> = { authwall: /^E_LOGIN_WALL$/, status999: /^E_BLOCKED$/ }
  for (const [is, code] of Object.entries(codes))
    test(is, async () => {
      await using mock = await startLinkedinMock({ jobs: 50, wall: { at: 3, is: is as Wall, stays: true } })
      const { record, postings, errors } = await runOptIn(linkedin, mock, { details: false })
      assert.deepEqual([record.exitCode, postings.length, errors.length], [1, 20, 1])
      assert.match(errors[0]!.code, code)
      assert.ok(mock.asked.length <= 20, `${mock.asked.length} requests`)
    })
})

test('treats a login wall instead of a posting neither as closed nor as empty', async () => {
  // Two list pages and three postings come before it.
  await using mock = await startLinkedinMock({ jobs: 9, wall: { at: 6, is: 'authwall', stays: true } })
  const { record, postings, errors } = await runOptIn(linkedin, mock)
  assert.deepEqual([record.exitCode, postings.length], [1, 3])
  assert.deepEqual(
    errors.map(({ code }) => code),
    numbers(6).map(() => 'E_LOGIN_WALL'),
  )
})

test('robots.txt is obeyed', async () => {
  await using mock = await startLinkedinMock({ jobs: 10, robots: 'User-agent: *\nDisallow: /' })
  const { record, errors } = await runOptIn(linkedin, mock)
  assert.deepEqual([record.exitCode, errors.map(({ code }) => code)], [1, ['E_ROBOTS']])
  assert.deepEqual(startsOf(mock), [])
})
