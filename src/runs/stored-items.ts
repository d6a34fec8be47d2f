/**
 * A frontier whose items are kept in the store, for engines that forget confirmed items. The items of a commit are stored first,
 * each key once, then their pages are settled. A crash in between repeats a page, never an item.
 */
import type { ItemRow } from '../core/item.ts'
import type { Committed, Frontier, Outcome } from '../frontier/contract.ts'
import { over } from '../frontier/over.ts'
import type { Store } from '../store/contract.ts'

/** Counting a million rows on every call would cost too much. */
const COUNT_FRESH_MS = 1_000

export function withStoredItems(inner: Frontier, store: Store, runId: string): Frontier {
  let counted = { items: 0, atMs: Number.NEGATIVE_INFINITY }
  async function countItems(isLast: boolean): Promise<number> {
    if (isLast || performance.now() - counted.atMs > COUNT_FRESH_MS)
      counted = { items: await store.countItems(runId), atMs: performance.now() }
    return counted.items
  }
  return over(inner, {
    can: { ...inner.can, keepsItems: true },
    items: {
      read: (range) => store.readItems(runId, range),
      confirm: async () => {}, // items stay in the store
      confirmed: async () => ({ seq: 0, positions: {} }),
    },
    async commit(outcomes) {
      const { rows, bare } = apart(outcomes)
      const answers = rows.length === 0 ? [] : await store.putItems(runId, rows)
      if (answers.includes('new')) counted.atMs = Number.NEGATIVE_INFINITY
      const committed = await inner.commit(withChanged(outcomes, bare, answers))
      return { ...committed, items: countsOf(answers) }
    },
    async stats() {
      const stats = await inner.stats()
      return { ...stats, items: await countItems(stats.remaining === 0) } // the last count goes into the record
    },
  })
}

function apart(outcomes: readonly Outcome[]): { rows: ItemRow[]; bare: Outcome[] } {
  const rows: ItemRow[] = []
  const bare = outcomes.map((outcome) => {
    if (outcome.kind !== 'done' || outcome.items === undefined) return outcome
    for (const item of outcome.items) rows.push(item)
    const { items: _, ...rest } = outcome
    return rest
  })
  return { rows, bare }
}

/** The inner engine sees no items, so it is given the number of items whose key already had different content. */
function withChanged(outcomes: readonly Outcome[], bare: Outcome[], answers: readonly Answer[]): Outcome[] {
  if (!answers.includes('changed')) return bare
  let at = 0
  return bare.map((outcome, i) => {
    const given = outcomes[i]!
    const count = given.kind === 'done' ? (given.items?.length ?? 0) : 0
    const changed = answers.slice(at, at + count).filter((answer) => answer === 'changed').length
    at += count
    return changed === 0 ? outcome : { ...outcome, counts: { ...outcome.counts, 'items.changed': changed } }
  })
}

type Answer = 'new' | 'same' | 'changed'

function countsOf(answers: readonly Answer[]): Committed['items'] {
  const counts = { new: 0, same: 0, changed: 0, backlog: 0 }
  for (const answer of answers) counts[answer]++
  return counts
}
