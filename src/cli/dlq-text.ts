/** Dead letters as text for a terminal, and as JSON for scripts. */

import { ERRORS } from '../core/error-table.ts'
import { redactText } from '../core/redact-text.ts'
import type { DeadGroup, DeadLetter } from '../frontier/contract.ts'
import type { OpenRun } from '../runs/run-view.ts'
import type { CommandOf } from './run-place.ts'
import { formatCount, paintFor, plural, printable, table, truncate, truncateMiddle } from './style.ts'

export function groupJson({ firstAtMs, lastAtMs, ...group }: DeadGroup) {
  return { ...group, firstAt: new Date(firstAtMs).toISOString(), lastAt: new Date(lastAtMs).toISOString() }
}

export function groupsText(groups: DeadGroup[], run: OpenRun, commandOf: CommandOf): string {
  const { id, scraper } = run.record
  const paint = paintFor(process.stdout)
  if (groups.length === 0) return `no dead letters in ${scraper} ${id}`
  const columns = process.stdout.columns ?? 120
  const total = groups.reduce((sum, group) => sum + group.count, 0)
  const blocks = groups.map((group) => {
    const head = [paint('red', `${formatCount(group.count)}×`), paint('bold', group.code), group.class]
    return [
      head,
      printable(group.cause),
      truncateMiddle(printable(group.exampleUrl), Math.max(40, columns - 4)),
    ] as const
  })
  const heads = table(
    blocks.map(([head]) => head),
    { right: [0] },
  ).split('\n')
  const lines = blocks.flatMap(([, cause, example], i) => [heads[i]!, `    ${cause}`, `    ${paint('dim', example)}`])
  return [
    `${plural(total, 'dead letter')} of ${paint('bold', `${scraper} ${id}`)} in ${plural(groups.length, 'group')}`,
    '',
    ...lines,
    '',
    `  look      ${paint('cyan', commandOf('dlq', 'list', id, '--code', groups[0]!.code))}`,
    `  try again ${paint('cyan', commandOf('dlq', 'retry', id))}`,
  ].join('\n')
}

export function letterJson({ task, error, attempts, losses, diedAtMs, snapshot }: DeadLetter) {
  const { id, url, route, data, depth, session } = task
  return {
    id,
    url,
    route,
    data,
    depth,
    /** The session of the page or file; null for none. */
    session: session ?? null,
    error,
    attempts,
    losses,
    diedAt: new Date(diedAtMs).toISOString(),
    snapshot: snapshot ?? null,
  }
}

interface ListView {
  run: OpenRun
  hasMore: boolean
  isFiltered: boolean
  commandOf: CommandOf
}

export function listText(letters: DeadLetter[], { run, hasMore, isFiltered, commandOf }: ListView): string {
  const paint = paintFor(process.stdout)
  const { id, scraper } = run.record
  if (letters.length === 0) return `no dead letters in ${scraper} ${id}${isFiltered ? ' that fit the filter' : ''}`
  const hasUsers = letters.some(({ task }) => task.session !== undefined)
  const rows = letters.map(({ task, error, attempts }) => [
    paint('cyan', task.id.slice(0, 12)),
    paint('bold', error.code),
    plural(attempts, 'try', 'tries'),
    ...(hasUsers ? [printable(task.session ?? '')] : []),
    printable(task.url),
  ])
  return [
    table(rows),
    ...(hasMore ? ['… and more; --limit N shows them'] : []),
    `look at one: ${paint('cyan', commandOf('dlq', 'show', id, letters[0]!.task.id.slice(0, 12)))}`,
  ].join('\n')
}

interface LetterView {
  run: OpenRun
  path: string | null
  head: string | undefined
  /** The screenshot of a page that failed in a browser. */
  picture: string | undefined
  commandOf: CommandOf
}

const HEAD_LINES_MAX = 12
const HEAD_COLUMNS_MAX = 160

export function letterText(letter: DeadLetter, { run, path, picture, head, commandOf }: LetterView): string {
  const paint = paintFor(process.stdout)
  const { task, error } = letter
  const rows: [string, string][] = [
    ['url', printable(task.url)],
    ['why', printable(error.message)],
    ...(error.at === undefined ? [] : [['at', printable(error.at)] as [string, string]]),
    ['fix', ERRORS[error.code]?.fix ?? ''],
    [
      'route',
      `${task.route}, depth ${task.depth}${task.data === null ? '' : `, data ${printable(JSON.stringify(task.data))}`}`,
    ],
    ...(task.session === undefined ? [] : [['session', printable(task.session)] as [string, string]]),
    [
      'tries',
      `${plural(letter.attempts, 'try', 'tries')}${letter.losses > 0 ? `, ${plural(letter.losses, 'lost worker')}` : ''}, the last at ${new Date(letter.diedAtMs).toISOString()}`,
    ],
    ['id', task.id],
    ['snapshot', path ?? 'none was kept'],
    ...(picture === undefined ? [] : [['picture', picture] as [string, string]]),
  ]
  // Content from the web is shown as plain text: its escape sequences never reach the terminal.
  const lines = redactText(head ?? '')
    .split(/\r\n|\r|\n/)
    .map((line) => printable(line).trimEnd())
    .filter((line) => line !== '')
  const shown = lines.slice(0, HEAD_LINES_MAX).map((line) => paint('dim', `  │ ${truncate(line, HEAD_COLUMNS_MAX)}`))
  return [
    `${paint(['red', 'bold'], error.code)}  ${ERRORS[error.code]?.what ?? error.class}`,
    table(
      rows.map(([label, text]) => [paint('dim', label), text]),
      { indent: 2 },
    ),
    ...shown,
    ...(lines.length > shown.length ? [paint('dim', '  │ …')] : []),
    `  try again: ${paint('cyan', commandOf('dlq', 'retry', run.record.id, '--id', task.id.slice(0, 12)))}`,
  ].join('\n')
}
