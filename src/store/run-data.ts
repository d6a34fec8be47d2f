/** What the workers of a run leave in the store: items, log lines, and the pages of dead letters. */
import { contentKey, type ItemRow } from '../core/item.ts'
import type { SqlDatabase } from '../drivers/sql.ts'
import { LOG_LINES_MAX, type Store } from './contract.ts'
import type { RunWatch } from './runs.ts'

type RunData = Pick<
  Store,
  'putSnapshot' | 'getSnapshot' | 'putItems' | 'readItems' | 'countItems' | 'addLogs' | 'readLogs'
>

const ITEMS_AT_ONCE = 200
/** Old log lines are looked for in one of so many writes: the bound may be passed by a little. */
const TRIM_ONE_IN = 50

export function sqlRunData(db: SqlDatabase, watch: RunWatch | undefined): RunData {
  const { prefix } = db.dialect
  return {
    async putSnapshot(runId: string, name: string, bytes: Uint8Array) {
      await db.rows(
        `insert into ${prefix}snapshot (run_id, name, bytes) values ($1, $2, $3)
         on conflict (run_id, name) do update set bytes = excluded.bytes`,
        [runId, name, bytes],
      )
    },

    async getSnapshot(runId: string, name: string) {
      const [found] = await db.rows(`select bytes from ${prefix}snapshot where run_id = $1 and name = $2`, [
        runId,
        name,
      ])
      return found?.['bytes'] as Uint8Array | undefined
    },

    async putItems(runId: string, items: readonly ItemRow[]) {
      const answers: ('new' | 'same' | 'changed')[] = []
      for (let at = 0; at < items.length; at += ITEMS_AT_ONCE)
        answers.push(...(await putSome(db, runId, items.slice(at, at + ITEMS_AT_ONCE))))
      return answers
    },

    async readItems(runId: string, { afterSeq, max }: { afterSeq: number; max: number }) {
      const found = await db.rows(
        `select seq, key, json from ${prefix}run_item where run_id = $1 and seq > $2 order by seq limit $3`,
        [runId, afterSeq, max],
      )
      return found.map(({ seq, key, json }) => ({ seq: Number(seq), key: String(key), json: String(json) }))
    },

    async countItems(runId: string) {
      const [row] = await db.rows(`select count(*) as count from ${prefix}run_item where run_id = $1`, [runId])
      return Number(row!['count'])
    },

    async addLogs(runId: string, lines: readonly string[]) {
      if (lines.length === 0) return
      const places = lines.map((_, i) => `($1, $${i + 2})`).join(', ')
      await db.rows(`insert into ${prefix}run_log (run_id, line) values ${places}`, [runId, ...lines])
      const news = watch === undefined ? [] : lines.filter(watch.isNews)
      if (news.length > 0) await db.transaction((rows) => watch!.logged(rows, runId, news))
      if (Math.random() * TRIM_ONE_IN >= 1) return
      await db.rows(
        `delete from ${prefix}run_log where run_id = $1 and id <=
         (select id from ${prefix}run_log where run_id = $1 order by id desc limit 1 offset $2)`,
        [runId, LOG_LINES_MAX],
      )
    },

    async readLogs(runId: string, { after, max }: { after: number; max: number }) {
      const found = await db.rows(
        `select id, line from ${prefix}run_log where run_id = $1 and id > $2 order by id limit $3`,
        [runId, after, max],
      )
      return found.map(({ id, line }) => ({ id: Number(id), line: String(line) }))
    },
  }
}

/** The first of a key stays. Of two in one call the second is judged by the first. */
async function putSome(db: SqlDatabase, runId: string, items: readonly ItemRow[]) {
  const { prefix, oneOf, inTurn } = db.dialect
  const contents = items.map(({ json, content }) => content ?? contentKey(json))
  const rows = items.map((_, i) => `($${3 * i + 2}, $${3 * i + 3}, $${3 * i + 4})`).join(', ')
  const values = items.flatMap(({ key, json }, i) => [key, contents[i]!, json])
  const added = await db.rows(
    `insert into ${prefix}run_item (run_id, key, content, json) select $1, given.* from ${inTurn} (values ${rows}) as given
     where true on conflict (run_id, key) do nothing returning key`,
    [runId, ...values],
  )
  const fresh = new Set(added.map(({ key }) => String(key)))
  const known =
    fresh.size === items.length
      ? []
      : await db.rows(`select key, content from ${prefix}run_item where run_id = $1 and ${oneOf('key', '$2')}`, [
          runId,
          JSON.stringify(items.map(({ key }) => key)),
        ])
  const before = new Map(known.map(({ key, content }) => [String(key), String(content)]))
  return items.map(({ key }, i) => {
    if (fresh.delete(key)) return 'new' as const
    return before.get(key) === contents[i] ? ('same' as const) : ('changed' as const)
  })
}
