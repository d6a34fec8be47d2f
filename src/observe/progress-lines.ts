/** The text of the progress display, independent of a terminal: from counts to lines. */
import type { FrontierStats } from '../frontier/contract.ts'
import { formatBytes, formatCount, formatDuration, formatMs, formatRate, formatTime, plural } from './format.ts'
import { fileWork, hasFiles, type PageCounts, pageCounts } from './progress-counts.ts'
import type { TallySnapshot } from './tally.ts'
import { bar, displayWidth, type Paint, plain, printable, truncate } from './terminal.ts'
import { blockedWords } from './trouble.ts'

/** The frontier's figures that the progress shows. */
export type ProgressStats = Pick<
  FrontierStats,
  'pending' | 'claimed' | 'completed' | 'failed' | 'remaining' | 'seen' | 'items' | 'isPaused' | 'pauseReason' | 'lanes'
>

export interface ProgressView {
  name: string
  stats: ProgressStats
  tally: TallySnapshot
  nowMs: number
  startedAtMs: number
  pagesMax: number | undefined
}

const BAR_COLUMNS_MIN = 6
const BAR_COLUMNS_MAX = 24
/** Beyond this, an ETA would be a guess. */
const ETA_MS_MAX = 7 * 86_400_000
/** How long a block is shown. */
const BLOCKED_SHOWN_MS = 60_000

/** At most three lines, plus one if there are files; none wider than `columns`. */
export function progressLines(view: ProgressView, columns: number, paint: Paint): string[] {
  const name = truncate(printable(view.name), Math.max(8, Math.floor(columns / 4)))
  const indent = ' '.repeat(displayWidth(name) + 1)
  const counts = countParts(view, paint)
  const speed = speedParts(view, paint)
  const dot = paint('dim', ' · ')
  const roomForBar = columns - displayWidth(name) - displayWidth(counts.join(dot)) - 4
  const barColumns = Math.min(BAR_COLUMNS_MAX, roomForBar)
  const meter =
    barColumns < BAR_COLUMNS_MIN
      ? ''
      : `${paint('dim', '▕')}${paint('cyan', bar(doneRatio(view), barColumns))}${paint('dim', '▏')} `
  const lines = [
    `${paint('bold', name)} ${meter}${fit(counts, dot, columns - displayWidth(name) - 1 - displayWidth(meter))}`,
    `${indent}${fit(speed, dot, columns - indent.length)}`,
  ]
  const files = fileParts(view, paint)
  if (files.length > 0) lines.push(`${indent}${fit(files, dot, columns - indent.length)}`)
  const notice = noticeText(view)
  if (notice !== undefined) lines.push(indent + paint('yellow', truncate(`! ${notice}`, columns - indent.length)))
  return lines
}

/** Everything in one plain line, for logs. */
export function progressText(view: ProgressView): string {
  const parts = [...countParts(view, plain), ...fileParts(view, plain), ...speedParts(view, plain)].join(' · ')
  const notice = noticeText(view)
  return `${formatTime(view.nowMs)} ${printable(view.name)}: ${parts}${notice === undefined ? '' : ` · ! ${notice}`}`
}

/** As many whole parts as fit: half a number would mislead. */
function fit(parts: string[], separator: string, columns: number): string {
  let text = ''
  for (const part of parts) {
    const longer = text === '' ? part : text + separator + part
    if (displayWidth(longer) > columns) return text === '' ? truncate(part, columns) : text
    text = longer
  }
  return text
}

/** Without files. A fleet worker knows only its own files: those stored by others are counted as done. */
const pagesOf = ({ stats, tally }: ProgressView): PageCounts => pageCounts(stats, tally.files)

function countParts(view: ProgressView, paint: Paint): string[] {
  const { stats, tally } = view
  const pages = pagesOf(view)
  const inFlight = tally.workers.length > 0 ? Math.min(tally.inFlight, pages.remaining) : pages.claimed
  const parts = [
    `${formatCount(pages.completed)} done`,
    `${formatCount(pages.remaining - inFlight)} queued`,
    `${formatCount(inFlight)} in flight`,
    pages.failed > 0 ? paint('red', `${formatCount(pages.failed)} failed`) : '0 failed',
  ]
  if (tally.retrying > 0) parts.push(paint('yellow', `${formatCount(tally.retrying)} retrying`))
  parts.push(paint('green', `${formatCount(stats.items)} items`))
  return parts
}

/** Empty if the run has none. */
function fileParts({ stats, tally: { files } }: ProgressView, paint: Paint): string[] {
  if (!hasFiles(stats.lanes, files)) return []
  const { pending, claimed } = fileWork(stats.lanes)
  const parts = [paint('green', `${plural(files.stored, 'file')} stored`)]
  if (claimed > 0) parts.push(`${formatCount(claimed)} under way`)
  parts.push(`${formatCount(pending)} waiting`, formatBytes(files.bytes))
  if (files.same > 0) parts.push(`${formatCount(files.same)} were there already`)
  if (files.failed > 0) parts.push(paint('red', `${plural(files.failed, 'file')} failed`))
  return parts
}

