/** Commits, on the client: outcomes are sorted by kind into arrays, and the answer is put back together. */

import { addCounts, noCounts } from '../../core/counts.ts'
import { contentKey, type ItemRow } from '../../core/item.ts'
import type { NewTask } from '../../core/task.ts'
import { hostOf } from '../../core/url.ts'
import type { Database } from '../../drivers/postgres/database.ts'
import type { Committed, Outcome } from '../contract.ts'
import { causeOf } from '../shared/dead-letters.ts'
import type { Admission } from './admit.ts'
import { numbersOf, numbersText, textsText } from './array-text.ts'
import { readToken, type Token } from './claim.ts'
import type { Operations } from './operations.ts'
import type { QueueMarks } from './queue-marks.ts'

const PLACES = Array.from({ length: 39 }, (_, i) => `$${i + 1}`).join(', ')
const COMMIT = `select added, items_new, items_same, items_changed, stale, backlog from sluice.commit(${PLACES})`

type Row = [added: string, isNew: string, same: string, changed: string, stale: string | null, backlog: string]
type Numbered<K extends Outcome['kind']> = { no: number; token: Token; outcome: Extract<Outcome, { kind: K }> }

interface CommitParts {
  db: Database
  runId: number
  operations: Operations
  admission: Admission
  turns: QueueMarks
  now: () => number
  /** Simulated time in tests; null: the server's clock. */
  serverNow: () => number | null
  /** Items are not drained, so there is no backlog. */
  keepsItems: boolean
}

export async function commit(parts: CommitParts, outcomes: readonly Outcome[]): Promise<Committed> {
  const { db, runId, operations, admission, turns, now, serverNow, keepsItems } = parts
  const sorted = sort(outcomes)
  const { tasks, taskNos, known } = found(sorted.done, admission)
  const items = sorted.done.flatMap(({ no, outcome }) => (outcome.items ?? []).map((item) => ({ no, item })))
  const taskValues = await admission.valuesOf(tasks, now())
  const settled = [...leasesOf(sorted.done), ...againOf(sorted.again, now()), ...deadOf(sorted.dead)]
  const counted = countsOf([...sorted.done, ...sorted.again, ...sorted.dead])
  const [row] = await operations.answered((op, forget) =>
    db.rows<Row>(COMMIT, (isRepeat) => [
      ...[runId, op, isRepeat, numbersText(forget), serverNow()],
      ...settled,
      ...[numbersText(taskNos), ...taskValues],
      ...itemsOf(items),
      ...counted,
    ]),
  )
  const [added, isNew, same, changed, staleText, backlog] = row!
  const stale = new Set([...numbersOf(staleText), ...sorted.late])
  for (const { no, token } of sorted.again) if (!stale.has(no)) turns.returned(token.queue, token.seq)
  const offered = tasks.filter((_, i) => !stale.has(taskNos[i]!))
  admission.committed(offered)
  const seen = offered.length - Number(added) + known.filter((no) => !stale.has(no)).length
  const counts = { new: Number(isNew), same: Number(same), changed: Number(changed) }
  return {
    settled: outcomes.length - stale.size,
    stale: outcomes.filter((_, no) => stale.has(no)).map(({ lease }) => lease),
    added: Number(added),
    seen,
    items: { ...counts, backlog: keepsItems ? 0 : Number(backlog) },
  }
}

/** `late`: a second outcome for the same lease, whatever became of the first. */
function sort(outcomes: readonly Outcome[]) {
  const done: Numbered<'done'>[] = []
  const again: Numbered<'retry' | 'postpone'>[] = []
  const dead: Numbered<'dead'>[] = []
  const late: number[] = []
  const tokens = new Set<string>()
  for (const [no, outcome] of outcomes.entries()) {
    if (tokens.has(outcome.lease.token)) {
      late.push(no)
      continue
    }
    tokens.add(outcome.lease.token)
    const token = readToken(outcome.lease.token)
    if (outcome.kind === 'done') done.push({ no, token, outcome })
    else if (outcome.kind === 'dead') dead.push({ no, token, outcome })
    else again.push({ no, token, outcome })
  }
  return { done, again, dead, late }
}

/** Tasks with the indexes of their outcomes; `known`: the same for tasks known to be seen, which need no query. */
function found(done: readonly Numbered<'done'>[], admission: Admission) {
  const tasks: NewTask[] = []
  const taskNos: number[] = []
  const known: number[] = []
  for (const { no, outcome } of done) {
    for (const task of outcome.tasks ?? []) {
      if (admission.isRecent(task)) known.push(no)
      else {
        tasks.push(task)
        taskNos.push(no)
      }
    }
  }
  return { tasks, taskNos, known }
}

type Values = (string | null)[]

/** Indexes, leases and task numbers. */
function leasesOf(numbered: readonly { no: number; token: Token }[]): Values {
  return leaseValues(numbered.toSorted(bySeq))
}

function leaseValues(sorted: readonly { no: number; token: Token }[]): Values {
  return [
    numbersText(sorted.map(({ no }) => no)),
    numbersText(sorted.map(({ token }) => token.lease)),
    numbersText(sorted.map(({ token }) => token.seq)),
  ]
}

function againOf(again: readonly Numbered<'retry' | 'postpone'>[], nowMs: number): Values {
  const sorted = again.toSorted(bySeq)
  return [
    ...leaseValues(sorted),
    numbersText(sorted.map(({ outcome }) => Math.max(0, Math.ceil(outcome.atMs - nowMs)))),
    numbersText(sorted.map(({ outcome }) => (outcome.kind === 'retry' ? 1 : 0))),
  ]
}

function deadOf(dead: readonly Numbered<'dead'>[]): Values {
  const sorted = dead.toSorted(bySeq)
  return [
    ...leaseValues(sorted),
    textsText(sorted.map(({ outcome }) => hostOf(outcome.lease.task.url))),
    textsText(sorted.map(({ outcome }) => outcome.error.code)),
    textsText(sorted.map(({ outcome }) => outcome.error.class)),
    textsText(sorted.map(({ outcome }) => causeOf(outcome.error.message))),
    textsText(sorted.map(({ outcome }) => JSON.stringify(outcome.error))),
    textsText(sorted.map(({ outcome }) => outcome.snapshot)),
  ]
}

/** Of two leases on one task the server checks the last one, and only the later lease can still be held. */
function bySeq({ token: a }: { token: Token }, { token: b }: { token: Token }): number {
  return a.seq - b.seq || a.lease.length - b.lease.length || (a.lease < b.lease ? -1 : 1)
}

function itemsOf(items: readonly { no: number; item: ItemRow }[]): Values {
  return [
    numbersText(items.map(({ no }) => no)),
    textsText(items.map(({ item }) => item.key)),
    textsText(items.map(({ item }) => item.content ?? contentKey(item.json))),
    textsText(items.map(({ item }) => item.json)),
  ]
}

/** The sum of all counts, and the counts of each outcome in case some leases turn out to be stale. */
function countsOf(numbered: readonly { no: number; outcome: Outcome }[]): Values {
  const counting = numbered.filter(({ outcome }) => outcome.counts !== undefined)
  if (counting.length === 0) return [null, null, null]
  const sums = noCounts()
  for (const { outcome } of counting) addCounts(sums, outcome.counts)
  return [
    JSON.stringify(sums),
    numbersText(counting.map(({ no }) => no)),
    textsText(counting.map(({ outcome }) => JSON.stringify(outcome.counts))),
  ]
}
