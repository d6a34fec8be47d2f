/**
 * Every item with a key, across all runs of its scraper: its current state, and what happened to it.
 *
 *   (unknown) ──seen──► active ──seen with other content──► active      new · changed
 *                         └── a complete run did not see it ──► gone      gone
 *                                          gone ──seen──► active          back
 *
 * An item belongs to the scopes it was seen in: a run over ten pages does not mark the items of the other forty as gone, and a
 * run that shows fewer fields does not change the others.
 */

import { isDeepStrictEqual } from 'node:util'
import type { Dialect, Rows } from '../../drivers/sql.ts'
import { changesOf, type FieldDifference, type Item } from './content.ts'
import type { HistoryEvent, IngestBatch, IngestedItem, IngestedRun, Projection } from './contract.ts'
import { ItemFields } from './fields.ts'
import { SCOPES_CHARACTERS_MAX, type Seen, seenIn } from './views.ts'

export interface ItemsOptions {
  /** Default: all. */
  accepts?: (scraper: string) => boolean
  /** How many complete runs in a row must have missed an item before it is gone. Default 1. */
  missedMax?: number
}

export type ChangeKind = 'new' | 'changed' | 'gone' | 'back'

interface Known extends Seen {
  status: 'active' | 'gone'
  lastSeenMs: number
}

interface Step extends Seen {
  kind: ChangeKind
  key: string
  fields: FieldDifference[]
}

/** Nothing happened to the item, but another scope has seen it, or has seen more of it. */
interface QuietStep extends Omit<Step, 'kind'> {
  kind: 'seen'
}

const GONE_AT_ONCE = 500

export class ItemsProjection implements Projection {
  readonly name = 'items'
  readonly #dialect: Dialect
  readonly #missedMax: number
  readonly #fields: ItemFields
  readonly accepts: (scraper: string) => boolean

  constructor(dialect: Dialect, { accepts = () => true, missedMax = 1 }: ItemsOptions = {}) {
    this.#dialect = dialect
    this.accepts = accepts
    this.#missedMax = missedMax
    this.#fields = new ItemFields(dialect)
  }

  async project(rows: Rows, batch: IngestBatch): Promise<HistoryEvent[]> {
    const known = await this.#known(rows, batch)
    const isOwn = await this.#fields.take(rows, batch, known.values())
    const steps: (Step | QuietStep)[] = []
    const same: string[] = []
    for (const { key, item, content } of batch.items) {
      const before = known.get(key)
      const step = stepOf({ key, item, content }, before, { ...batch, isOwn })
      if (step === undefined) same.push(key)
      else steps.push(step)
    }
    await this.#seeAgain(rows, batch, same)
    await this.#write(rows, batch, steps)
    const changes = steps.filter((step): step is Step => step.kind !== 'seen')
    await this.#writeChanges(rows, batch, changes)
    return changes.filter(({ kind }) => kind !== 'new' || !batch.isFirst).map((step) => eventOf(step, batch))
  }

  /** Marks items as gone that this run should have seen and did not, and no other run has seen since it started. */
  async *finish(rows: Rows, run: IngestedRun): AsyncGenerator<HistoryEvent[]> {
    const schemaChanged = await this.#fields.eventsOf(rows, run)
    if (schemaChanged.length > 0) yield schemaChanged
    if (!run.isComplete) return
    const { prefix, oneOf } = this.#dialect
    const missing = `scraper = $1 and status = 'active' and last_run <> $2 and last_seen_ms < $3 and scopes like $4`
    const values = [run.scraper, run.runId, run.startedAtMs, `%${run.scope}%`]
    await rows(`update ${prefix}entity set missed = missed + 1 where ${missing}`, values)
    for (let after = ''; ; ) {
      const gone = await rows(
        `select key, json from ${prefix}entity where ${missing} and missed >= $5 and key > $6
         order by key limit ${GONE_AT_ONCE}`,
        [...values, this.#missedMax, after],
      )
      if (gone.length === 0) return
      const steps = gone.map(({ key, json }): Step => {
        const item = JSON.parse(String(json)) as Item
        return { kind: 'gone', key: String(key), item, content: '', scopes: '', views: undefined, fields: [] }
      })
      await rows(
        `update ${prefix}entity set status = 'gone', scopes = '', views = null where scraper = $1 and ${oneOf('key', '$2')}`,
        [run.scraper, JSON.stringify(steps.map(({ key }) => key))],
      )
      await this.#writeChanges(rows, run, steps)
      after = steps.at(-1)!.key
      yield steps.map((step) => eventOf(step, run))
    }
  }

  async #known(rows: Rows, { scraper, items }: IngestBatch): Promise<Map<string, Known>> {
    const { prefix, oneOf } = this.#dialect
    const found = await rows(
      `select key, json, content, status, last_seen_ms, scopes, views from ${prefix}entity
       where scraper = $1 and ${oneOf('key', '$2')}`,
      [scraper, JSON.stringify(items.map(({ key }) => key))],
    )
    return new Map(
      found.map((row) => [
        String(row['key']),
        {
          item: JSON.parse(String(row['json'])),
          content: String(row['content']),
          status: row['status'] as Known['status'],
          lastSeenMs: Number(row['last_seen_ms']),
          scopes: String(row['scopes']),
          views: typeof row['views'] === 'string' ? JSON.parse(row['views']) : undefined,
        },
      ]),
    )
  }