function speedParts(view: ProgressView, paint: Paint): string[] {
  const { tally, nowMs, startedAtMs } = view
  const parts = [paint('bold', `${formatRate(tally.rate.pages)} pages/s`), etaText(view)]
  if (tally.latencyMs.p95 > 0) parts.push(`p95 ${formatMs(tally.latencyMs.p95)}`)
  parts.push(`${formatBytes(tally.rate.bytes)}/s`)
  if (tally.workers.length > 0) {
    parts.push(`RSS ${formatBytes(tally.rssBytes)}`, `CPU ${Math.round(tally.cpuRatio * 100)} %`)
  }
  parts.push(formatDuration(nowMs - startedAtMs))
  return parts
}

/** Pages that will be processed before the run ends. */
function toDo(view: ProgressView): number {
  const { pagesMax } = view
  const { completed, failed, remaining } = pagesOf(view)
  return pagesMax === undefined ? remaining : Math.max(0, Math.min(remaining, pagesMax - completed - failed))
}

/** Covers pages and files: the run ends with the last of both. */
function doneRatio(view: ProgressView): number {
  const { stats } = view
  const done = stats.completed + stats.failed
  const files = fileWork(stats.lanes)
  const all = done + toDo(view) + files.pending + files.claimed
  return all === 0 ? 0 : done / all
}

/** While links are still being found the end recedes, so the time is a lower bound and is shown as one. */
function etaText(view: ProgressView): string {
  const { tally, stats, pagesMax } = view
  const left = toDo(view)
  const etaMs = (left / tally.rate.pages) * 1000
  if (left === 0 || stats.isPaused || !(etaMs <= ETA_MS_MAX)) return 'ETA –'
  const isCapped = pagesMax !== undefined && left < pagesOf(view).remaining
  const isLowerBound = tally.rate.added > 0 && !isCapped
  return `ETA ${isLowerBound ? '≥ ' : ''}${formatDuration(Math.ceil(etaMs / 1000) * 1000)}`
}

/** Why it is slow or makes no progress; the main cause comes first. */
function noticeText({ stats, tally, nowMs }: ProgressView): string | undefined {
  if (stats.isPaused) return `paused${stats.pauseReason === undefined ? '' : `: ${printable(stats.pauseReason)}`}`
  return circuitNotice(tally) ?? throttledNotice(tally) ?? waitingNotice(tally, nowMs) ?? blockedNotice(tally, nowMs)
}

const andMore = (others: readonly unknown[]): string =>
  others.length === 0 ? '' : ` · and ${formatCount(others.length)} more ${others.length === 1 ? 'host' : 'hosts'}`

const times = (count: number): string => (count > 1 ? ` ×${formatCount(count)}` : '')

function circuitNotice({ circuits }: TallySnapshot): string | undefined {
  const [first, ...others] = circuits
  if (first === undefined) return undefined
  const until = first.untilMs === undefined || first.state === 'half-open' ? '' : ` until ${formatTime(first.untilMs)}`
  const what = first.state === 'open' ? `left alone${until}` : 'being probed'
  return `${printable(first.host)} ${what}${andMore(others)}: ${printable(first.reason)}`
}

function throttledNotice({ throttled }: TallySnapshot): string | undefined {
  const [first, ...others] = throttled
  if (first === undefined) return undefined
  const [cause, effect] = causeAndEffect(printable(first.reason))
  const until = `${effect} until ${formatTime(first.untilMs)}`
  return `${cause} from ${printable(first.host)}${times(first.count)}: ${until}${andMore(others)}`
}

function waitingNotice({ waiting }: TallySnapshot, nowMs: number): string | undefined {
  if (waiting === undefined) return undefined
  const until = waiting.untilMs > nowMs ? ` until ${formatTime(waiting.untilMs)}` : ''
  return `waiting${until}: ${printable(waiting.reason)}`
}

function blockedNotice({ blocked }: TallySnapshot, nowMs: number): string | undefined {
  const [first, ...others] = blocked.filter(({ atMs }) => nowMs - atMs < BLOCKED_SHOWN_MS)
  if (first === undefined) return undefined
  const more = others.length === 0 ? '' : ` · and ${plural(others.length, 'other kind')} of block`
  return `${blockedWords(first)} at ${printable(first.host)}${times(first.count)}${more}`
}

/** `429: slowed to 2 req/s` and `429, Retry-After 30 s` read best with the host in the middle. */
function causeAndEffect(reason: string): [string, string] {
  const [, cause = reason, separator, rest] = /^([^:,]+)([:,]) (.*)$/.exec(reason) ?? []
  if (rest === undefined) return [cause, 'waiting']
  return [cause, separator === ':' ? rest : `waiting, ${rest},`]
}
