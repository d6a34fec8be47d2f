/** How good the job postings of a run are, by source, and which fields fell against the runs before it. */
import {
  createQuality,
  type DriftAlarm,
  driftAlarms,
  postingSchema,
  type QualityReport,
  type Source,
} from '../../jobs/index.ts'
import { createHistogram } from '../../observe/histogram.ts'
import { listRuns } from '../run/run-folder.ts'
import { type OpenRun, openRun, type RunPlaces } from './open-run.ts'

export interface RunQuality {
  /** Items of the run that are no postings. */
  others: number
  reports: QualityReport[]
  alarms: (DriftAlarm & { source: Source })[]
}

/** Runs before it that it is compared with. */
const RUNS_BEFORE = 7

export async function runQuality(run: OpenRun, places: RunPlaces): Promise<RunQuality> {
  const { others, reports } = await measure(run)
  const before = await reportsBefore(run, places)
  const alarms = reports.flatMap((report) =>
    driftAlarms(report, before.get(report.source) ?? []).map((alarm) => ({ ...alarm, source: report.source })),
  )
  return { others, reports, alarms }
}

async function measure(run: OpenRun): Promise<Pick<RunQuality, 'others' | 'reports'>> {
  const bySource = new Map<Source, ReturnType<typeof createQuality>>()
  const now = new Date(run.record.finishedAt ?? Date.now())
  let others = 0
  let isTruncated = false
  const items = await run.items()
  for await (const batch of items?.batches() ?? []) {
    for (const { json } of batch) {
      const parsed = postingSchema.safeParse(JSON.parse(json))
      if (!parsed.success) {
        others++
        continue
      }
      const { data: posting } = parsed
      let quality = bySource.get(posting.source)
      if (quality === undefined) {
        quality = createQuality(posting.source, { quantiles: createHistogram })
        bySource.set(posting.source, quality)
      }
      quality.add(posting, { now })
      isTruncated ||= posting.raw['truncated'] === true
    }
  }
  const { pages, errors } = run.record
  const requests = pages.ok + pages.failed + pages.retried
  const blocked = errors.reduce(
    (sum, one) => sum + (/^(?:blocked|captcha|login-wall)$/.test(one.class) ? one.count : 0),
    0,
  )
  const reports = [...bySource.values()].map((quality) => {
    // A run of several boards does not tell whose requests they were.
    if (bySource.size === 1) quality.addRequests({ requests, emptyPages: 0, blocked, isTruncated })
    return quality.report()
  })
  return { others, reports }
}

/** Of earlier runs of the same scraper on this machine, oldest first. */
async function reportsBefore(run: OpenRun, places: RunPlaces): Promise<Map<Source, QualityReport[]>> {
  const { id, scraper } = run.record
  const earlier = listRuns(places.out, scraper)
    .filter(({ runId }) => runId < id)
    .slice(0, RUNS_BEFORE)
  const bySource = new Map<Source, QualityReport[]>()
  for (const { path } of earlier.reverse()) {
    await using before = await openRun(path, places)
    for (const report of (await measure(before)).reports)
      bySource.set(report.source, [...(bySource.get(report.source) ?? []), report])
  }
  return bySource
}
