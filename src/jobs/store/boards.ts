/** Boards: how many postings a run found on each, and whether postings missing from one count as gone. */

import type { Dialect, Rows } from '../../drivers/sql.ts'
import type { IngestedRun } from '../../server/history/contract.ts'
import { type BoardState, type CycleVerdict, judgeCycle, NEW_BOARD } from '../match/listing-cycle.ts'
import type { Posting, Source } from '../read/posting.ts'
import { boardOf, isSearched, type Listing } from './listing.ts'
import { insertMany } from './rows.ts'

interface JudgedBoard {
  source: Source
  boardToken: string
  verdict: CycleVerdict
}

export class Boards {
  readonly #rows: Rows
  readonly #dialect: Dialect

  constructor(rows: Rows, dialect: Dialect) {
    this.#rows = rows
    this.#dialect = dialect
  }

  async count(runId: string, postings: readonly Posting[]): Promise<void> {
    const boards = Map.groupBy(postings, ({ source, board_token }) => JSON.stringify([source, board_token]))
    await insertMany(this.#rows, {
      into: `${this.#dialect.prefix}job_board as board`,
      columns: ['source', 'board_token', 'run_id', 'run_items', 'is_truncated', 'state'],
      records: [...boards.values()].map((found) => {
        const { source, board_token } = found[0]!
        const isTruncated = found.some(({ raw }) => raw['truncated'] === true)
        return [source, board_token, runId, found.length, isTruncated ? 1 : 0, JSON.stringify(NEW_BOARD)]
      }),
      tail: `on conflict (source, board_token) do update set
        run_items = excluded.run_items + case when board.run_id = excluded.run_id then board.run_items else 0 end,
        is_truncated = case when board.run_id = excluded.run_id and board.is_truncated = 1 then 1 else excluded.is_truncated end,
        run_id = excluded.run_id`,
    })
  }

  /** The boards a run has read, each with its verdict; updates their states. */
  async judge(run: IngestedRun, listing: Listing): Promise<JudgedBoard[]> {
    const { prefix } = this.#dialect
    const empty = boardOf(run.scraper, run.record?.args)
    const rows = await this.#rows(
      `select source, board_token, run_id, run_items, is_truncated, state from ${prefix}job_board
       where run_id = $1 or (source = $2 and board_token = $3) order by source, board_token`,
      [run.runId, empty?.source ?? '', empty?.boardToken ?? ''],
    )
    const judged: JudgedBoard[] = []
    for (const row of rows) {
      const [source, boardToken] = [row['source'] as Source, String(row['board_token'])]
      const items = row['run_id'] === run.runId ? Number(row['run_items']) : 0
      const { verdict, board } = judgeCycle(JSON.parse(String(row['state'])) as BoardState, {
        isComplete: (items > 0 ? run.isComplete : run.isWhole === true) && listing.isWhole && !isSearched(source),
        isTruncated: items > 0 && Number(row['is_truncated']) === 1,
        isCapped: items >= listing.resultsMax,
        items,
      })
      await this.#rows(`update ${prefix}job_board set state = $3 where source = $1 and board_token = $2`, [
        source,
        boardToken,
        JSON.stringify(board),
      ])
      judged.push({ source, boardToken, verdict })
    }
    return judged
  }
}
