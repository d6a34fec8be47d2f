/** Runs that history has not read to their end: those in local folders, and, on the leader, those of the store. */
import { hash } from 'node:crypto'
import { contentKey } from '../../../core/item.ts'
import { isComplete, type RunRecord } from '../../../core/run.ts'
import type { SqlDatabase } from '../../../drivers/sql.ts'
import { ownKey } from '../../../runs/diff-runs.ts'
import { openFolderRun } from '../../../runs/folder-run.ts'
import type { OpenRun, RunPlaces } from '../../../runs/run-view.ts'
import { openStoredRun } from '../../../runs/stored-run.ts'
import type { NewsOfRun, RunSource, SourceItem, SourceRun } from '../../../server/history/contract.ts'
import type { Store } from '../../../store/contract.ts'
import { ChangedFolders } from './changed-folders.ts'

interface RunSourceParts {
  db: SqlDatabase
  store: Store
  places: RunPlaces
  /** Only one of several servers reads the store's runs. Folders are read by every server that sees them. */
  isLeader: () => boolean
}

/** How often to find stored runs that ended, were resumed and ended again between two looks. */
const FULL_LOOK_MS = 60_000
const STORED_RUNS_MAX = 1000

export class ServedRuns implements RunSource, AsyncDisposable {
  readonly #parts: RunSourceParts
  readonly #folders: ChangedFolders
  readonly #open = new Map<string, OpenRun>()
  #fullLookAtMs = Number.NEGATIVE_INFINITY

  constructor(parts: RunSourceParts) {
    this.#parts = parts
    this.#folders = new ChangedFolders(parts.places.out)
  }

  async news(): Promise<NewsOfRun[]> {
    const isDone = (runs: readonly RunRecord[]) => this.#doneOf(runs)
    const folders = (await this.#folders.look(isDone)).map(({ folder, settle }) =>
      this.#newsOf(folder.runId, () => openFolderRun(folder, this.#parts.places), settle),
    )
    const stored = this.#parts.isLeader() ? await this.#stored() : []
    const all = [...folders, ...stored].sort((a, b) => (a.runId < b.runId ? -1 : 1))
    await this.#closeOthers(new Set(all.map(({ runId }) => runId)))
    return all
  }

  #newsOf(runId: string, open: () => Promise<OpenRun>, settle: () => void): NewsOfRun {
    return {
      runId,
      open: async () => await this.#lookAt(runId, open),
      settle: async () => {
        settle()
        await this.#close(runId)
      },
    }
  }

  async #lookAt(runId: string, open: () => Promise<OpenRun>): Promise<SourceRun> {
    try {
      const held = this.#open.get(runId)
      const run = held ?? (await open())
      this.#open.set(runId, run)
      if (held !== undefined) await run.refresh()
      return await toSourceRun(run)
    } catch (error) {
      await this.#close(runId)
      throw error
    }
  }

  /** Closes deleted runs, and those that another server reads from now on. */
  async #closeOthers(wanted: ReadonlySet<string>): Promise<void> {
    for (const runId of [...this.#open.keys()]) if (!wanted.has(runId)) await this.#close(runId)
  }

  async #close(runId: string): Promise<void> {
    const run = this.#open.get(runId)
    this.#open.delete(runId)
    await run?.[Symbol.asyncDispose]()
  }

  async #stored(): Promise<NewsOfRun[]> {
    const { db, store, places } = this.#parts
    const { prefix } = db.dialect
    const rows = await db.rows(
      `select r.id from ${prefix}run_record r left join ${prefix}ingest_run i on i.run_id = r.id
       where i.run_id is null or i.is_done = 0 or i.version not like r.state || ' %' order by r.id limit ${STORED_RUNS_MAX}`,
      [],
    )
    const ids = new Set(rows.map(({ id }) => String(id)))
    if (performance.now() - this.#fullLookAtMs > FULL_LOOK_MS) {
      this.#fullLookAtMs = performance.now()
      const records = (await store.listRuns({ limit: STORED_RUNS_MAX })).map(({ record }) => record)
      const done = await this.#doneOf(records)
      for (const { id } of records) if (!done.has(id)) ids.add(id)
    }
    return [...ids].map((id) =>
      this.#newsOf(
        id,
        async () => {
          const found = await store.findRun(id)
          if (found === undefined) throw new Error('it is not there any more')
          return await openStoredRun(found, { store, places })
        },
        () => {},
      ),
    )
  }

  /** The runs whose end has been read. */
  async #doneOf(records: readonly RunRecord[]): Promise<ReadonlySet<string>> {
    const ended = records.filter(({ state }) => state !== 'running')
    if (ended.length === 0) return new Set()
    const { prefix, oneOf } = this.#parts.db.dialect
    const rows = await this.#parts.db.rows(
      `select run_id, version from ${prefix}ingest_run where is_done = 1 and ${oneOf('run_id', '$1')}`,
      [JSON.stringify(ended.map(({ id }) => id))],
    )
    const versions = new Map(rows.map((row) => [String(row['run_id']), String(row['version'])]))
    return new Set(ended.filter((record) => versions.get(record.id) === versionOf(record)).map(({ id }) => id))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closeOthers(new Set())
  }
}

const versionOf = ({ state, finishedAt, pages, items }: RunRecord) => `${state} ${finishedAt} ${pages.ok} ${items.new}`

async function toSourceRun(run: OpenRun): Promise<SourceRun> {
  const { record, isOver } = run
  const startedAtMs = Date.parse(record.startedAt)
  const endedAtMs = record.finishedAt === null ? startedAtMs + record.durationMs : Date.parse(record.finishedAt)
  return {
    scraper: record.scraper,
    scope: scopeOf(record),
    record,
    startedAtMs,
    endedAtMs: isOver ? endedAtMs : undefined,
    version: isOver ? versionOf(record) : 'running',
    isFinished: isComplete(record),
    gap: gapOf(record),
    after: (position) => keyedItems(run, position),
  }
}

/** The order of arguments does not matter. */
function scopeOf({ args }: RunRecord): string {
  const entries = Object.entries((args ?? {}) as Record<string, unknown>).sort(([a], [b]) => (a < b ? -1 : 1))
  return hash('sha256', JSON.stringify(entries), 'hex').slice(0, 10)
}

/** Why the run may not have seen everything. An item that breaks its schema was seen anyway. */
function gapOf({ state, reason, exitCode, pages, items }: RunRecord): string | undefined {
  if (state !== 'finished' || (exitCode ?? 0) !== 0) return `it ${state}${reason === null ? '' : `: ${reason}`}`
  if (pages.failed + pages.dead > 0) return `${Math.max(pages.failed, pages.dead)} pages failed`
  if (items.invalid > 0) return `${items.invalid} items were invalid`
  return pages.remaining > 0 ? `${pages.remaining} pages were not visited` : undefined
}

async function keyedItems(run: OpenRun, position: string): Promise<AsyncIterable<SourceItem[]> | undefined> {
  const [items, keyOf] = [await run.items(), await ownKey(run)]
  if (typeof keyOf === 'string') throw new Error(keyOf)
  if (items === undefined) return undefined
  const batches = await items.after(position === '' ? undefined : position)
  return (async function* () {
    for await (const lines of batches)
      yield lines.map((line): SourceItem => {
        const key = keyOf(line)
        const isWhole = key === contentKey(line.json)
        return { key: isWhole ? undefined : key, json: line.json, position: line.position }
      })
  })()
}
