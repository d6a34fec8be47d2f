/** The summary of a run: items, field fill, speed, errors, and suggested commands. */
import { ERRORS, type ErrorCode } from '../core/error-table.ts'
import { isWarning, type NotFetchedReason, notFetchedWords } from '../core/not-fetched.ts'
import { type FileCounts, isComplete, type RunRecord } from '../core/run.ts'
import { formatBytes, formatCount, formatMs, formatRate, formatRatio, plural } from './format.ts'
import {
  bar,
  displayWidth,
  type Paint,
  padEnd,
  padStart,
  plain,
  printable,
  self,
  truncate,
  truncateMiddle,
  wrap,
} from './terminal.ts'

interface SummaryOptions {
  paint?: Paint
  /** Width of the terminal; at most 100 columns are used. */
  columns?: number
  /** `--out` of the run if it is not the default: the commands shown must find the run again. */
  out?: string
  /** Replaces the commands chosen by how the run ended. */
  next?: readonly string[]
}

const COLUMNS_MAX = 100
const COLUMNS_MIN = 60
const LABEL_COLUMNS = 10
const FIELDS_SHOWN_MAX = 24
const ERRORS_SHOWN_MAX = 6
const FILL_BAR_COLUMNS = 8

interface Sheet {
  paint: Paint
  /** Columns to the right of the label. */
  columns: number
}

export function summaryText(run: RunRecord, options: SummaryOptions = {}): string {
  const columns = Math.min(COLUMNS_MAX, Math.max(COLUMNS_MIN, options.columns ?? COLUMNS_MAX))
  const sheet: Sheet = { paint: options.paint ?? plain, columns: columns - LABEL_COLUMNS }
  const warnings = run.warnings.flatMap((text) =>
    wrap(printable(text), sheet.columns).map((line) => sheet.paint('yellow', line)),
  )
  const commands = (options.next ?? nextCommands(run, options.out)).map((command) => sheet.paint('cyan', command))
  const blocks = [
    headLines(run, columns, sheet.paint),
    [
      ...labelled('pages', [pagesLine(run, sheet)], sheet),
      ...labelled('items', [itemsLine(run, sheet)], sheet),
      ...labelled('files', filesLines(run, sheet), sheet),
      ...labelled('skipped', notFetchedLines(run, sheet), sheet),
      ...labelled('speed', [speedLine(run, sheet)], sheet),
      ...labelled('used', [usedLine(run, sheet)], sheet),
    ],
    labelled('fields', fieldLines(run, sheet), sheet),
    labelled('errors', errorLines(run, sheet, options.out), sheet),
    labelled('notes', warnings, sheet),
    labelled('output', outputLines(run, sheet), sheet),
    labelled('next', commands, sheet),
  ]
  const filled = blocks.filter((block) => block.length > 0)
  return `${filled.map((block) => block.join('\n')).join('\n\n')}\n`
}

function labelled(label: string, lines: readonly string[], { paint }: Sheet): string[] {
  return lines.map((line, row) => `  ${paint('dim', padEnd(row === 0 ? label : '', LABEL_COLUMNS - 2))}${line}`)
}

/** The two most likely next commands after a run that ended like this. */
export function nextCommands(run: RunRecord, out?: string): string[] {
  const resume = `${self()} ${resumed(run)} --resume ${run.id}${outFlag(out)}`
  const groups = `${self()} dlq groups ${run.id}${outFlag(out)}`
  const commands: string[] = []
  if (run.state !== 'running' && !isComplete(run)) commands.push(resume)
  if (isAnyWorthRetrying(run)) commands.push(groups, `${self()} dlq retry ${run.id}${outFlag(out)}`)
  const file = run.outputs.find((output) => output.rows > 0 && /\.(?:csv|jsonl)$/.test(output.target))
  if (file !== undefined) commands.push(`head -n 3 ${file.target}`)
  commands.push(
    `${self()} export ${run.id} --format csv${out === undefined ? '' : ` --runs ${out}`} > ${run.scraper}.csv`,
    `${self()} stats ${run.id}${outFlag(out)}`,
  )
  return commands.slice(0, 2)
}

/** Pages forbidden by robots.txt stay forbidden. */
const isAnyWorthRetrying = ({ pages, errors }: RunRecord) =>
  pages.dead > (errors.find(({ code }) => code === 'E_ROBOTS')?.count ?? 0)

/** A crawl without code has no scraper to name. */
const resumed = ({ scraper, source }: RunRecord) => (scraper.startsWith('crawl-') ? 'crawl' : `run ${source}`)

