/** What a settled visit counts durably: its try, its items and how full their fields are. The commit adds it to the run's sums. */
import { addCounts, countsOfTry } from '../core/counts.ts'
import type { Outcome } from '../frontier/contract.ts'
import type { Settled } from './settle.ts'

export function countedOutcome({ outcome, event, filled, invalid = 0 }: Settled): Outcome {
  if (event === undefined) return outcome // handed back: nothing was tried
  const counts = countsOfTry('pages', event)
  const emitted = outcome.kind === 'done' ? (outcome.items?.length ?? 0) : 0
  if (emitted > 0) counts['items.emitted'] = emitted
  for (const field in filled) counts[`filled.${field}`] = filled[field]!
  if (invalid > 0) {
    counts['items.invalid'] = invalid
    counts['errors.E_ITEM_INVALID'] = invalid
  }
  addCounts(counts, outcome.counts)
  return { ...outcome, counts }
}
