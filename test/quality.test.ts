/** `sluice quality` on runs of a mock board, one of which has lost a field. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { whenPath } from './site/boards/ats-server.ts'
import { startGreenhouseMock } from './site/boards/greenhouse.ts'
import { startBooksSite } from './site/books.ts'
import { sluice, temporaryFolder } from './sluice.ts'

test('reports the quality of postings, and which field got worse compared with earlier runs', async () => {
  using folder = temporaryFolder()
  const run = async (url: string, scraper: string, ...more: string[]) => {
    const flags = ['--site', url, '--allow-address', new URL(url).host, '--rps', '0', '--quiet', ...more]
    const { code, stderr } = await sluice(['run', scraper, ...flags], { cwd: folder.path })
    assert.equal(code, 0, stderr)
  }
  const quality = async (word: string) => await sluice(['quality', word, '--json'], { cwd: folder.path })
  for (let runs = 0; runs < 4; runs++) {
    await using board = await startGreenhouseMock({ jobs: 40 })
    await run(board.url, 'greenhouse', '--arg', 'board=acme')
  }
  const good = await quality('greenhouse')
  assert.equal(good.code, 0, good.stderr)
  const [report] = JSON.parse(good.stdout).reports
  assert.deepEqual([report.items, report.completeness.title, report.validity.share], [40, 1, 1])
  {
    await using board = await startGreenhouseMock({ jobs: 40, lacks: ['content'] })
    await run(board.url, 'greenhouse', '--arg', 'board=acme')
  }
  const fallen = await quality('greenhouse')
  assert.equal(fallen.code, 1)
  assert.deepEqual(
    JSON.parse(fallen.stdout).alarms.map(({ field }: { field: string }) => field),
    ['description'],
  )

  await using site = await startBooksSite({ products: 20, misbehave: false })
  await run(site.url, 'books')
  const books = await quality('books')
  assert.equal(books.code, 2)
  assert.match(books.stderr, /has no job postings/)
})

test('warns about a board that is suddenly empty, and raises an alarm in its quality', async () => {
  using folder = temporaryFolder()
  let answer: 'all' | 'none' | 'broken' = 'all'
  await using board = await startGreenhouseMock({
    jobs: 23,
    trouble: whenPath(/jobs$/, () => {
      if (answer === 'all') return undefined
      return answer === 'none' ? { body: { jobs: [], meta: { total: 0 } } } : { status: 404, body: {} }
    }),
  })
  const flags = ['--site', board.url, '--allow-address', new URL(board.url).host, '--rps', '0', '--arg', 'board=acme']
  const run = async (...more: string[]) => await sluice(['run', 'greenhouse', ...flags, ...more], { cwd: folder.path })
  const quality = async () => await sluice(['quality', 'greenhouse'], { cwd: folder.path })
  answer = 'none'
  const first = await run('--boards', 'linkdin')
  assert.equal(first.code, 0)
  assert.match(first.stderr, /there is no scraper "linkdin"; did you mean linkedin\?/)
  const never = await quality()
  assert.equal(never.code, 1)
  assert.match(never.stdout, /^! no postings; nor had a run with these arguments before$/m)
  answer = 'broken'
  const gone = await run()
  assert.equal(gone.code, 1)
  assert.match(
    gone.stdout,
    /notes +no item was emitted\n +no board "acme" at 127\.0\.0\.1:\d+ \(status 404\): check --arg board/,
  )
  answer = 'all'
  const two = [await run(), await run()]
  assert.ok(two.every(({ stdout }) => !stdout.includes('the run before')))
  const early = await quality()
  assert.equal(early.code, 0, early.stderr)
  assert.match(
    early.stdout,
    /greenhouse: too few runs before to compare \(1 of 3\)/,
    'empty and failed runs do not count',
  )

  answer = 'none'
  const empty = await run()
  assert.equal(empty.code, 0)
  assert.match(empty.stdout, /notes +no item was emitted; the run before had 23/)
  const { stdout: logged } = await sluice(['logs', 'greenhouse', '--level', 'warn'], { cwd: folder.path })
  assert.match(logged, /warn {2}.*no item was emitted; the run before had 23/)
  const alarm = await quality()
  assert.equal(alarm.code, 1)
  assert.match(alarm.stdout, /^! no postings; the run before had 23$/m)
  assert.match((await run()).stdout, /no item was emitted; run \S+, the last that found any, had 23/)
  const other = await run('--arg', 'search=plumber')
  assert.doesNotMatch(other.stdout, /had 23/, 'who asks for something else may find nothing')
})
