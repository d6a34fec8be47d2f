/**
 * Turns postings into jobs: what a run finds updates the state of each posting and its job, and adds an observation and events. A
 * run that read a whole board determines what is gone from it; any other run says nothing about postings it did not find.
 */

import type { Dialect, Rows } from '../../drivers/sql.ts'
import type { HistoryEvent, IngestBatch, IngestedRun, Projection } from '../../server/history/contract.ts'
import { type Posting, postingKey, postingSchema, SOURCES } from '../read/posting.ts'
import { Boards } from './boards.ts'
import { wordsOf } from './contract.ts'
import type { JobEntry } from './entries.ts'
import { Ledger } from './ledger.ts'
import { kindOf, listingOf } from './listing.ts'
import { miss } from './observe.ts'
import { jobViews } from './view.ts'
import { type Writing, writeLedger } from './write.ts'

/** `jobs` detects which board an employer has. */
const SCRAPERS: ReadonlySet<string> = new Set([...SOURCES, 'jobs'])
/** Gone and expired postings are processed in batches of this size. */
const MISSED_AT_ONCE = 500

export class JobsProjection implements Projection {
  readonly name = 'jobs'
  readonly #dialect: Dialect

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  accepts(scraper: string): boolean {
    return SCRAPERS.has(scraper)
  }

  async project(rows: Rows, { runId, scraper, atMs, items }: IngestBatch): Promise<HistoryEvent[]> {
    const postings = items.flatMap(({ item }) => postingSchema.safeParse(item).data ?? []).filter(isStorable)
    if (postings.length === 0) return []
    await rows(wordsOf(this.#dialect).alone, [])
    const writing = { rows, dialect: this.#dialect, at: new Date(atMs), scraper, runId }
    await new Boards(rows, this.#dialect).count(runId, postings)
    const ledger = new Ledger(rows, this.#dialect)
    const seen = await ledger.see(postings, writing.at)
    return await this.#tell(writing, await writeLedger(writing, ledger, seen))
  }

  async *finish(rows: Rows, run: IngestedRun): AsyncGenerator<HistoryEvent[]> {
    await rows(wordsOf(this.#dialect).alone, [])
    const writing = { rows, dialect: this.#dialect, at: new Date(run.atMs), scraper: run.scraper, runId: run.runId }
    const boards = await new Boards(rows, this.#dialect).judge(run, listingOf(run.record?.args))
    for (const { source, boardToken, verdict } of boards)
      if (verdict === 'conclusive')
        yield* this.#pass(writing, {
          where: `s.source = $1 and s.board_token = $2 and s.run_id <> $3 and s.status <> 'gone' and s.last_seen_at < $4`,
          values: [source, boardToken, run.runId, new Date(run.startedAtMs).toISOString()],
          observation: { kind: 'absent', at: writing.at, listing: kindOf(source), cycle: verdict },
        })
    yield* this.#pass(writing, {
      where: `s.status = 'active' and s.valid_through < $1`,
      values: [writing.at.toISOString()],
      observation: { kind: 'clock', at: writing.at },
    })
  }

  /** Paged by key, so that a posting whose state does not change is visited only once. */
  async *#pass(writing: Writing, { where, values, observation }: Pass): AsyncGenerator<HistoryEvent[]> {
    for (let after = ''; ; ) {
      const ledger = new Ledger(writing.rows, this.#dialect)
      const n = values.length + 1
      const page = `${where} and s.key > $${n} order by s.key limit ${MISSED_AT_ONCE}`
      const found = await ledger.find(page, [...values, after])
      if (found.length === 0) return
      for (const entry of found) miss(entry, observation)
      yield await this.#tell(writing, await writeLedger(writing, ledger, []))
      after = found.at(-1)!.key
    }
  }

  async #tell({ rows, scraper, runId }: Writing, touched: readonly JobEntry[]): Promise<HistoryEvent[]> {
    const moved = touched.filter(({ happened }) => happened.length > 0)
    const views = await jobViews(
      rows,
      this.#dialect,
      moved.map(({ id }) => id!),
    )
    const byId = new Map(views.map((view) => [Number(view.id), view]))
    return moved.flatMap(({ id, key, happened }) =>
      happened.map(({ type, at, source, before, after, changed }) => ({
        type: `job.${type}`,
        dedupe: `job.${type}:${key}:${at}`,
        data: { scraper, runId, source, job: byId.get(id!)!, ...defined({ before, after, changed }) },
      })),
    )
  }
}

/** An index must be able to hold the key: no control characters, and not too long. */
const isStorable = (posting: Posting) => /^[^\p{Cc}]{1,500}$/u.test(postingKey(posting))

interface Pass {
  where: string
  values: readonly string[]
  observation: Parameters<typeof miss>[1]
}

const defined = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
