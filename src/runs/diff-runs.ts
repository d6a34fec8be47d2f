/**
 * What changed between two runs, item by item. Both are loaded into a temporary SQLite database and compared there, so that a
 * million items need no more memory than a thousand. The database has no name: its file is deleted before it is written to, so
 * nothing stays behind however this process ends.
 */
import { DatabaseSync } from 'node:sqlite'
import { ScrapeError } from '../core/errors.ts'
import { contentKey } from '../core/item.ts'
import type { Json } from '../core/task.ts'
import { differencesOf } from '../server/history/content.ts'
import type { ItemLine, OpenRun, RunItems } from './run-view.ts'

type Item = Record<string, Json>

export type Difference =
  | { kind: 'added'; key: string; item: Item }
  | { kind: 'removed'; key: string; item: Item }
  | { kind: 'changed'; key: string; fields: Record<string, FieldChange> }

/** Null also stands for a missing field. */
interface FieldChange {
  old: Json
  new: Json
}

export interface DiffTotals {
  added: number
  removed: number
  changed: number
  unchanged: number
  /** Items skipped because one with the same key came before, in both runs together. */
  repeated: number
}

type KeyOf = (line: ItemLine) => string

export interface DiffSide {
  items: Pick<RunItems, 'batches'>
  keyOf: KeyOf
}

/**
 * Added and changed in the order of the new run, then removed in the order of the old one. Returns the totals. `leftOut` receives
 * the names of ignored fields that did differ.
 */
export async function* diffItems(
  before: DiffSide,
  after: DiffSide,
  ignored: readonly string[] = [],
  leftOut: Set<string> = new Set(),
): AsyncGenerator<Difference, DiffTotals> {
  using db = openScratch()
  const olds = await load(db, 'old', before)
  const news = await load(db, 'new', after)
  const totals: DiffTotals = { added: 0, removed: 0, changed: 0, unchanged: 0, repeated: olds.repeated + news.repeated }
  const differing = db.prepare(`select n.key, n.json, o.json as was from new n left join old o on o.key = n.key
    where o.key is null or o.json <> n.json order by n.seq`)
  for (const { key, json, was } of differing.iterate() as Iterable<{ key: string; json: string; was: string | null }>) {
    if (was === null) {
      totals.added++
      yield { kind: 'added', key, item: JSON.parse(json) }
      continue
    }
    const fields = changedFields(JSON.parse(was), JSON.parse(json))
    for (const field of ignored) {
      if (field in fields) leftOut.add(field)
      delete fields[field]
    }
    if (Object.keys(fields).length === 0) continue // only the order of fields differs
    totals.changed++
    yield { kind: 'changed', key, fields }
  }
  totals.unchanged = news.count - totals.added - totals.changed
  const gone = db.prepare(`select key, json from old o where not exists (select 1 from new n where n.key = o.key)
    order by seq`)
  for (const { key, json } of gone.iterate() as Iterable<{ key: string; json: string }>) {
    totals.removed++
    yield { kind: 'removed', key, item: JSON.parse(json) }
  }
  return totals
}

function openScratch(): DatabaseSync {
  const db = new DatabaseSync('')
  // It is not needed after a crash, so it keeps no journal.
  db.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -16384; pragma temp_store = file')
  for (const table of ['old', 'new'])
    db.exec(`create table ${table} (seq integer primary key, key text not null, json text not null)`)
  return db
}

/** Rows first, then the index: sorting once is four times as fast as keeping a million random keys sorted. */
async function load(
  db: DatabaseSync,
  table: 'old' | 'new',
  { items, keyOf }: DiffSide,
): Promise<{ count: number; repeated: number }> {
  const insert = db.prepare(`insert into ${table} (key, json) values (?, ?)`)
  let count = 0
  db.exec('begin')
  for await (const lines of items.batches()) {
    for (const line of lines) insert.run(keyOf(line), line.json)
    count += lines.length
  }
  db.exec(`commit; create index ${table}_key on ${table} (key)`)
  const { changes } = db
    .prepare(
      `delete from ${table} where seq in (select seq from (
         select seq, row_number() over (partition by key order by seq) as nth from ${table}) where nth > 1)`,
    )
    .run()
  return { count: count - Number(changes), repeated: Number(changes) }
}