  async #seeAgain(rows: Rows, { scraper, runId, scope, atMs }: IngestBatch, keys: readonly string[]): Promise<void> {
    if (keys.length === 0) return
    const { prefix, oneOf } = this.#dialect
    const isLater = 'last_seen_ms <= $2'
    await rows(
      `update ${prefix}entity set seen = seen + 1,
         last_run = case when ${isLater} then $3 else last_run end,
         missed = case when ${isLater} then 0 else missed end,
         scopes = case when scopes like $4 then scopes when length(scopes) > ${SCOPES_CHARACTERS_MAX} then $5
           else scopes || ' ' || $5 end,
         last_seen_ms = case when ${isLater} then $2 else last_seen_ms end
       where scraper = $1 and ${oneOf('key', '$6')}`,
      [scraper, atMs, runId, `%${scope}%`, scope, JSON.stringify(keys)],
    )
  }

  async #write(rows: Rows, batch: IngestBatch, steps: readonly (Step | QuietStep)[]): Promise<void> {
    if (steps.length === 0) return
    const { prefix } = this.#dialect
    const { scraper, runId, atMs } = batch
    const values = steps.flatMap(({ key, item, content, scopes, views }) => [
      key,
      JSON.stringify(item),
      content,
      scopes,
      views === undefined ? null : JSON.stringify(views),
    ])
    const places = steps.map((_, i) => {
      const [key, json, content, scopes, views] = [4, 5, 6, 7, 8].map((n) => `$${5 * i + n}`)
      return `($1, ${key}, ${json}, ${content}, 'active', $2, $2, $3, ${scopes}, ${views})`
    })
    await rows(
      `insert into ${prefix}entity as its
         (scraper, key, json, content, status, first_seen_ms, last_seen_ms, last_run, scopes, views)
       values ${places.join(', ')}
       on conflict (scraper, key) do update set json = excluded.json, content = excluded.content, status = 'active',
         last_seen_ms = excluded.last_seen_ms, last_run = excluded.last_run, seen = its.seen + 1, missed = 0,
         scopes = excluded.scopes, views = excluded.views`,
      [scraper, atMs, runId, ...values],
    )
  }

  async #writeChanges(
    rows: Rows,
    { scraper, runId, atMs }: Pick<IngestBatch, 'scraper' | 'runId' | 'atMs'>,
    steps: readonly Step[],
  ): Promise<void> {
    if (steps.length === 0) return
    const places = steps.map((_, i) => `($1, $2, $3, $${3 * i + 4}, $${3 * i + 5}, $${3 * i + 6})`)
    const values = steps.flatMap(({ key, kind, fields }) => [key, kind, JSON.stringify(fields)])
    await rows(
      `insert into ${this.#dialect.prefix}entity_change (scraper, at_ms, run_id, key, kind, fields)
       values ${places.join(', ')}`,
      [scraper, atMs, runId, ...values],
    )
  }
}

interface StepContext extends IngestBatch {
  /** Whether a difference is a change of the item, and not of what its scraper shows. */
  isOwn: (difference: FieldDifference, lastSeenMs: number) => boolean
}

/** Undefined if nothing happened to the item, or a later run has already been read. */
function stepOf(
  given: IngestedItem,
  before: Known | undefined,
  { scope, atMs, isOwn }: StepContext,
): Step | QuietStep | undefined {
  const { key, item, content } = given
  const alone = { key, item, content, scopes: scope, views: undefined }
  if (before === undefined) return { kind: 'new', ...alone, fields: [] }
  if (atMs < before.lastSeenMs) return undefined
  const own = (differences: FieldDifference[]) =>
    differences.filter((difference) => isOwn(difference, before.lastSeenMs))
  if (before.status === 'gone') return { kind: 'back', ...alone, fields: own(changesOf(before.item, item)) }
  const seen = seenIn(scope, before, item, content)
  const fields = own(seen.fields)
  if (fields.length > 0) return { kind: 'changed', key, ...seen, fields }
  const isKnown = seen.scopes === before.scopes && isDeepStrictEqual(seen.views, before.views)
  return isKnown && seen.fields.length === 0 ? undefined : { kind: 'seen', key, ...seen, fields }
}

const TYPES = { new: 'item.new', back: 'item.new', changed: 'item.changed', gone: 'item.gone' } as const

function eventOf(
  { kind, key, item, fields }: Step,
  { scraper, runId }: Pick<IngestBatch, 'scraper' | 'runId'>,
): HistoryEvent {
  const sides = {
    changed: fields.map(({ field }) => field),
    before: Object.fromEntries(fields.map(({ field, before }) => [field, before])),
    after: Object.fromEntries(fields.map(({ field, after }) => [field, after])),
  }
  return {
    type: TYPES[kind],
    dedupe: `${TYPES[kind]}:${scraper}:${runId}:${key}`,
    data: {
      scraper,
      runId,
      key,
      item,
      ...(kind === 'back' ? { isBack: true } : {}),
      ...(fields.length > 0 ? sides : {}),
    },
  }
}
