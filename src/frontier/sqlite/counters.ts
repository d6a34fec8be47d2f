/** Counters of outcomes: one statement for all counters of a commit. */
import type { Counts } from '../../core/counts.ts'
import type { Database } from './database.ts'

export type Counters = ReturnType<typeof createCounters>

export function createCounters(db: Database) {
  const add = db.prepare(`
    insert into counter (name, value) select key, value from json_each(?) where true
    on conflict do update set value = value + excluded.value`)
  const all = db.prepareRows<[string, number]>('select name, value from counter')

  return {
    add(counts: Counts): void {
      for (const _ in counts) return void add.run(JSON.stringify(counts)) // only if there is one
    },

    sums(): Counts {
      return Object.fromEntries(all.all())
    },
  }
}
