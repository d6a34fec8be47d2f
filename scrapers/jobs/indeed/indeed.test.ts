/** The Indeed scraper against a loopback Indeed: every posting once although pages overlap and repeat, its fields, its checks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf } from '../../../test/site/boards/ats-run.ts'
import { INDEED_SEARCH, indeedKey, startIndeedMock } from '../../../test/site/boards/indeed.ts'
import { runOptIn } from '../../../test/site/boards/opt-in-run.ts'
import { queriesOf } from '../../../test/site/boards/walls.ts'
import indeed from './indeed.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
const startsOf = (mock: { asked: readonly string[] }) =>
  queriesOf(mock, INDEED_SEARCH).map((query) => Number(query.get('start')))
const visitsOf = (mock: { asked: readonly string[] }) => queriesOf(mock, '/viewjob').map((query) => query.get('jk'))

test('finds and visits every posting once, although pages overlap, repeat and change their order', async () => {
  await using mock = await startIndeedMock({ jobs: 38 })
  const { record, postings, errors } = await runOptIn(indeed, mock)
  assert.deepEqual([record.exitCode, errors], [0, []])
  assert.deepEqual(idsOf(postings), numbers(38).map(indeedKey))
  assert.deepEqual(visitsOf(mock).sort(), numbers(38).map(indeedKey))
  assert.deepEqual(startsOf(mock), [0, 10, 20, 30, 40].slice(0, startsOf(mock).length))
})

test('reads a posting in full from its card and the markup of its page', async () => {
  await using mock = await startIndeedMock({ jobs: 1 })
  const [posting] = (await runOptIn(indeed, mock)).postings
  assert.deepEqual(
    {
      title: posting!.title,
      company: [posting!.company, posting!.company_url],
      places: posting!.locations.map(({ city, region, country_iso2 }) => [city, region, country_iso2]),
      workplace: [posting!.workplace, posting!.is_remote],
      type: posting!.employment_type,
      pay: [posting!.salary?.min, posting!.salary?.max, posting!.salary?.currency, posting!.salary?.interval],
      annual: [posting!.salary_annual_min, posting!.salary_annual_max],
      dates: [posting!.date_posted, posting!.valid_through],
      text: posting!.description_text,
      urls: [posting!.job_url, posting!.apply_url],
    },
    {
      title: 'Nurse 0',
      company: ['St. Mary "General"', 'https://stmary.example/'],
      places: [['Austin', 'TX', 'US']],
      workplace: ['remote', true],
      type: 'full_time',
      pay: [30, 40, 'USD', 'hour'],
      annual: [62_400, 83_200],
      dates: ['2026-11-12T08:00:00.000Z', '2027-03-12T08:00:00.000Z'],
      text: 'Care for patients on ward 0.',
      urls: [`${mock.url}/viewjob?jk=${indeedKey(0)}`, 'https://apply.example/nurse/0'],
    },
  )
})

test('uses only the cards without details, whose text may contain what ends a script', async () => {
  await using mock = await startIndeedMock({ jobs: 12 })
  const { record, postings } = await runOptIn(indeed, mock, { details: false })
  assert.deepEqual([record.exitCode, postings.length, visitsOf(mock)], [0, 12, []])
  assert.match(postings[0]!.description_text!, /Care for "patients" }; window\.mosaic = {\\/)
  assert.deepEqual([postings[0]!.date_posted_precision, postings[0]!.raw['is_snippet']], ['instant', true])
  assert.equal(postings.find(({ source_job_id }) => source_job_id === indeedKey(10))!.company, null)
})

test('passes the search on to the site, skips unwanted postings, and stops when it has enough', async () => {
  await using mock = await startIndeedMock({ jobs: 300 })
  const search = { search: 'nurse', location: 'Austin', since: 6.5, remote: true, type: 'part_time', radius: 25 }
  const { postings } = await runOptIn(indeed, mock, { ...search, results: 4, details: false })
  assert.equal(postings.length, 4)
  assert.ok(postings.every((posting) => posting.is_remote !== false && posting.employment_type === 'part_time'))
  assert.deepEqual(Object.fromEntries(queriesOf(mock, INDEED_SEARCH)[0]!), {
    q: 'nurse',
    l: 'Austin',
    radius: '25',
    fromage: '7',
    sc: '0kf:attr(DSQF7);',
    jt: 'parttime',
    sort: 'date',
    start: '0',
  })
  const none = await runOptIn(indeed, mock, { since: 1, results: 4 })
  assert.deepEqual([none.postings.length, visitsOf(mock)], [0, []])
})

test('succeeds with an empty search, and fails with a changed layout', async () => {
  await using empty = await startIndeedMock({ jobs: 0 })
  const nothing = await runOptIn(indeed, empty)
  assert.deepEqual([nothing.record.exitCode, nothing.postings, nothing.errors], [0, [], []])
  await using changed = await startIndeedMock({ jobs: 20, isRedesigned: true })
  const { record, errors } = await runOptIn(indeed, changed)
  assert.deepEqual([record.exitCode, errors.map(({ code }) => code)], [1, ['E_SELECTOR_EMPTY']])
})

test('reports a security check and a bot-detection page, and keeps what came before', async () => {
  for (const is of ['securityCheck', 'botDetection'] as const) {
    await using mock = await startIndeedMock({ jobs: 60, wall: { at: 2, is, stays: true } })
    const { record, postings, errors } = await runOptIn(indeed, mock, { details: false })
    assert.deepEqual([is, record.exitCode, postings.length, errors.length], [is, 1, 15, 1])
    assert.match(errors[0]!.code, /^E_(?:CAPTCHA|BLOCKED)$/)
    assert.ok(startsOf(mock).length <= 5, `${startsOf(mock).length} pages asked for`)
  }
})

test('survives a 429 and a 502 between the pages', async () => {
  for (const is of ['rateLimit', 'serverError'] as const) {
    await using mock = await startIndeedMock({ jobs: 20, wall: { at: 2, is } })
    const { record, postings } = await runOptIn(indeed, mock, { details: false })
    assert.deepEqual([is, record.exitCode, postings.length], [is, 0, 20])
  }
})

test('chooses the host by country, which must be two letters', async () => {
  const { args } = indeed
  const check = (country: string) => args!['~standard'].validate({ country }) as { issues?: unknown }
  assert.deepEqual([check('de').issues, check('GB').issues], [undefined, undefined])
  for (const bad of ['evil.example/', 'd', '127']) assert.notEqual(check(bad).issues, undefined, bad)
})
