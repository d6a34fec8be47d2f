/** What every employer board must do, whatever its API looks like: one suite for all of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Scraper } from '../../../src/index.ts'
import { idsOf, runBoard } from './ats-run.ts'
import { type BoardServer, blocked, flaky, type MockOptions } from './ats-server.ts'

export interface BoardCase {
  scraper: Scraper
  start: (options: MockOptions) => Promise<BoardServer>
  /** Arguments that name the mock's board. */
  args: Record<string, unknown>
  /** Arguments that name a board it does not have. */
  nobody?: Record<string, unknown>
  /** If that takes another server. */
  startNobody?: () => Promise<BoardServer>
  /** The id of its n-th posting. */
  idOf: (n: number) => string
  /** Enough for several pages, if there are pages. */
  jobs: number
}

export function boardConformance(board: BoardCase): void {
  const { scraper, start, args, nobody = {}, startNobody = () => start({ jobs: 3 }), idOf, jobs } = board
  const name = scraper.name
  const idsUpTo = (count: number) => Array.from({ length: count }, (_, n) => idOf(n)).sort()

  test(`${name}: finds every posting once`, async () => {
    await using site = await start({ jobs })
    const { record, postings } = await runBoard(scraper, site, { ...args, results: 100_000 })
    assert.equal(record.exitCode, 0, JSON.stringify(record.errors))
    assert.deepEqual(idsOf(postings), idsUpTo(jobs))
    assert.deepEqual(record.items, { new: jobs, same: 0, changed: 0, invalid: 0 })
  })

  test(`${name}: survives a board that throttles and fails for a while`, async () => {
    await using site = await start({ jobs: 2, trouble: flaky })
    const { record, postings } = await runBoard(scraper, site, args)
    assert.equal(record.exitCode, 0, JSON.stringify(record.errors))
    assert.deepEqual(idsOf(postings), idsUpTo(2))
    assert.ok(record.pages.postponed > 0 && record.pages.retried > 0, 'both troubles were met')
  })

  test(`${name}: returns no more postings than requested`, async () => {
    await using site = await start({ jobs })
    const { record, postings } = await runBoard(scraper, site, { ...args, results: jobs - 2 })
    assert.equal(record.exitCode, 0)
    assert.equal(new Set(idsOf(postings)).size, jobs - 2)
    assert.equal(postings.length, jobs - 2)
  })

  test(`${name}: succeeds with an empty board`, async () => {
    await using site = await start({ jobs: 0 })
    const { record, postings } = await runBoard(scraper, site, args)
    assert.equal(record.exitCode, 0)
    assert.equal(postings.length, 0)
  })

  test(`${name}: fails with a clear message if the board does not exist`, async () => {
    await using site = await startNobody()
    const { record, errors } = await runBoard(scraper, site, { ...args, ...nobody })
    assert.equal(record.exitCode, 1)
    assert.match(errors[0]!.message, /no board ".+" at .+: check --arg board/)
    await assert.rejects(
      runBoard(scraper, site, { ...args, board: '../v2' }),
      (error: { details: { notes: string[] } }) =>
        error.details.notes.some((note) => note.includes('not the name of a board')),
    )
  })

  test(`${name}: raises an alarm for another layout instead of reporting an empty board`, async () => {
    await using site = await start({ jobs: 3, trouble: () => ({ body: { redesigned: [] } }) })
    const { record, errors } = await runBoard(scraper, site, args, { retries: 0 })
    assert.equal(record.exitCode, 1)
    assert.match(errors[0]!.message, /another layout/)
  })

  test(`${name}: raises an alarm for postings without a title, even if they would not have matched`, async () => {
    await using site = await start({ jobs: 3, isRenamed: true })
    const { record } = await runBoard(scraper, site, { ...args, location: 'Atlantis' }, { retries: 0 })
    assert.equal(record.exitCode, 1)
  })

  test(`${name}: reports a block page in front of the board`, async () => {
    await using site = await start({ jobs: 3, trouble: blocked })
    const { record, errors } = await runBoard(scraper, site, args, { retries: 0 })
    assert.equal(record.exitCode, 1)
    assert.match(errors[0]!.code, /^E_(?:BLOCKED|CAPTCHA|FORBIDDEN)$/)
  })
}

/** For boards whose mock can be odd: its fields have the names that `ats-server.ts` knows. */
export function oddConformance({ scraper, start, args, idOf }: BoardCase): void {
  test(`${scraper.name}: counts odd entries, omits odd fields, and reads the postings`, async () => {
    await using site = await start({ jobs: 4, isOdd: true })
    const { record, postings } = await runBoard(scraper, site, args, { retries: 0 })
    assert.deepEqual(idsOf(postings), [0, 1, 2, 3].map(idOf).sort())
    assert.ok(postings.every(({ title }) => title.includes('Engineer')))
    assert.ok(record.items.invalid >= 4)
    assert.equal(record.pages.dead, 0)
  })
}
