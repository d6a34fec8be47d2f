/** The record of a run that many workers share, added up from what each of them reports. */
import { NO_FILES, type RunRecord, type WorkTally } from '../../core/run.ts'
import type { FrontierStats } from '../../frontier/contract.ts'
import type { StoredWorker } from '../../orchestrator/contract.ts'
import { addFiles, type RecordBase, updateRecord } from '../run/run-record.ts'

const NOTHING: RecordBase = {
  pages: { ok: 0, failed: 0, retried: 0, postponed: 0, remaining: 0, dead: 0 },
  items: { new: 0, same: 0, changed: 0, invalid: 0 },
  files: NO_FILES,
  fieldFill: {},
  bytes: 0,
  cpuMs: 0,
  durationMs: 0,
  rssBytesMax: 0,
  errors: [],
}

/** Brings `record` up to date. The time of a fleet's run is the time since it was started. */
export function updateFleetRecord(
  record: RunRecord,
  stats: FrontierStats,
  workers: readonly StoredWorker[],
  nowMs: number,
): void {
  const tallies = workers.flatMap(({ report }) => (report === undefined ? [] : [report.tally]))
  const endMs = record.finishedAt === null ? nowMs : Date.parse(record.finishedAt)
  updateRecord(record, NOTHING, stats, mergeTallies(tallies), Math.max(0, endMs - Date.parse(record.startedAt)))
}

/** Counts add up; shares and percentiles are means, weighted by what they are shares of. */
export function mergeTallies(tallies: readonly WorkTally[]): WorkTally {
  const sum = (of: (tally: WorkTally) => number) => tallies.reduce((total, tally) => total + of(tally), 0)
  const mean = (of: (tally: WorkTally) => number, weight: (tally: WorkTally) => number) => {
    const weights = sum(weight)
    return weights === 0 ? 0 : sum((tally) => of(tally) * weight(tally)) / weights
  }
  const pagesOf = ({ pages }: WorkTally) => pages.ok + pages.failed
  const itemsOf = ({ items }: WorkTally) => items.new
  const fields = [...new Set(tallies.flatMap(({ fieldFill }) => Object.keys(fieldFill)))]
  return {
    pages: {
      ok: sum(({ pages }) => pages.ok),
      failed: sum(({ pages }) => pages.failed),
      retried: sum(({ pages }) => pages.retried),
      postponed: sum(({ pages }) => pages.postponed),
    },
    items: {
      new: sum(({ items }) => items.new),
      same: sum(({ items }) => items.same),
      changed: sum(({ items }) => items.changed),
      invalid: sum(({ items }) => items.invalid),
    },
    files: tallies.map(({ files }) => files).reduce(addFiles, NO_FILES),
    fieldFill: Object.fromEntries(
      fields.map((field) => [field, mean(({ fieldFill }) => fieldFill[field] ?? 0, itemsOf)]),
    ),
    bytes: sum(({ bytes }) => bytes),
    latencyMs: {
      p50: Math.round(mean(({ latencyMs }) => latencyMs.p50, pagesOf)),
      p95: Math.round(mean(({ latencyMs }) => latencyMs.p95, pagesOf)),
    },
    rssBytesMax: Math.max(0, ...tallies.map(({ rssBytesMax }) => rssBytesMax)),
    cpuMs: sum(({ cpuMs }) => cpuMs),
    errors: mergeErrors(tallies.flatMap(({ errors }) => errors)),
  }
}

function mergeErrors(errors: WorkTally['errors']): WorkTally['errors'] {
  const merged = new Map<string, WorkTally['errors'][number]>()
  for (const error of errors) {
    const known = merged.get(error.code)
    if (known === undefined) merged.set(error.code, { ...error })
    else known.count += error.count
  }
  return [...merged.values()]
}
