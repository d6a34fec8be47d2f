/** The figures of a run as text for a terminal, and as JSON for scripts. */

import { type NotFetchedReason, notFetchedOf, notFetchedWords } from '../core/not-fetched.ts'
import type { FrontierStats } from '../frontier/contract.ts'
import { FILLING, moreWords, NO_WORKERS, workersMissing } from '../runs/run-list.ts'
import { livingWorkers, runFiles, stuckWorkers } from '../runs/run-numbers.ts'
import { type OpenRun, queueNote } from '../runs/run-view.ts'
import type { StoredWorker } from '../store/contract.ts'
import type { RunPlace } from './run-place.ts'
import { formatBytes, formatCount, formatMs, formatRate, paintFor, plural, printable, table } from './style.ts'

export function statsJson(run: OpenRun, numbers: FrontierStats, rate: number) {
  const { record, isAlive } = run
  const { pending, claimed, completed, failed, remaining, dead, items, isPaused, pauseReason } = numbers
  return {
    id: record.id,
    scraper: record.scraper,
    region: record.region ?? null,
    state: record.state,
    reason: queueNote(run) ?? record.reason,
    isAlive,
    pending,
    claimed,
    completed,
    failed,
    remaining,
    dead,
    items,
    /** Links and pages that were not fetched, by reason. Such pages are also counted in `completed`. */
    notFetched: notFetchedOf(numbers.counts),
    /** Remaining file tasks (included above), and outcomes of files. */
    files: runFiles(record, numbers),
    /** Pages settled per second. */
    rate: Math.round(rate * 100) / 100,
    /** Workers alive. For a local run it is only known when there are none. */
    workers: livingWorkers(run)?.length ?? (isAlive ? null : 0),
    stuckWorkers: stuckWorkers(run).length,
    isPaused,
    pauseReason: pauseReason ?? null,
    /** Which workers it waits for, if not just any. */
    waitsFor: missingText(run, numbers),
    lanes: numbers.lanes,
    hosts: numbers.hosts,
    startedAt: record.startedAt,
    finishedAt: isAlive ? null : record.finishedAt,
    durationMs: record.durationMs,
    folder: run.folder ?? null,
    place: run.place,
    /** The workers that exist or should exist; null for a local run. */
    fleet: run.workers === undefined ? null : present(run).map(workerJson),
    /** `urls` or `start`: not all of its start tasks are queued. Null: all are. */
    filling: run.filling ?? null,
    /** The broker's own view of the queues; null if it was not asked or does not answer. */
    broker: run.broker ?? null,
  }
}

const present = (run: OpenRun) => [...(livingWorkers(run) ?? []), ...stuckWorkers(run)]

function workerJson({ id, host, pid, region, only, state, startedAtMs, silentMs, report }: StoredWorker) {
  return {
    id,
    host,
    pid,
    region: region ?? null,
    only: only ?? null,
    state,
    startedAt: new Date(startedAtMs).toISOString(),
    silentMs: Math.round(silentMs),
    inFlight: report?.inFlight ?? 0,
    pages: report?.tally.pages.ok ?? 0,
    failed: report?.tally.pages.failed ?? 0,
    items: report?.tally.items.new ?? 0,
    rssBytes: report?.rssBytes ?? 0,
    loopLagMs: report?.loopLagMs ?? 0,
  }
}

interface StatsSheet {
  place: RunPlace
  numbers: FrontierStats
  rate: number
  isRateNow: boolean
}

const HOSTS_SHOWN_MAX = 5
const WORKERS_SHOWN_MAX = 20
const COLOURS = { running: 'cyan', paused: 'yellow', finished: 'green', stopped: 'yellow', failed: 'red' } as const

/** A run without any workers has its own row. */
function missingText(run: OpenRun, numbers: FrontierStats): string | null {
  const missing = run.isOver || run.workers === undefined ? undefined : workersMissing(run, numbers)
  return missing === undefined || missing === NO_WORKERS ? null : missing
}

