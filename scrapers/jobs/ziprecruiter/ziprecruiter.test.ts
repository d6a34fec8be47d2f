/** The ZipRecruiter scraper against a loopback ZipRecruiter: every posting once, its fields, its firewall. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf } from '../../../test/site/boards/ats-run.ts'
import { runOptIn } from '../../../test/site/boards/opt-in-run.ts'
import { queriesOf } from '../../../test/site/boards/walls.ts'
import { startZiprecruiterMock, ZIPRECRUITER_SEARCH, zipKey } from '../../../test/site/boards/ziprecruiter.ts'
import ziprecruiter from './ziprecruiter.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
const pagesOf = (mock: { asked: readonly string[] }) =>
  queriesOf(mock, ZIPRECRUITER_SEARCH).map((query) => query.get('page'))

test('finds every posting once across all pages the site names', async () => {
  await using mock = await startZiprecruiterMock({ jobs: 45 })
  const { record, postings, errors } = await runOptIn(ziprecruiter, mock)
  assert.deepEqual([record.exitCode, errors], [0, []])
  assert.deepEqual(idsOf(postings), numbers(45).map(zipKey))
  assert.deepEqual(pagesOf(mock), ['1', '2', '3'])
})

test('reads a posting in full, from the card and from its own page', async () => {
  await using mock = await startZiprecruiterMock({ jobs: 1 })
  const [card] = (await runOptIn(ziprecruiter, mock)).postings
  const [whole] = (await runOptIn(ziprecruiter, mock, { details: true })).postings
  assert.equal(card!.description_text, 'Drive a truck with a load of "bricks" .')
  assert.equal(whole!.description_text, 'Drive truck 0 over the Rockies.')
  for (const item of [card!, whole!]) {
    assert.deepEqual(
      [
        item.source_job_id,
        item.title,
        item.company,
        item.employment_type,
        item.date_posted,
        item.date_posted_precision,
      ],
      [zipKey(0), 'Driver 0', 'Hauler & Co', 'full_time', '2026-11-10T07:30:00.000Z', 'instant'],
    )
    assert.deepEqual(
      item.locations.map(({ city, region, country_iso2 }) => [city, region, country_iso2]),
      [['Denver', 'CO', 'US']],
    )
    assert.deepEqual([item.salary?.min, item.salary?.max, item.salary?.currency, item.salary?.interval], [24.5, 31, 'USD', 'hour']) // biome-ignore format: one line reads better
    assert.equal(item.apply_url, 'https://apply.example/driver/0')
    assert.match(item.job_url, /\/c\/Hauler\/Job\/Driver\/-in-Denver,CO\?jid=0$/)
  }
})

test('passes the search on to the site, checks the type itself, and stops when it has enough', async () => {
  await using mock = await startZiprecruiterMock({ jobs: 200 })
  const search = { search: 'driver', location: 'Denver', since: 10_000, remote: true, radius: 50 }
  const { postings } = await runOptIn(ziprecruiter, mock, { ...search, type: 'contract', results: 15 })
  assert.equal(postings.length, 15)
  assert.ok(postings.every((posting) => posting.employment_type === 'contract' && posting.is_remote === true))
  assert.deepEqual(Object.fromEntries(queriesOf(mock, ZIPRECRUITER_SEARCH)[0]!), {
    search: 'driver',
    location: 'Denver',
    radius: '50',
    days_ago: '10000',
    remote: '1',
    page: '1',
  })
  assert.deepEqual(pagesOf(mock), ['1', '2'])
})

test('succeeds with an empty search, and fails with a changed layout', async () => {
  await using empty = await startZiprecruiterMock({ jobs: 0 })
  const nothing = await runOptIn(ziprecruiter, empty)
  assert.deepEqual([nothing.record.exitCode, nothing.postings, nothing.errors], [0, [], []])
  await using changed = await startZiprecruiterMock({ jobs: 20, isRedesigned: true })
  const { record, errors } = await runOptIn(ziprecruiter, changed)
  assert.deepEqual([record.exitCode, errors.map(({ code }) => code)], [1, ['E_SELECTOR_EMPTY']])
  assert.match(errors[0]!.message, /hydrateJobCardsResponse/)
})

test('reports a 403 from its firewall or geoblock, and keeps what came before', async () => {
  for (const is of ['wafForbidden', 'geoblocked'] as const) {
    await using mock = await startZiprecruiterMock({ jobs: 60, wall: { at: 2, is, stays: true } })
    const { record, postings, errors } = await runOptIn(ziprecruiter, mock)
    assert.deepEqual([record.exitCode, postings.length, errors.length], [1, 20, 1])
    assert.equal(errors[0]!.code, 'E_BLOCKED')
    assert.ok(pagesOf(mock).length <= 5, `${pagesOf(mock).length} pages asked for`)
  }
})

test('survives a 429 and a 502 between the pages', async () => {
  for (const is of ['rateLimit', 'serverError'] as const) {
    await using mock = await startZiprecruiterMock({ jobs: 40, wall: { at: 2, is } })
    const { record, postings } = await runOptIn(ziprecruiter, mock)
    assert.deepEqual([is, record.exitCode, postings.length], [is, 0, 40])
  }
})
