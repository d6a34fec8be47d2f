/**
 * The fields that the items of a scraper have had. A field that appears in or disappears from its runs is a change to the
 * scraper, reported once as `run.schema_changed`, and not a change of every item.
 */
import type { Dialect, Rows } from '../../drivers/sql.ts'
import type { FieldDifference } from './content.ts'
import type { HistoryEvent, IngestBatch, IngestedRun } from './contract.ts'

interface KnownField {
  isGone: boolean
  /** Named in the schema; other fields are known because an item had them. */
  isDeclared: boolean
  /** The run in which it appeared or disappeared; empty for fields of the first runs. */
  runId: string
  sinceMs: number
}

/** An item as it was last seen. */
interface Before {
  item: Readonly<Record<string, unknown>>
  lastSeenMs: number
}

/** A schema may allow any keys: fields beyond this number are not tracked, only compared. */
const FIELDS_MAX = 1_000
const FIELD_LENGTH_MAX = 200

export class ItemFields {
  readonly #dialect: Dialect

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  /** Records the fields of a batch. The returned function tells if a difference is a change of the item, not of the scraper. */
  async take(
    rows: Rows,
    batch: IngestBatch,
    before: Iterable<Before>,
  ): Promise<(difference: FieldDifference, lastSeenMs: number) => boolean> {
    const known = await this.#known(rows, batch.scraper)
    const news = new Map<string, KnownField>()
    if (known.size === 0) for (const { item } of before) for (const field in item) note(news, field, BASE)
    const isFirst = batch.isFirst || (known.size === 0 && news.size === 0)
    const since = isFirst ? BASE : { runId: batch.runId, sinceMs: batch.atMs }
    const declared = new Set(batch.fields)
    const shown = new Set(declared)
    for (const { item } of batch.items) for (const field in item) shown.add(field)
    for (const field of shown) {
      const was = news.get(field) ?? known.get(field)
      const isDeclared = declared.has(field)
      if (was === undefined || was.isGone) note(news, field, { ...since, isDeclared })
      else if (isDeclared && !was.isDeclared) note(news, field, { ...was, isDeclared })
    }
    if (declared.size > 0)
      for (const [field, { isDeclared, isGone }] of known)
        if (isDeclared && !isGone && !shown.has(field)) note(news, field, { ...since, isDeclared, isGone: true })
    await this.#write(rows, batch.scraper, news, FIELDS_MAX - known.size)
    return ({ field, before: was, after: is }, lastSeenMs) => {
      const { sinceMs = 0, runId, isGone } = news.get(field) ?? known.get(field) ?? {}
      const isOfScraper = sinceMs > 0 && (runId === batch.runId || lastSeenMs < sinceMs)
      return !(isOfScraper && (isGone ? is === null : was === null))
    }
  }

  /** At most one event, with all fields the run added and removed. */
  async eventsOf(rows: Rows, { scraper, runId }: IngestedRun): Promise<HistoryEvent[]> {
    const found = await rows(
      `select field, is_gone from ${this.#dialect.prefix}entity_field where scraper = $1 and run_id = $2 order by field`,
      [scraper, runId],
    )
    if (found.length === 0) return []
    const named = (isGone: boolean) =>
      found.filter((row) => (Number(row['is_gone']) === 1) === isGone).map((row) => String(row['field']))
    const data = { scraper, runId, added: named(false), removed: named(true) }
    return [{ type: 'run.schema_changed', dedupe: `run.schema_changed:${runId}`, data }]
  }

  async #known(rows: Rows, scraper: string): Promise<Map<string, KnownField>> {
    const found = await rows(`select * from ${this.#dialect.prefix}entity_field where scraper = $1`, [scraper])
    return new Map(
      found.map((row) => [
        String(row['field']),
        {
          isGone: Number(row['is_gone']) === 1,
          isDeclared: Number(row['is_declared']) === 1,
          runId: String(row['run_id']),
          sinceMs: Number(row['since_ms']),
        },
      ]),
    )
  }

  async #write(rows: Rows, scraper: string, news: ReadonlyMap<string, KnownField>, room: number): Promise<void> {
    const written = [...news].filter(([field]) => isStorable(field)).slice(0, Math.max(0, room))
    if (written.length === 0) return
    const places = written.map((_, i) => `($1, ${[2, 3, 4, 5, 6].map((n) => `$${5 * i + n}`).join(', ')})`)
    const values = written.flatMap(([field, { runId, sinceMs, isDeclared, isGone }]) => [
      field,
      runId,
      sinceMs,
      isDeclared ? 1 : 0,
      isGone ? 1 : 0,
    ])
    await rows(
      `insert into ${this.#dialect.prefix}entity_field (scraper, field, run_id, since_ms, is_declared, is_gone)
       values ${places.join(', ')}
       on conflict (scraper, field) do update set run_id = excluded.run_id, since_ms = excluded.since_ms,
         is_declared = excluded.is_declared, is_gone = excluded.is_gone`,
      [scraper, ...values],
    )
  }
}

const BASE = { runId: '', sinceMs: 0 }

function note(
  news: Map<string, KnownField>,
  field: string,
  { isDeclared = false, isGone = false, ...since }: Partial<KnownField> & Pick<KnownField, 'runId' | 'sinceMs'>,
): void {
  if (news.size < FIELDS_MAX) news.set(field, { ...since, isDeclared, isGone })
}

const isStorable = (field: string) => field.length <= FIELD_LENGTH_MAX && field.isWellFormed() && !field.includes('\0')