export function statsText({ place, numbers, rate, isRateNow }: StatsSheet): string {
  const { run, commandOf } = place
  const { record, isAlive } = run
  const paint = paintFor(process.stdout)
  const count = (value: number) => formatCount(value)
  const state = !run.isOver && numbers.isPaused ? 'paused' : record.state
  const isFilled = run.filling === undefined || run.isOver
  const why =
    queueNote(run) ??
    (numbers.isPaused ? numbers.pauseReason : isFilled ? (record.reason ?? missingText(run, numbers)) : FILLING)
  const isLost = !isAlive && numbers.claimed > 0
  const rows: [string, string][] = [
    ['pending', count(numbers.pending)],
    ['claimed', `${count(numbers.claimed)}${isLost ? '  (of a lost worker; back when resumed)' : ''}`],
    ['completed', count(numbers.completed)],
    ['failed', numbers.failed > 0 ? paint('red', count(numbers.failed)) : '0'],
    ['remaining', `${count(numbers.remaining)} of ${count(numbers.seen)} seen`],
    ['dead', count(numbers.dead)],
    ['items', count(numbers.items)],
    ...fileRow(run, numbers),
    ...notFetchedRows(numbers),
    ['rate', `${formatRate(rate)} pages/s${isRateNow ? ' now' : ' on average'}`],
    ...(record.region === undefined ? [] : [['region', record.region] as [string, string]]),
    ['time', `${formatMs(record.durationMs)} since ${record.startedAt}`],
  ]
  const busiest = numbers.hosts.filter((host) => host.pending > 0).slice(0, HOSTS_SHOWN_MAX)
  if (busiest.length > 0)
    rows.push(['hosts', busiest.map((host) => `${printable(host.host)} (${count(host.pending)} pending)`).join(', ')])
  if (run.workers !== undefined) rows.push(['workers', workersLine(run)])
  rows.push(...brokerRows(run))
  return [
    `${paint('bold', `${record.scraper} ${record.id}`)}  ${paint(COLOURS[state], state)}${why ? `: ${printable(why)}` : ''}`,
    table(
      rows.map(([label, text]) => [paint('dim', label), text]),
      { indent: 2 },
    ),
    ...workerLines(run),
    ...(numbers.dead > 0
      ? [`  ${plural(numbers.dead, 'dead letter')}: ${paint('cyan', commandOf('dlq', 'groups', record.id))}`]
      : []),
    ...goOn(place, numbers).map(([when, line]) => `  ${when}: ${paint('cyan', line)}${moreWords(run)}`),
  ].join('\n')
}

/** Empty if the run has none. */
export function filesText({ record }: OpenRun, numbers: FrontierStats): string {
  const { pending, claimed, stored, same, failed } = runFiles(record, numbers)
  if (pending + claimed + stored + same + failed === 0) return ''
  return [
    `${formatCount(stored)} stored`,
    ...(same > 0 ? [`${formatCount(same)} were there already`] : []),
    ...(failed > 0 ? [paintFor(process.stdout)('red', `${formatCount(failed)} failed`)] : []),
    `${formatCount(pending)} waiting`,
    `${formatCount(claimed)} under way`,
    formatBytes(record.files.bytes),
  ].join(', ')
}

function fileRow(run: OpenRun, numbers: FrontierStats): [string, string][] {
  const text = filesText(run, numbers)
  return text === '' ? [] : [['files', text]]
}

function notFetchedRows({ counts }: FrontierStats): [string, string][] {
  const rows = Object.entries(notFetchedOf(counts)) as [NotFetchedReason, number][]
  return rows.map(([reason, count], row) => [row === 0 ? 'skipped' : '', notFetchedWords(count, reason)])
}

function goOn({ run, resume }: RunPlace, { remaining }: FrontierStats): [when: string, line: string][] {
  if (run.trouble !== undefined) return []
  if (run.filling !== undefined) return [[run.isOver ? 'resume' : 'if interrupted', resume()]]
  return !run.isAlive && remaining > 0 ? [['resume', resume()]] : []
}

function workersLine(run: OpenRun): string {
  const living = livingWorkers(run)?.length ?? 0
  const stuck = stuckWorkers(run).length
  const ended = (run.workers?.length ?? 0) - living - stuck
  const parts = [
    formatCount(living),
    ...(stuck > 0 ? [paintFor(process.stdout)('red', `${stuck} stuck`)] : []),
    ...(ended > 0 ? [`${ended} gone`] : []),
  ]
  return parts.join(', ')
}

/** The broker's own view, one row per queue. */
export function brokerRows({ broker = [] }: OpenRun): [queue: string, text: string][] {
  return broker.map(({ name, ready, unacked, consumers, publishRate, deliverRate, ackRate }) => [
    printable(name),
    `${formatCount(ready)} ready, ${formatCount(unacked)} unacked, ${plural(consumers, 'consumer')}; ` +
      `in ${formatRate(publishRate)}/s, out ${formatRate(deliverRate)}/s, acked ${formatRate(ackRate)}/s`,
  ])
}

/** One line for each worker that exists or should exist. */
export function workerLines(run: OpenRun, paint = paintFor(process.stdout)): string[] {
  const there = present(run)
  if (there.length === 0) return []
  const rows = there
    .slice(0, WORKERS_SHOWN_MAX)
    .map(({ id, region, only, state, silentMs, report }) => [
      [printable(id), region, only && `${only} only`].filter(Boolean).join(' · '),
      state === 'stuck' ? paint('red', `silent for ${formatMs(silentMs)}`) : state,
      `${formatCount(report?.inFlight ?? 0)} in flight`,
      `${formatCount(report?.tally.pages.ok ?? 0)} pages`,
      `${formatCount(report?.tally.pages.failed ?? 0)} failed`,
      `${formatCount(report?.tally.items.new ?? 0)} items`,
      formatBytes(report?.rssBytes ?? 0),
    ])
  const more = there.length - rows.length
  return [table(rows, { right: [2, 3, 4, 5, 6], indent: 4 }), ...(more > 0 ? [`    … and ${more} more`] : [])]
}
