/** What every employer's board must do, whatever its API looks like: one suite for all of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Scraper } from '../../../src/index.ts'
import { idsOf, runBoard } from './ats-run.ts'
import { type BoardServer, blocked, flaky, type MockOptions } from './ats-server.ts'

export interface BoardCase {
  scraper: Scraper
  start: (options: MockOptions) => Promise<BoardServer>
  /** They name the mock's board. */
  args: Record<string, unknown>
  /** They name one it does not have. */
  nobody?: Record<string, unknown>
  /** Where that takes another server. */
  startNobody?: () => Promise<BoardServer>
  /** The id of its n-th posting. */
  idOf: (n: number) => string
  /** Enough for several pages, where there are pages. */
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

  test(`${name}: gives no more postings than asked for`, async () => {
    await using site = await start({ jobs })
    const { record, postings } = await runBoard(scraper, site, { ...args, results: jobs - 2 })
    assert.equal(record.exitCode, 0)
    assert.equal(new Set(idsOf(postings)).size, jobs - 2)
    assert.equal(postings.length, jobs - 2)
  })

  test(`${name}: an empty board is a success`, async () => {
    await using site = await start({ jobs: 0 })
    const { record, postings } = await runBoard(scraper, site, args)
    assert.equal(record.exitCode, 0)
    assert.equal(postings.length, 0)
  })

  test(`${name}: a board that does not exist is a failure that says so`, async () => {
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

  test(`${name}: another layout is an alarm, not an empty board`, async () => {
    await using site = await start({ jobs: 3, trouble: () => ({ body: { redesigned: [] } }) })
    const { record, errors } = await runBoard(scraper, site, args, { retries: 0 })
    assert.equal(record.exitCode, 1)
    assert.match(errors[0]!.message, /another layout/)
  })

  test(`${name}: postings without their title are an alarm, also for who would not have wanted them`, async () => {
    await using site = await start({ jobs: 3, isRenamed: true })
    const { record } = await runBoard(scraper, site, { ...args, location: 'Atlantis' }, { retries: 0 })
    assert.equal(record.exitCode, 1)
  })

  test(`${name}: a guard in front of the board is reported`, async () => {
    await using site = await start({ jobs: 3, trouble: blocked })
    const { record, errors } = await runBoard(scraper, site, args, { retries: 0 })
    assert.equal(record.exitCode, 1)
    assert.match(errors[0]!.code, /^E_(?:BLOCKED|CAPTCHA|FORBIDDEN)$/)
  })
}

/** For boards whose mock can be odd: its fields are called as `ats-server.ts` knows them. */
export function oddConformance({ scraper, start, args, idOf }: BoardCase): void {
  test(`${scraper.name}: odd entries are counted, odd fields left out, and the postings come through`, async () => {
    await using site = await start({ jobs: 4, isOdd: true })
    const { record, postings } = await runBoard(scraper, site, args, { retries: 0 })
    assert.deepEqual(idsOf(postings), [0, 1, 2, 3].map(idOf).sort())
    assert.ok(postings.every(({ title }) => title.includes('Engineer')))
    assert.ok(record.items.invalid >= 4)
    assert.equal(record.pages.dead, 0)
  })
}
