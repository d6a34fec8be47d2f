/**
 * Events found by polling: runs in folders begin and end in processes that know no store, and problems with a schedule are in its
 * fires. Each is reported once, identified by its key, so nothing is lost if a server dies or was not running.
 */

import { existsSync, statSync } from 'node:fs'
import { every } from '../../../core/every.ts'
import { isComplete, type RunRecord } from '../../../core/run.ts'
import type { SqlDatabase } from '../../../drivers/sql.ts'
import { linesOf, wholeLines } from '../../../runs/file-lines.ts'
import { listRuns, type RunFolder } from '../../../runs/run-folder.ts'
import type { NewEvent, RecordEvents } from '../../../server/webhooks/contract.ts'
import {
  circuitsOpened,
  isAlike,
  isOfCircuit,
  RUNS_BEFORE_MAX,
  runEnded,
  runStarted,
} from '../../../server/webhooks/run-events.ts'
import { NewestRuns } from './newest-runs.ts'

const LOOK_MS = 2_000
const RUNS_MAX = 500
/** How many runs are searched for ones with the same arguments. */
const RUNS_LOOKED_BACK = 10 * RUNS_BEFORE_MAX
const LOG_BYTES_FIRST = 256 * 1024
/** Maximum per look at one log. */
const CIRCUITS_MAX = 100
/** Runs that ended longer ago are not reported: their events may already have been deleted. */
const NEWS_MS_MAX = 7 * 24 * 3_600_000

interface ObservedEventsParts {
  db: SqlDatabase
  record: RecordEvents
  /** The folder that contains the run folders. */
  out: string
  failAt: number
  say(level: 'info' | 'warn', message: string): void
}

export class ObservedEvents implements AsyncDisposable {
  readonly #parts: ObservedEventsParts
  readonly #looking: NodeJS.Timeout
  /** Modification times of the records that have been reported. */
  readonly #told = new Map<string, number>()
  readonly #begun = new Set<string>()
  readonly #newest: NewestRuns
  /** How far each log has been read. */
  readonly #readTo = new Map<string, number>()
  #sinceMs: number | undefined
  #look: Promise<void> | undefined

  constructor(parts: ObservedEventsParts) {
    this.#parts = parts
    this.#newest = new NewestRuns(parts.out, RUNS_MAX)
    this.#looking = every(() => this.look(), LOOK_MS)
    void this.look()
  }

  /** Called every two seconds; only one look at a time. */
  look(): Promise<void> {
    this.#look ??= this.#lookOnce()
      .catch((error: Error) => this.#parts.say('warn', `events cannot be recorded: ${error.message}`))
      .finally(() => {
        this.#look = undefined
      })
    return this.#look
  }

  async #lookOnce(): Promise<void> {
    this.#sinceMs ??= await this.#firstLook()
    const sinceMs = Math.max(this.#sinceMs, Date.now() - NEWS_MS_MAX)
    await this.#lookAtRuns(sinceMs)
    await this.#lookAtFires(sinceMs)
  }

  /** Events from before the first look are not reported: no one could have subscribed yet. */
  async #firstLook(): Promise<number> {
    const { prefix } = this.#parts.db.dialect
    await this.#parts.db.rows(`insert into ${prefix}event_mark (name) values ('first look') on conflict do nothing`, [])
    const [row] = await this.#parts.db.rows(`select at_ms from ${prefix}event_mark where name = 'first look'`, [])
    return Number(row!['at_ms'])
  }

  async #lookAtRuns(sinceMs: number): Promise<void> {
    const { db, record } = this.#parts
    for (const folder of this.#newest.list()) {
      const changedMs = statSync(folder.file('run.json'), { throwIfNoEntry: false })?.mtimeMs
      if (changedMs === undefined || this.#told.get(folder.path) === changedMs) continue
      const { events, logEnd } = await this.#newsOf(folder, sinceMs)
      if (events.length > 0) await db.transaction((rows) => record(rows, events))
      this.#told.set(folder.path, changedMs)
      this.#begun.add(folder.runId)
      if (logEnd !== undefined) this.#readTo.set(folder.path, logEnd)
    }
  }

  async #newsOf(folder: RunFolder, sinceMs: number): Promise<{ events: NewEvent[]; logEnd?: number | undefined }> {
    const run = folder.tryReadRecord()
    if (run === undefined) return { events: [] }
    const events: NewEvent[] = []
    if (!this.#begun.has(run.id) && Date.parse(run.startedAt) >= sinceMs) events.push(runStarted(run))
    if (run.finishedAt !== null && Date.parse(run.finishedAt) < sinceMs) return { events }
    const { lines, end } = await this.#newLinesOf(folder)
    events.push(...circuitsOpened(run, lines))
    if (run.finishedAt !== null)
      events.push(...runEnded({ record: run, before: this.#runsBefore(folder, run), failAt: this.#parts.failAt }))
    return { events, logEnd: end }
  }

  /** New circuit events in the log since the last look; of a log seen for the first time, only its tail. */
  async #newLinesOf(folder: RunFolder): Promise<{ lines: string[]; end: number | undefined }> {
    const path = folder.file('log.jsonl')
    if (!existsSync(path)) return { lines: [], end: undefined }
    const end = await wholeLines(path)
    const start = this.#readTo.get(folder.path) ?? Math.max(0, end - LOG_BYTES_FIRST)
    const found: string[] = []
    for await (const lines of linesOf(path, start, end)) found.push(...lines.filter(isOfCircuit).slice(0, CIRCUITS_MAX))
    return { lines: found, end }
  }

  #runsBefore({ scraper, runId }: RunFolder, run: RunRecord): RunRecord[] {
    return listRuns(this.#parts.out, scraper)
      .filter((folder) => folder.runId < runId)
      .slice(0, RUNS_LOOKED_BACK)
      .flatMap((folder) => folder.tryReadRecord() ?? [])
      .filter((one) => isComplete(one) && isAlike(one, run))
      .slice(0, 2 * RUNS_BEFORE_MAX)
  }

  async #lookAtFires(sinceMs: number): Promise<void> {
    const { db, record } = this.#parts
    const { prefix } = db.dialect
    const fires = await db.rows(
      `select f.id, f.due_ms, f.outcome, f.reason, s.id as schedule_id, s.name, s.scraper
       from ${prefix}schedule_fire f join ${prefix}schedule s on s.id = f.schedule_id
       where f.outcome in ('missed', 'failed') and f.at_ms >= $1 and not exists (
         select 1 from ${prefix}event e where e.dedupe = 'schedule.' || f.outcome || ':' || cast(f.id as text))
       order by f.id limit 100`,
      [sinceMs],
    )
    const events = fires.map(
      ({ id, due_ms: due, outcome, reason, schedule_id: scheduleId, name, scraper }): NewEvent => {
        const type = `schedule.${outcome as 'missed' | 'failed'}` as const
        const schedule = { id: String(scheduleId), name: String(name) }
        const dueAt = new Date(Number(due)).toISOString()
        const data = { scraper: String(scraper), schedule, dueAt, reason: reason === null ? null : String(reason) }
        return { type, data, dedupeKey: `${type}:${id}` }
      },
    )
    if (events.length > 0) await db.transaction((rows) => record(rows, events))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#looking)
    await this.#look
  }
}
