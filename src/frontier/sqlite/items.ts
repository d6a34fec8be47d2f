/** Items: each key once, logged in the transaction that settles their page, forgotten when all sinks have them. */
import { hash } from 'node:crypto'
import { contentKey, type ItemRow, type LoggedItem } from '../../core/item.ts'
import type { SinkPositions } from '../contract.ts'
import type { Database } from './database.ts'
import { FreshItems } from './fresh-items.ts'
import type { Ledger } from './ledger.ts'

export function createItems({ db, ledger }: { db: Database; ledger: Ledger }) {
  const insertKey = db.prepare('insert into item_key (hash, content) values (?, ?) on conflict do nothing')
  const getContent = db.prepareRows<[string]>('select content from item_key where hash = ?')
  const insertLog = db.prepare('insert into item_log (seq, key, json) values (?, ?, ?)')
  const readLog = db.prepareRows<[number, string, string]>(
    'select seq, key, json from item_log where seq > ? order by seq limit ?',
  )
  const deleteLog = db.prepare('delete from item_log where seq <= ?')
  const positions = db.prepareRows<[string, string]>('select sink, position from sink_position')
  const deletePositions = db.prepare('delete from sink_position')
  const insertPosition = db.prepare('insert into sink_position (sink, position) values (?, ?)')

  const fresh = new FreshItems()

  return {
    accept(item: ItemRow): 'new' | 'same' | 'changed' {
      const key = Buffer.from(hash('sha256', item.key, 'hex'), 'hex') // takes a third of the time of requesting a buffer
      const content = item.content ?? contentKey(item.json)
      if (insertKey.run(key, content).changes === 1) {
        const seq = ++ledger.totals.items
        insertLog.run(seq, item.key, item.json)
        fresh.add({ seq, key: item.key, json: item.json })
        ledger.totals.backlog++
        return 'new'
      }
      const [known] = getContent.get(key)!
      return content === known ? 'same' : 'changed'
    },

    /** Called after each transaction: only committed items may be read. */
    ended(isCommitted: boolean): void {
      fresh.ended(isCommitted)
    },

    /** For the single reader of the log, which only moves forward. */
    read({ afterSeq, max }: { afterSeq: number; max: number }): LoggedItem[] {
      const known = fresh.take(afterSeq, max)
      if (known.length > 0) return known
      return readLog.all(afterSeq, max).map(([seq, key, json]) => ({ seq, key, json }))
    },

    confirm(seq: number, at: SinkPositions): void {
      const { totals } = ledger
      if (seq < totals.confirmed) return // a reader that was replaced must not move the sinks back
      totals.confirmed = Math.min(seq, totals.items)
      fresh.forget(totals.confirmed)
      totals.backlog -= Number(deleteLog.run(totals.confirmed).changes)
      deletePositions.run()
      for (const [sink, position] of Object.entries(at)) insertPosition.run(sink, position)
    },

    confirmed(): { seq: number; positions: SinkPositions } {
      return { seq: ledger.totals.confirmed, positions: Object.fromEntries(positions.all()) }
    },
  }
}
