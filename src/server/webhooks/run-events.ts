/** Events that follow from the record of a run. The same record always gives the same events. */
import { isDeepStrictEqual } from 'node:util'
import { redactAll } from '../../core/redact.ts'
import { isComplete, type RunRecord } from '../../core/run.ts'
import type { Json } from '../../core/task.ts'
import type { EventType, NewEvent } from './contract.ts'

/** By how much a field's fill rate must drop (0 to 1) to look like a layout change. */
const FILL_DROP = 0.2
/** With fewer previous runs, nothing is compared. */
const RUNS_BEFORE_MIN = 2
export const RUNS_BEFORE_MAX = 5

export function runStarted(record: RunRecord): NewEvent {
  const { id, scraper, startedAt, args } = record
  return {
    type: 'run.started',
    data: { runId: id, scraper, startedAt, args: redactAll(args) },
    dedupeKey: `run.started:${id}`,
  }
}

interface RunEnd {
  record: RunRecord
  /** Finished runs of this scraper before it, newest first. Those with other arguments are ignored. */
  before: readonly RunRecord[]
  /** Share of failed pages above which a run counts as failed. */
  failAt: number
}

/** Empty for a running run. A resumed run ends again, and is reported again. */
export function runEnded({ record, before, failAt }: RunEnd): NewEvent[] {
  const { id, scraper, state, reason, exitCode, startedAt, finishedAt, durationMs, pages, items } = record
  if (state === 'running' || finishedAt === null) return []
  const common = { runId: id, scraper, state, reason, exitCode, startedAt, finishedAt, durationMs, pages, items }
  const end = (type: EventType, more: NewEvent['data'] = {}): NewEvent => ({
    type,
    data: { ...common, ...more },
    dedupeKey: `${type}:${id}:${finishedAt}`,
  })
  const events = [end(endType(record))]
  const failedShare = pages.failed / Math.max(1, pages.ok + pages.failed)
  if (failedShare > failAt) events.push(end('run.error_rate', { failedShare, failAt }))
  const drops = fillDrops(record, before)
  if (drops.length > 0) events.push(end('run.layout_changed', { fields: drops }))
  return events
}

/** Whether a log line may be about a circuit: a cheap check, as most lines are not. */
export const isOfCircuit = (line: string) => line.includes('"event":"circuit"')

/** Once per host and run: a circuit that opens again and again is not reported again. */
export function circuitsOpened(run: Pick<RunRecord, 'id' | 'scraper'>, lines: readonly string[]): NewEvent[] {
  return lines.filter(isOfCircuit).flatMap((line): NewEvent[] => {
    const { event, state, host, reason, time } = parsed(line)
    if (event !== 'circuit' || state !== 'open' || typeof host !== 'string') return []
    const data = { runId: run.id, scraper: run.scraper, host, reason: reason ?? null, at: time ?? null }
    return [{ type: 'circuit.opened', data, dedupeKey: `circuit.opened:${run.id}:${host}` }]
  })
}

function parsed(line: string): Record<string, Json> {
  try {
    const value = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {} // truncated line
  }
}

function endType({ state, exitCode }: RunRecord): EventType {
  if (state === 'stopped') return 'run.stopped'
  return state === 'failed' || exitCode !== 0 ? 'run.failed' : 'run.finished'
}

interface FillDrop {
  field: string
  fill: number
  usual: number
  [more: string]: string | number
}

/** Runs with other arguments read other pages, and may well find other fields. */
export const isAlike = (one: Pick<RunRecord, 'args'>, other: Pick<RunRecord, 'args'>) =>
  isDeepStrictEqual(one.args ?? {}, other.args ?? {})

/** Fields that are filled less often than the median of the previous runs. */
function fillDrops(run: RunRecord, before: readonly RunRecord[]): FillDrop[] {
  const { pages, fieldFill } = run
  const measures = before.filter((one) => one.items.new > 0 && isAlike(one, run)).slice(0, RUNS_BEFORE_MAX)
  if (!isComplete(run) || pages.ok === 0 || measures.length < RUNS_BEFORE_MIN) return []
  const fields = new Set(measures.flatMap((run) => Object.keys(run.fieldFill)))
  return [...fields].flatMap((field) => {
    const usual = median(measures.map((run) => run.fieldFill[field] ?? 0))
    const fill = fieldFill[field] ?? 0
    return usual - fill > FILL_DROP ? [{ field, fill, usual }] : []
  })
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle) - 1]!) / 2
}