const outFlag = (out: string | undefined) =>
  out === undefined ? '' : ` --out ${/^[\w./@:+-]+$/.test(out) ? out : `'${out.replaceAll("'", `'\\''`)}'`}`

function headLines(run: RunRecord, columns: number, paint: Paint): string[] {
  const isGood = run.state === 'finished' && (run.exitCode ?? 0) === 0
  const colour = isGood ? 'green' : run.state === 'failed' || run.exitCode === 1 ? 'red' : 'yellow'
  const mark = { running: '…', finished: isGood ? '✔' : '✘', stopped: '■', failed: '✘' }[run.state]
  const preposition = run.state === 'finished' ? 'in' : 'after'
  const left = `${mark} ${run.scraper} ${run.state} ${preposition} ${formatMs(run.durationMs)}`
  const right = `run ${run.id}`
  const gap = ' '.repeat(Math.max(2, columns - displayWidth(left) - displayWidth(right)))
  const head = `${paint([colour, 'bold'], left)}${gap}${paint('dim', right)}`
  const exit = run.exitCode === null || run.exitCode === 0 ? undefined : `exit ${run.exitCode}`
  const why = [run.reason === null ? undefined : printable(run.reason), exit].filter((part) => part !== undefined)
  if (why.length === 0) return [head]
  return [head, ...wrap(why.join(' · '), columns - 2).map((line) => `  ${paint(colour, line)}`)]
}

function pagesLine({ pages, files }: RunRecord, { paint, columns }: Sheet): string {
  return join(paint, columns, [
    paint('bold', `${formatCount(pages.ok)} ok`),
    pages.failed > 0 ? paint('red', `${formatCount(pages.failed)} failed`) : '0 failed',
    `${formatCount(pages.retried)} retried`,
    pages.postponed > 0 ? `${formatCount(pages.postponed)} postponed` : undefined,
    pages.remaining > 0 ? paint('yellow', `${formatCount(pages.remaining)} ${leftWords(files)}`) : undefined,
  ])
}

/** The rest is counted in tasks: the record does not say how many of them are files. */
const leftWords = (files: FileCounts) => (hadFiles(files) ? 'left (pages and files)' : 'left')

const hadFiles = ({ stored, same, failed, retried }: FileCounts) => stored + same + failed + retried > 0

/** Empty if the run had none. */
function filesLines({ files }: RunRecord, { paint, columns }: Sheet): string[] {
  if (!hadFiles(files)) return []
  return [
    join(paint, columns, [
      paint('bold', `${formatCount(files.stored)} stored`),
      formatBytes(files.bytes),
      files.same > 0 ? `${formatCount(files.same)} were there already` : undefined,
      files.failed > 0 ? paint('red', `${formatCount(files.failed)} failed`) : '0 failed',
      files.retried > 0 ? `${formatCount(files.retried)} retried` : undefined,
    ]),
  ]
}

/** Warnings are also among the notes. */
function notFetchedLines({ notFetched }: RunRecord, { paint, columns }: Sheet): string[] {
  return (Object.entries(notFetched) as [NotFetchedReason, number][]).map(([reason, count]) => {
    const words = truncate(notFetchedWords(count, reason), columns)
    return isWarning(reason) ? paint('yellow', words) : words
  })
}

function itemsLine({ items }: RunRecord, { paint, columns }: Sheet): string {
  return join(paint, columns, [
    paint('bold', `${formatCount(items.new)} new`),
    `${formatCount(items.changed)} changed`,
    items.same > 0 ? `${formatCount(items.same)} repeated` : undefined,
    items.invalid > 0 ? paint('red', `${formatCount(items.invalid)} invalid`) : '0 invalid',
  ])
}

function speedLine(run: RunRecord, { paint, columns }: Sheet): string {
  const seconds = run.durationMs / 1000
  const rate = (count: number) => (seconds > 0 ? count / seconds : 0)
  const { p50, p95 } = run.latencyMs
  return join(paint, columns, [
    `${formatRate(rate(run.pages.ok + run.pages.failed))} pages/s`,
    `${formatRate(rate(run.items.new + run.items.changed))} items/s`,
    `${formatBytes(rate(run.bytes))}/s`,
    p95 > 0 ? `p50 ${formatMs(p50)}` : undefined,
    p95 > 0 ? `p95 ${formatMs(p95)}` : undefined,
  ])
}