/** Compares field by field; nested values are compared as a whole. */
export function changedFields(before: Item, after: Item): Record<string, FieldChange> {
  const changes = differencesOf(before, after) as { field: string; before: Json; after: Json }[]
  return Object.fromEntries(changes.map(({ field, before: was, after: is }) => [field, { old: was, new: is }]))
}

/** Fields that only one of two runs has in its schema: the scraper changed, not every item. */
export interface SchemaDifference {
  added: string[]
  removed: string[]
}

export function schemaDifference(before: OpenRun, after: OpenRun): SchemaDifference {
  const [old, now] = [before.record.fields, after.record.fields]
  if (old === undefined || now === undefined) return { added: [], removed: [] }
  return {
    added: now.filter((field) => !old.includes(field)),
    removed: old.filter((field) => !now.includes(field)),
  }
}

/** How the items of two runs are matched, and why not in a better way. */
interface Identity {
  before: KeyOf
  after: KeyOf
  by: 'field' | 'key' | 'whole'
  /** Why whole items are compared. */
  why: string | undefined
}

/**
 * The requested field; else the key of each run, from its log or its scraper. If one of them has none, whole items are compared
 * in both, because keys of two kinds never match.
 */
export async function identityOf(before: OpenRun, after: OpenRun, field: string | undefined): Promise<Identity> {
  if (field !== undefined) {
    await refuseUnknown(field, [before, after])
    const read = readKey((item) => item[field])
    return { before: read, after: read, by: 'field', why: undefined }
  }
  const [own, other] = [await ownKey(before), await ownKey(after)]
  const why = [own, other].find((one) => typeof one === 'string')
  if (typeof own === 'string' || typeof other === 'string')
    return { before: wholeKey, after: wholeKey, by: 'whole', why: why as string }
  return { before: own, after: other, by: 'key', why: undefined }
}

/** A mistyped field would match nothing and report everything as changed. */
async function refuseUnknown(field: string, runs: readonly OpenRun[]): Promise<void> {
  const known = new Set<string>()
  for (const run of runs) {
    for await (const lines of (await itemsToDiff(run)).batches()) {
      for (const { json } of lines) for (const name of Object.keys(JSON.parse(json))) known.add(name)
      break // the first few hundred are enough
    }
  }
  if (known.size === 0 || known.has(field)) return
  throw new ScrapeError('E_USAGE', `no item has the field ${field}`, { notes: [`fields: ${[...known].join(', ')}`] })
}

const wholeKey: KeyOf = ({ json }) => contentKey(json)

/** An item without a value for its key is identified by its whole content, as in the run itself. */
function readKey(read: (item: Item) => unknown): KeyOf {
  return (line) => {
    const value = read(JSON.parse(line.json) as Item)
    return value === undefined || value === null || value === '' ? wholeKey(line) : String(value)
  }
}

/** How the items of a run are identified: by its log, else by its scraper. A string says why there is no key. */
export async function ownKey(run: OpenRun): Promise<KeyOf | string> {
  const items = await run.items()
  if (items?.isKeyed) return (line) => line.key ?? wholeKey(line)
  const { source, scraper: name } = run.record
  const { loadScraper } = await import('../config/load-scraper.ts')
  try {
    const { key } = name.startsWith('crawl-') ? { key: 'url' } : (await loadScraper(source)).scraper
    if (key === undefined) return wholeKey
    if (typeof key === 'string') return readKey((item) => item[key])
    return readKey(key as unknown as (item: Item) => unknown)
  } catch (error) {
    return `the scraper of run ${run.record.id} is not to be had: ${(error as Error).message}`
  }
}

/** The items of a run, or an error that says what it wrote instead. */
export async function itemsToDiff(run: OpenRun): Promise<RunItems> {
  const items = await run.items()
  if (items !== undefined) return items
  const written = run.record.outputs.map(({ target }) => target)
  throw new ScrapeError('E_RUN_NOT_FOUND', `run ${run.record.id} has no items that can be compared`, {
    notes: [written.length > 0 ? `it wrote ${written.join(', ')}` : `nothing is in ${run.place} yet`],
    fix: 'Runs keep their items for this with --format jsonl (the default).',
  })
}
