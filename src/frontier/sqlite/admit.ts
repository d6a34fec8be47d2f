/** Adds tasks this run has not seen, inside the caller's transaction. */
import { LruSet } from '../../core/lru-set.ts'
import type { NewTask } from '../../core/task.ts'
import type { Added } from '../contract.ts'
import { identityOf, packData, taskOf } from '../shared/intake.ts'
import type { Database } from './database.ts'
import type { Ledger } from './ledger.ts'
import type { Places } from './places.ts'

/** Links repeat: most of the twenty links on a page were also on the page before. A third of a megabyte. */
const RECENT_MAX = 8192

export function createAdmission({ db, ledger, places }: { db: Database; ledger: Ledger; places: Places }) {
  const insertSeen = db.prepare('insert into seen (hash) values (?) on conflict do nothing')
  const insertTask = db.prepare(
    'insert into task (seq, id, queue, url, route, data, depth, session) values (?, ?, ?, ?, ?, ?, ?, ?)',
  )
  // A hit is always correct: a seen task stays seen, whichever process added it.
  const recent = new LruSet(RECENT_MAX)
  let uncommitted = new Set<string>()

  function isRecent(task: NewTask): boolean {
    const identity = identityOf(task)
    if (recent.has(identity)) recent.add(identity)
    else if (!uncommitted.has(identity)) {
      uncommitted.add(identity)
      return false
    }
    return true
  }

  return {
    /** Tasks keep their order. */
    admit(tasks: readonly NewTask[], nowMs: number): Added {
      const candidates = []
      for (const task of tasks) {
        if (isRecent(task)) continue
        const filled = taskOf(task)
        const hash = Buffer.from(filled.id, 'hex')
        candidates.push({ filled, hash, notBeforeMs: task.notBeforeMs ?? 0, isNew: false })
      }
      // Sorted by hash, neighbours share a page of the index.
      const sorted =
        candidates.length < 2 ? candidates : candidates.toSorted((a, b) => (a.filled.id < b.filled.id ? -1 : 1))
      for (const candidate of sorted) {
        candidate.isNew = insertSeen.run(candidate.hash).changes === 1
      }
      let added = 0
      for (const { filled, hash, notBeforeMs, isNew } of candidates) {
        if (!isNew) continue
        added++
        const { url, route, depth, session } = filled
        const seq = ++ledger.totals.seen
        const queue = ledger.queueOf(filled)
        insertTask.run(seq, hash, queue.id, url, route, packData(filled), depth, session ?? null)
        places.put({ seq, queue, isSuspect: false, atMs: notBeforeMs, nowMs })
      }
      return { added, seen: tasks.length - added }
    },

    /** Only committed tasks may be considered known without querying the table. */
    ended(isCommitted: boolean): void {
      if (isCommitted) for (const identity of uncommitted) recent.add(identity)
      if (uncommitted.size > 0) uncommitted = new Set()
    },
  }
}