function usedLine(run: RunRecord, { paint, columns }: Sheet): string {
  const cpuShare = run.durationMs > 0 ? ` (${Math.round((run.cpuMs / run.durationMs) * 100)} %)` : ''
  return join(paint, columns, [
    `CPU ${formatMs(run.cpuMs)}${cpuShare}`,
    `RSS max ${formatBytes(run.rssBytesMax)}`,
    `${formatBytes(run.bytes)} received`,
  ])
}

/** Two fields per line if there is room, each with a small bar; the emptiest stand out by colour and number. */
function fieldLines(run: RunRecord, { paint, columns }: Sheet): string[] {
  const all = Object.entries(run.fieldFill)
  const shown = all.slice(0, FIELDS_SHOWN_MAX)
  if (shown.length === 0) return []
  const perLine = shown.length > 3 ? 2 : 1
  const nameRoom = Math.floor(columns / perLine) - FILL_BAR_COLUMNS - 12
  const nameColumns = Math.min(nameRoom, Math.max(...shown.map(([name]) => displayWidth(printable(name)))))
  const cells = shown.map(([name, ratio]) => {
    const colour = ratio >= 0.99 ? 'green' : ratio >= 0.5 ? 'yellow' : 'red'
    const meter = bar(ratio, FILL_BAR_COLUMNS).replaceAll(' ', '·')
    const label = padEnd(truncate(printable(name), nameColumns), nameColumns)
    return `${label} ${paint(colour, meter)} ${padStart(formatRatio(ratio), 6)}`
  })
  const rows = Math.ceil(cells.length / perLine)
  const lines = Array.from({ length: rows }, (_, row) =>
    // Column by column, as one reads a list.
    Array.from({ length: perLine }, (__, column) => cells[column * rows + row])
      .filter((cell) => cell !== undefined)
      .join('    '),
  )
  if (all.length > shown.length) lines.push(paint('dim', `and ${plural(all.length - shown.length, 'field')} more`))
  return lines
}

function errorLines(run: RunRecord, { paint, columns }: Sheet, out: string | undefined): string[] {
  const groups = run.errors.filter((group) => group.count > 0)
  if (groups.length === 0) return []
  const shown = groups.slice(0, ERRORS_SHOWN_MAX)
  const countColumns = Math.max(...shown.map((group) => formatCount(group.count).length + 1))
  const codeColumns = Math.max(...shown.map((group) => displayWidth(group.code)))
  const lines = shown.flatMap((group) => {
    const head = `${padStart(`${formatCount(group.count)}×`, countColumns)} ${padEnd(group.code, codeColumns)}`
    const what = Object.hasOwn(ERRORS, group.code) ? ERRORS[group.code as ErrorCode].what : group.class
    const room = columns - countColumns - 1
    const example = `${' '.repeat(countColumns + 1)}${paint('dim', truncateMiddle(printable(group.example), room))}`
    const first = `${paint('red', head)}  ${truncate(what, room - codeColumns - 2)}`
    return group.example === '' ? [first] : [first, example]
  })
  if (groups.length > shown.length)
    lines.push(paint('dim', `and ${plural(groups.length - shown.length, 'cause')} more`))
  if (run.pages.dead > 0) lines.push(`see them: ${paint('cyan', `${self()} dlq groups ${run.id}${outFlag(out)}`)}`)
  if (run.items.invalid > 0) lines.push(`invalid items: ${paint('cyan', 'errors.jsonl')} in the run’s folder`)
  return lines
}

function outputLines(run: RunRecord, { paint, columns }: Sheet): string[] {
  if (run.outputs.length === 0) return []
  const rows = run.outputs.map((output) => ({
    rows: `${plural(output.rows, 'row')}`,
    bytes: formatBytes(output.bytes),
    target: printable(output.target),
  }))
  const rowColumns = Math.max(...rows.map((row) => row.rows.length))
  const byteColumns = Math.max(...rows.map((row) => row.bytes.length))
  const targetRoom = columns - rowColumns - byteColumns - 4
  const targetColumns = Math.min(targetRoom, Math.max(...rows.map((row) => displayWidth(row.target))))
  return rows.map((row) => {
    const target = padEnd(truncateMiddle(row.target, targetColumns), targetColumns)
    return `${target}  ${padStart(row.rows, rowColumns)}  ${paint('dim', padStart(row.bytes, byteColumns))}`
  })
}

function join(paint: Paint, columns: number, parts: (string | undefined)[]): string {
  return truncate(parts.filter((part) => part !== undefined).join(paint('dim', ' · ')), columns)
}
