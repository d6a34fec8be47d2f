/** The Google scraper in a real Chromium against a loopback Google, whose pages are built by scripts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chromiumForTests } from '../../../test/services/chromium.ts'
import { idsOf } from '../../../test/site/boards/ats-run.ts'
import { GOOGLE_MORE, GOOGLE_SEARCH, googleId, startGoogleMock } from '../../../test/site/boards/google.ts'
import { runOptIn } from '../../../test/site/boards/opt-in-run.ts'
import { queriesOf } from '../../../test/site/boards/walls.ts'
import google from './google.ts'
import { nextToken, readJobArrays } from './job-arrays.ts'

const chrome = await chromiumForTests()
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

test('finds every posting once, on the page a script builds and behind its tokens', async () => {
  await using mock = await startGoogleMock({ jobs: 25 })
  const search = { search: 'baker', location: 'Boston', since: 5, remote: true, type: 'part_time' }
  const { record, postings, errors } = await runOptIn(google, mock, search, { chrome })
  assert.deepEqual([record.exitCode, errors], [0, []])
  assert.deepEqual(idsOf(postings), numbers(25).map(googleId))
  const query = queriesOf(mock, GOOGLE_SEARCH)[0]!
  assert.deepEqual(
    [query.get('q'), query.get('udm')],
    ['baker jobs part time remote near Boston in the last week', '8'],
  )
  assert.deepEqual(
    queriesOf(mock, GOOGLE_MORE).map((more) => [more.get('fc'), more.get('fcv')]),
    [['Token_10==', '3'], ['Token_20==', '3']], // biome-ignore format: one line reads better
  )
  const first = postings.find(({ source_job_id }) => source_job_id === googleId(0))!
  assert.deepEqual(
    [first.title, first.company, first.job_url, first.description_text, first.date_posted_precision],
    ['Baker 0', 'Bread "& Butter" ]}', 'https://jobs.example/baker/0', 'Bake bread, pay is good. Nr. 0', 'relative'],
  )
  assert.deepEqual(
    first.locations.map(({ city, region }) => [city, region]),
    [['Boston', 'MA']],
  )
})

test('treats a captcha, a consent page and the script shell as walls, not as empty searches', async () => {
  for (const is of ['sorry', 'consent', 'enableJs'] as const) {
    await using mock = await startGoogleMock({ jobs: 25, wall: { at: 1, is, stays: true } })
    const { record, postings, errors } = await runOptIn(google, mock, {}, { chrome, retries: 0 })
    assert.deepEqual([is, record.exitCode, postings.length, errors.length], [is, 1, 0, 1])
    assert.match(errors[0]!.code, /^E_(?:CAPTCHA|BLOCKED)$/)
  }
})

test('keeps the postings of the first page when a wall follows', async () => {
  await using mock = await startGoogleMock({ jobs: 25, wall: { at: 2, is: 'enableJs', stays: true } })
  const { record, postings, errors } = await runOptIn(google, mock, {}, { chrome })
  assert.deepEqual([record.exitCode, postings.length, errors.map(({ code }) => code)], [1, 10, ['E_BLOCKED']])
})

test('finds arrays in markup and in nested strings, and counts those without title, id or address as broken', () => {
  const row = Object.assign(Array.from({ length: 29 }, () => null) as unknown[], {
    0: 'A',
    3: [['https://a.test/']],
    28: 'i',
  })
  const plain = `x "520084652" : ${JSON.stringify(row)} y`
  const nested = JSON.stringify([[null, JSON.stringify([JSON.stringify({ 520084652: row })])]])
  for (const text of [plain, nested])
    assert.deepEqual(
      readJobArrays(text).jobs.map(({ id, title }) => [id, title]),
      [['i', 'A']],
    )
  assert.deepEqual(readJobArrays('"520084652":["only a title"] "520084652":[[]'), { jobs: [], broken: 1 })
  assert.deepEqual(readJobArrays('520084652 520084652" ['), { jobs: [], broken: 0 })
  assert.deepEqual(
    [nextToken('<a data-async-fc="T=">'), nextToken('data-async-fc=\\"T=\\"'), nextToken('')],
    ['T=', 'T=', undefined],
  )
})

test('reads hostile text in a few passes', () => {
  for (const part of ['520084652":[', '"520084652":["', '{"520084652":[[{'])
    assert.deepEqual(readJobArrays(part.repeat(50_000)), { jobs: [], broken: 0 })
  const nested = '{"520084652":['.repeat(1000) + ']}'.repeat(1000)
  assert.deepEqual(readJobArrays(nested), { jobs: [], broken: 1 })
  for (const link of ['javascript:alert(1)', 'no url', '']) {
    const row = Object.assign(Array.from({ length: 29 }, () => null) as unknown[], { 0: 'A', 3: [[link]], 28: 'i' })
    assert.deepEqual(readJobArrays(JSON.stringify({ 520084652: row })), { jobs: [], broken: 1 })
  }
})
