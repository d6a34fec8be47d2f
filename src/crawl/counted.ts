/** What a settled visit adds to the run's durable counters: its attempt, its items and how many of their fields have values. */
import { addCounts, countsOfTry } from '../core/counts.ts'
import type { Outcome } from '../frontier/contract.ts'
import type { Settled } from './settle.ts'

export function countedOutcome({ outcome, event, filled, invalid = 0 }: Settled): Outcome {
  if (event === undefined) return outcome // handed back: there was no attempt
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
