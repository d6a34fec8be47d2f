/** The quality of a run's job postings, by source, and which fields got worse compared with earlier runs. */

import { loadScraper } from '../config/load-scraper.ts'
import { comparable, DAYS_MIN, type DriftAlarm, driftAlarms, ITEMS_MIN } from '../jobs/match/drift.ts'
import { createQuality, type QualityReport } from '../jobs/match/quality.ts'
import { postingSchema, type Source } from '../jobs/read/posting.ts'
import { createHistogram } from '../observe/histogram.ts'
import { type FullRun, fullRunBefore } from './earlier-run.ts'
import { openRun } from './open-run.ts'
import { listRuns, type RunFolder } from './run-folder.ts'
import type { OpenRun, RunPlaces } from './run-view.ts'

export interface RunQuality {
  /** Items of the run that are not postings. */
  others: number
  reports: QualityReport[]
  alarms: (DriftAlarm & { source: Source })[]
  /** What each report could be compared with: alarms need enough of both. */
  compared: { source: Source; runs: number; runsMin: number; postings: number; postingsMin: number }[]
  /**
   * Set if a job scraper found nothing, which is an alarm in itself. `before`: the last run with these arguments that found
   * something.
   */
  empty: { before: FullRun | null } | null
}

/** Number of earlier runs to compare with. */
const RUNS_BEFORE = 7

export async function runQuality(run: OpenRun, places: RunPlaces): Promise<RunQuality> {
  const { others, reports } = await measure(run)
  const before = reports.length === 0 ? new Map<Source, QualityReport[]>() : await reportsBefore(run, places)
  const historyOf = ({ source }: QualityReport) => before.get(source) ?? []
  return {
    others,
    reports,
    alarms: reports.flatMap((report) =>
      driftAlarms(report, historyOf(report)).map((alarm) => ({ ...alarm, source: report.source })),
    ),
    compared: reports.map((report) => ({
      source: report.source,
      runs: comparable(historyOf(report)).length,
      runsMin: DAYS_MIN,
      postings: report.items,
      postingsMin: ITEMS_MIN,
    })),
    empty:
      reports.length + others === 0 && (await isOfJobs(run))
        ? { before: fullRunBefore(places.out, run.record) ?? null }
        : null,
  }
}

/** Whether its scraper is for job postings. False if the scraper no longer exists. */
async function isOfJobs({ record }: OpenRun): Promise<boolean> {
  const loaded = await loadScraper(record.source).catch(() => undefined)
  return loaded?.scraper.item === postingSchema
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
    // A run over several boards does not record which board its requests were for.
    if (bySource.size === 1) quality.addRequests({ requests, emptyPages: 0, blocked, isTruncated })
    return quality.report()
  })
  return { others, reports }
}

/** Reports of earlier successful local runs of the same scraper that found something, oldest first. */
async function reportsBefore(run: OpenRun, places: RunPlaces): Promise<Map<Source, QualityReport[]>> {
  const { id, scraper } = run.record
  const earlier = listRuns(places.out, scraper)
    .filter((folder) => folder.runId < id && isGood(folder))
    .slice(0, RUNS_BEFORE)
  const bySource = new Map<Source, QualityReport[]>()
  for (const { path } of earlier.reverse()) {
    await using before = await openRun(path, places)
    for (const report of (await measure(before)).reports)
      bySource.set(report.source, [...(bySource.get(report.source) ?? []), report])
  }
  return bySource
}

function isGood(folder: RunFolder): boolean {
  const record = folder.tryReadRecord()
  return record?.state === 'finished' && record.exitCode === 0 && record.items.new > 0
}
