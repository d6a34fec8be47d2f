/** History, and the comparison of two runs. */

import { verbatim } from '../../../core/redact.ts'
import type { Json } from '../../../core/task.ts'
import {
  type Difference,
  type DiffTotals,
  diffItems,
  identityOf,
  itemsToDiff,
  schemaDifference,
} from '../../../runs/diff-runs.ts'
import type { OpenRun } from '../../../runs/run-view.ts'
import { Problem } from '../../../server/api/problem.ts'
import type { historyEndpoints } from '../../../server/api/routes/history.ts'
import type { HandlersOf } from '../../../server/api/server.ts'
import { TIMES_OF_READING } from '../../../server/history/content.ts'
import { type Entity, History } from '../../../server/history/read.ts'
import type { Server } from '../server/server.ts'

/** For both runs together: a comparison blocks the processor for everyone else. */
const DIFF_ITEMS_MAX = 200_000

export function historyHandlers({ db, openRuns, keeping }: Server): HandlersOf<typeof historyEndpoints> {
  const history = new History(db)
  let turn: Promise<unknown> = Promise.resolve()
  return {
    async diffRuns({ params, query: { limit, cursor, ignore } }) {
      const [before, after] = [await openRuns.run(params.id), await openRuns.run(params.other)]
      const from = numberIn(cursor)
      const ignored = [...TIMES_OF_READING, ...(ignore?.split(',') ?? [])]
      const mine = turn.then(() => pageOfDifferences(before, after, { from, limit, ignored }))
      turn = mine.catch(() => {}) // one at a time
      return await mine
    },
    async listKnownItems({ query: { cursor, ...filter } }) {
      const { entities, next } = await history.entities({ ...filter, after: placeIn(cursor) })
      return { data: verbatim(entities.map(toKnown)), next: next === undefined ? null : cursorOf(next) }
    },
    async getItemHistory({ params: { scraper, key } }) {
      const { entity, changes, isCut, fields } = await history.of(scraper, key)
      return verbatim({
        item: toKnown(entity),
        changes: changes.map(({ atMs, runId, kind, fields: changed }) => ({
          at: timeOf(atMs),
          runId,
          kind,
          fields: changed as { field: string; before: Json; after: Json }[],
        })),
        isCut,
        fields: Object.fromEntries(
          Object.entries(fields).map(([name, values]) => [
            name,
            values.map(({ atMs, value }) => ({ at: timeOf(atMs), value: value as Json })),
          ]),
        ),
      })
    },
    getIngest: async () => keeping.status(),
  }
}

async function pageOfDifferences(
  before: OpenRun,
  after: OpenRun,
  { from, limit, ignored }: { from: number; limit: number; ignored: readonly string[] },
) {
  if (before.record.items.new + after.record.items.new > DIFF_ITEMS_MAX)
    throw new Problem(422, 'E_TOO_LARGE', `the runs have more than ${DIFF_ITEMS_MAX} items together`, {
      hint: `Compare them where they are: sluice diff ${before.record.id} ${after.record.id}`,
    })
  const { added: fieldsAdded, removed: fieldsRemoved } = schemaDifference(before, after)
  const { by, before: keyBefore, after: keyAfter } = await identityOf(before, after, undefined)
  const differences = diffItems(
    { items: await itemsToDiff(before), keyOf: keyBefore },
    { items: await itemsToDiff(after), keyOf: keyAfter },
    [...ignored, ...fieldsAdded, ...fieldsRemoved],
  )
  const data: Difference[] = []
  let totals: DiffTotals
  for (let at = 0; ; at++) {
    const { value, done } = await differences.next()
    if (done) {
      totals = value
      break
    }
    if (at >= from && data.length < limit) data.push(value)
  }
  const isMore = from + data.length < totals.added + totals.removed + totals.changed
  const next = isMore ? String(from + data.length) : null
  return { by, totals, fieldsAdded, fieldsRemoved, data: verbatim(data), next }
}

function numberIn(cursor: string | undefined): number {
  if (cursor === undefined) return 0
  if (/^\d{1,9}$/.test(cursor)) return Number(cursor)
  throw new Problem(400, 'E_REQUEST', 'query.cursor: not one of ours')
}

const cursorOf = ({ scraper, key }: { scraper: string; key: string }) =>
  Buffer.from(JSON.stringify([scraper, key])).toString('base64url')

function placeIn(cursor: string | undefined): { scraper: string; key: string } | undefined {
  if (cursor === undefined) return undefined
  try {
    const [scraper, key] = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as [unknown, unknown]
    if (typeof scraper === 'string' && typeof key === 'string' && !/\0/.test(scraper + key)) return { scraper, key }
  } catch {}
  throw new Problem(400, 'E_REQUEST', 'query.cursor: not one of ours')
}

const timeOf = (ms: number) => new Date(ms).toISOString()

function toKnown({ firstSeenAtMs, lastSeenAtMs, item, ...rest }: Entity) {
  return {
    ...rest,
    firstSeenAt: timeOf(firstSeenAtMs),
    lastSeenAt: timeOf(lastSeenAtMs),
    item: item as Record<string, Json>,
  }
}
