/** `sluice quality` on runs of a mock board, one of which has lost a field. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startGreenhouseMock } from './site/boards/greenhouse.ts'
import { startBooksSite } from './site/books.ts'
import { sluice, temporaryFolder } from './sluice.ts'

test('says how good postings are, and which field fell against the runs before', { timeout: 60_000 }, async () => {
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
