/** From the URL of a careers page to the postings of the board behind it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runBoard } from '../../../test/site/boards/ats-run.ts'
import { type BoardServer, type MockOptions, type Trouble, whenPath } from '../../../test/site/boards/ats-server.ts'
import { startBamboohrMock } from '../../../test/site/boards/bamboohr.ts'
import { startGreenhouseMock } from '../../../test/site/boards/greenhouse.ts'
import { startCareersMock } from '../../../test/site/boards/jsonld.ts'
import { startLeverMock } from '../../../test/site/boards/lever.ts'
import { startPersonioMock } from '../../../test/site/boards/personio.ts'
import { startRipplingMock } from '../../../test/site/boards/rippling.ts'
import { startWorkdayMock } from '../../../test/site/boards/workday.ts'
import jobs from './jobs.ts'

/** The employer's own page, on the server of its board. */
const careersPage = (body: string): Trouble =>
  whenPath(/^\/our-jobs$/, () => ({ body: `<!doctype html><html>${body}</html>` }))

const FRONTS: [source: string, start: (options: MockOptions) => Promise<BoardServer>, page: string, jobs: number][] = [
  [
    'greenhouse',
    startGreenhouseMock,
    '<script src="https://boards.greenhouse.io/embed/job_board/js?for=acme"></script>',
    30,
  ],
  ['lever', startLeverMock, '<a href="https://jobs.lever.co/acme-robotics">Open positions</a>', 150],
  ['bamboohr', startBamboohrMock, '<iframe src="https://acme.bamboohr.com/careers"></iframe>', 12],
  ['rippling', startRipplingMock, '<a href="https://ats.rippling.com/acme/jobs">Jobs</a>', 12],
  ['personio', startPersonioMock, '<a href="https://acme.jobs.personio.de/job/9001">Koch</a>', 12],
]

for (const [source, start, page, count] of FRONTS) {
  test(`finds the ${source} board behind a careers page, and reads all of it`, async () => {
    await using site = await start({ jobs: count, trouble: careersPage(page) })
    const { record, postings } = await runBoard(jobs, site, { url: `${site.url}our-jobs` })
    assert.equal(record.exitCode, 0, JSON.stringify(record.errors))
    assert.equal(postings.length, count)
    assert.ok(postings.every((posting) => posting.source === source && posting.board_token.startsWith('acme')))
  })
}

test('reads a board that needs POSTs and more than a name, from its own URL', async () => {
  await using site = await startWorkdayMock({ jobs: 45 })
  const { record, postings } = await runBoard(jobs, site, { url: 'https://acme.wd5.myworkdayjobs.com/en-US/External' })
  assert.equal(record.exitCode, 0, JSON.stringify(record.errors))
  assert.equal(postings.length, 45)
})

test('passes the search on to the board', async () => {
  await using site = await startGreenhouseMock({
    jobs: 40,
    trouble: careersPage('<a href="//boards.greenhouse.io/acme">x</a>'),
  })
  const count = async (args: object) =>
    (await runBoard(jobs, site, { url: `${site.url}our-jobs`, ...args })).postings.length
  assert.equal(await count({ search: 'frontend' }), 10)
  assert.equal(await count({ results: 7 }), 7)
})

test('reads the markup of a page that names no board, and follows its list', async () => {
  await using site = await startCareersMock({ jobs: 24 })
  const { record, postings } = await runBoard(jobs, site, { url: `${site.url}careers/` })
  assert.equal(record.exitCode, 0, JSON.stringify(record.errors))
  assert.equal(postings.length, 24)
})

test('raises an alarm for a page with neither', async () => {
  await using site = await startCareersMock({ jobs: 3, list: 'nothing' })
  const { record } = await runBoard(jobs, site, { url: `${site.url}careers/` }, { retries: 0 })
  assert.equal(record.exitCode, 1)
  assert.match(record.reason ?? '', /expected at least 1/)
})

test('fails with a clear message if the named board does not exist', async () => {
  await using site = await startGreenhouseMock({
    jobs: 3,
    trouble: careersPage('<a href="//boards.greenhouse.io/nobody">x</a>'),
  })
  const { record, errors } = await runBoard(jobs, site, { url: `${site.url}our-jobs` })
  assert.equal(record.exitCode, 1)
  assert.match(errors[0]!.message, /no board "nobody" at /)
})
