/** Queries on the history of items. */
import { ScrapeError } from '../../core/errors.ts'
import type { Row, SqlDatabase } from '../../drivers/sql.ts'
import { type FieldDifference, type Item, storableKey } from './content.ts'
import type { ChangeKind } from './items.ts'

export interface Entity {
  scraper: string
  key: string
  status: 'active' | 'gone'
  firstSeenAtMs: number
  lastSeenAtMs: number
  lastRunId: string
  timesSeen: number
  item: Item
}

interface Change {
  atMs: number
  runId: string
  kind: ChangeKind
  fields: FieldDifference[]
}

/** The value of a field from a given time on. */
interface FieldValue {
  atMs: number
  value: unknown
}

export interface EntityHistory {
  entity: Entity
  /** Oldest first. */
  changes: Change[]
  /** Older changes are omitted. */
  isCut: boolean
  fields: Record<string, FieldValue[]>
}

interface EntityFilter {
  scraper?: string | undefined
  status?: Entity['status'] | undefined
  /** Searched for in every field, case-insensitive. */
  q?: string | undefined
  limit: number
  after?: { scraper: string; key: string } | undefined
}

/** Rows that one page of a search reads: a word no item contains must not cost a scan of a million items. */
const SCANNED_MAX = 10_000
const CHANGES_MAX = 1_000

export class History {
  readonly #db: SqlDatabase

  constructor(db: SqlDatabase) {
    this.#db = db
  }

  /** Ordered by scraper and key. `next` may be set even if fewer than `limit` were found. */
  async entities(
    filter: EntityFilter,
  ): Promise<{ entities: Entity[]; next: { scraper: string; key: string } | undefined }> {
    const { prefix } = this.#db.dialect
    const { scraper, status, q, limit, after } = filter
    const isSearch = status !== undefined || q !== undefined
    const scanned = isSearch ? SCANNED_MAX : limit + 1
    const place = scraper === undefined ? '(scraper, key) > ($1, $2)' : 'scraper = $1 and key > $2'
    const window = `select * from ${prefix}entity where ${place} order by scraper, key limit ${scanned}`
    const from = [scraper ?? after?.scraper ?? '', after?.key ?? '']
    const rows = await this.#db.rows(
      `select * from (${window}) as part where (cast($3 as text) is null or status = $3)
       and (cast($4 as text) is null or lower(json) like $4 escape '!') order by scraper, key limit ${limit + 1}`,
      [...from, status ?? null, q === undefined ? null : `%${likeText(q)}%`],
    )
    const entities = rows.slice(0, limit).map(toEntity)
    if (rows.length > limit) return { entities, next: placeOf(rows[limit - 1]!) }
    if (!isSearch) return { entities, next: undefined }
    const [last] = await this.#db.rows(
      `select scraper, key from (${window}) as part order by scraper, key limit 1 offset ${SCANNED_MAX - 1}`,
      from,
    )
    return { entities, next: last === undefined ? undefined : placeOf(last) }
  }

  /** Throws `E_ITEM_NOT_FOUND`. */
  async of(scraper: string, key: string): Promise<EntityHistory> {
    const { prefix } = this.#db.dialect
    const at = [scraper, storableKey(key)]
    const [row] = await this.#db.rows(`select * from ${prefix}entity where scraper = $1 and key = $2`, at)
    if (row === undefined)
      throw new ScrapeError('E_ITEM_NOT_FOUND', `no item ${JSON.stringify(key)} of ${JSON.stringify(scraper)} is known`)
    const newest = await this.#db.rows(
      `select at_ms, run_id, kind, fields from ${prefix}entity_change where scraper = $1 and key = $2
       order by id desc limit ${CHANGES_MAX + 1}`,
      at,
    )
    const isCut = newest.length > CHANGES_MAX
    const changes = newest.slice(0, CHANGES_MAX).map(toChange).reverse()
    const entity = toEntity(row)
    return { entity, changes, isCut, fields: valuesOf(entity, changes) }
  }
}

/** The values of each field, oldest first, derived from the current item and the recorded changes. */
function valuesOf({ item, firstSeenAtMs }: Entity, changes: readonly Change[]): Record<string, FieldValue[]> {
  const values = new Map<string, FieldValue[]>()
  for (const { atMs, fields } of changes) {
    for (const { field, before, after } of fields) {
      const known = values.get(field) ?? [{ atMs: firstSeenAtMs, value: before }]
      values.set(field, [...known, { atMs, value: after }])
    }
  }
  for (const [field, value] of Object.entries(item))
    if (!values.has(field)) values.set(field, [{ atMs: firstSeenAtMs, value }])
  return Object.fromEntries(values)
}

const likeText = (text: string) => text.toLowerCase().replaceAll('\0', '').replace(/[!%_]/g, '!$&')
const placeOf = (row: Row) => ({ scraper: String(row['scraper']), key: String(row['key']) })

function toEntity(row: Row): Entity {
  return {
    ...placeOf(row),
    status: row['status'] as Entity['status'],
    firstSeenAtMs: Number(row['first_seen_ms']),
    lastSeenAtMs: Number(row['last_seen_ms']),
    lastRunId: String(row['last_run']),
    timesSeen: Number(row['seen']),
    item: JSON.parse(String(row['json'])),
  }
}

function toChange(row: Row): Change {
  return {
    atMs: Number(row['at_ms']),
    runId: String(row['run_id']),
    kind: row['kind'] as ChangeKind,
    fields: JSON.parse(String(row['fields'])),
  }
}
