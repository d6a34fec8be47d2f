/** One reading of a complete listing, and whether postings missing from it count as gone. */

export type ListingKind = 'api' | 'sitemap' | 'html'
export type CycleVerdict = 'conclusive' | 'inconclusive'

interface Cycle {
  /** Every page was read and understood. */
  isComplete: boolean
  /** The platform or our own limit cut it short. */
  isTruncated: boolean
  /** The total is the maximum the platform reports (2000 on many Workday boards). */
  isCapped: boolean
  items: number
}

export interface BoardState {
  status: 'live' | 'suspect' | 'delisted'
  /** Complete cycles in a row without any items. */
  emptyCycles: number
  /** Items in the last cycle that had any. */
  items: number
}

export const NEW_BOARD: BoardState = { status: 'live', emptyCycles: 0, items: 0 }

const SUSPECT_AFTER = 3
const DELIST_AFTER = 6

/** A board that had jobs and now shows none is more often broken than empty: it takes six such cycles to believe it. */
export function judgeCycle(board: BoardState, cycle: Cycle): { verdict: CycleVerdict; board: BoardState } {
  if (!cycle.isComplete || cycle.isTruncated || cycle.isCapped) return { verdict: 'inconclusive', board }
  if (cycle.items > 0) return { verdict: 'conclusive', board: { status: 'live', emptyCycles: 0, items: cycle.items } }
  if (board.items === 0) return { verdict: 'conclusive', board: { ...board, emptyCycles: board.emptyCycles + 1 } }
  const emptyCycles = board.emptyCycles + 1
  const isDelisted = emptyCycles >= DELIST_AFTER
  const status = isDelisted ? 'delisted' : emptyCycles >= SUSPECT_AFTER ? 'suspect' : board.status
  return { verdict: isDelisted ? 'conclusive' : 'inconclusive', board: { ...board, status, emptyCycles } }
}
