/** The Glassdoor scraper against a loopback Glassdoor: every posting once across numbered pages, estimates, its challenge. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idsOf } from '../../../test/site/boards/ats-run.ts'
import { GLASSDOOR_SEARCH, glassdoorId, startGlassdoorMock } from '../../../test/site/boards/glassdoor.ts'
import { runOptIn } from '../../../test/site/boards/opt-in-run.ts'
import { queriesOf } from '../../../test/site/boards/walls.ts'
import glassdoor from './glassdoor.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
const pagesAsked = (mock: { asked: readonly string[] }) => mock.asked.filter((line) => line.includes('SRCH_')).length

test('finds every posting once across all numbered pages', async () => {
  await using mock = await startGlassdoorMock({ jobs: 70 })
  const { record, postings, errors } = await runOptIn(glassdoor, mock)
  assert.deepEqual([record.exitCode, errors], [0, []])
  assert.deepEqual(idsOf(postings), numbers(70).map(glassdoorId))
  assert.ok(
    mock.asked.some((line) => /_KO7,11_IP3\.htm\?/.test(line)),
    mock.asked.join('\n'),
  )
})

test('reads a card in full, and treats pay as an estimate unless the employer stated it', async () => {
  await using mock = await startGlassdoorMock({ jobs: 3 })
  const { postings } = await runOptIn(glassdoor, mock)
  const [estimated, provided, silent] = postings
  assert.deepEqual(
    [estimated!.title, estimated!.company, estimated!.workplace, estimated!.date_posted_precision],
    ['Cook 0', 'Kitchen & Co', 'remote', 'relative'],
  )
  assert.equal(estimated!.job_url, `${mock.url}/job-listing/j?jl=${glassdoorId(0)}`)
  assert.deepEqual(
    [estimated, provided].map((posting) => {
      const { min, max, currency, interval, source } = posting!.salary!
      return [min, max, currency, interval, source]
    }),
    [
      [18, 24, 'USD', 'hour', 'estimated'],
      [60_000, 80_000, 'USD', 'year', 'structured'],
    ],
  )
  assert.equal(silent!.salary, null)
  assert.deepEqual([silent!.date_posted_precision, silent!.raw['posted_before']], ['relative', silent!.date_posted])
  assert.deepEqual(
    provided!.locations.map(({ city, region }) => [city, region]),
    [['Denver', 'CO']],
  )
})

test('passes the search on to the site and stops when it has enough', async () => {
  await using mock = await startGlassdoorMock({ jobs: 200 })
  const search = { search: 'cook', location: 'Denver', since: 20, remote: true, type: 'part_time' }
  const { postings } = await runOptIn(glassdoor, mock, { ...search, results: 35 })
  assert.equal(postings.length, 35)
  assert.deepEqual(Object.fromEntries(queriesOf(mock, GLASSDOOR_SEARCH)[0]!), {
    'sc.keyword': 'cook',
    locKeyword: 'Denver',
    fromAge: '20',
    remoteWorkType: '1',
    jobType: 'parttime',
  })
  assert.equal(pagesAsked(mock), 2)
})

test('reads no more than 30 pages and says so', async () => {
  await using mock = await startGlassdoorMock({ jobs: 1000 })
  const { record, postings, warnings } = await runOptIn(glassdoor, mock)
  assert.deepEqual([record.exitCode, postings.length, pagesAsked(mock)], [0, 900, 30])
  assert.ok(
    warnings.some((line) => line.includes('30 pages')),
    warnings.join('\n'),
  )
})

test('succeeds with an empty search, and fails with a changed layout', async () => {
  await using empty = await startGlassdoorMock({ jobs: 0 })
  const nothing = await runOptIn(glassdoor, empty)
  assert.deepEqual([nothing.record.exitCode, nothing.postings, nothing.errors], [0, [], []])
  await using changed = await startGlassdoorMock({ jobs: 40, isRedesigned: true })
  const { record, errors } = await runOptIn(glassdoor, changed)
  assert.deepEqual([record.exitCode, errors.map(({ code }) => code)], [1, ['E_SELECTOR_EMPTY']])
})

test('reports its challenge, with status 403 and with 200, and keeps what came before', async () => {
  for (const is of ['helpUsProtect', 'helpUsProtectQuietly'] as const) {
    // The search, the page it redirects to, then the wall.
    await using mock = await startGlassdoorMock({ jobs: 90, wall: { at: 3, is, stays: true } })
    const { record, postings, errors } = await runOptIn(glassdoor, mock)
    assert.deepEqual([record.exitCode, postings.length, errors.length], [1, 30, 1])
    assert.equal(errors[0]!.code, 'E_CAPTCHA')
    assert.ok(mock.asked.length <= 10, `${mock.asked.length} requests`)
  }
})
