/** `sluice explain CODE`: everything about an error, from the error table. */

import { didYouMean } from '../core/did-you-mean.ts'
import {
  type ApiErrorCode,
  type ApiErrorKind,
  type ErrorCode,
  type ErrorKind,
  EVERY_ERROR,
  type Verdict,
} from '../core/error-table.ts'
import { ScrapeError } from '../core/errors.ts'
import { exitCodeOf } from './print-error.ts'
import { type Paint, plain, table } from './style.ts'

/** What a verdict means for the page or the run. */
export const VERDICTS: Readonly<Record<Verdict, string>> = {
  retry: 'tried again after a backoff, up to `retries` times; then a dead letter',
  rotate: 'tried again with another session, up to `retries` times; then a dead letter',
  later: 'put back until the host allows it; costs no try',
  drop: 'not tried again; a dead letter at once',
  halt: 'the run or command stops',
}

/** `e_timeout_total`, `timeout_total` and `E_TIMEOUT_TOTAL` are the same word. Throws `E_USAGE` for an unknown one. */
export function findErrorCode(word: string): ErrorCode | ApiErrorCode {
  const upper = word.trim().toUpperCase().replaceAll('-', '_')
  const code = upper.startsWith('E_') ? upper : `E_${upper}`
  if (Object.hasOwn(EVERY_ERROR, code)) return code as ErrorCode
  const near = didYouMean(code, Object.keys(EVERY_ERROR))
  throw new ScrapeError('E_USAGE', `there is no error ${JSON.stringify(word)}`, {
    notes: near === undefined ? [] : [`did you mean ${near}?`],
    fix: near === undefined ? 'See all of them with `sluice explain`.' : `sluice explain ${near}`,
  })
}

export function explainText(word: string, paint: Paint = plain): string {
  const code = findErrorCode(word)
  const kind = EVERY_ERROR[code]
  const rows = [['why', kind.why], ['fix', kind.fix], ...outcomeRows(kind, exitCodeFor(code))]
  return [
    `${paint('bold', code)}  ${kind.what}`,
    '',
    table(
      rows.map(([label, text]) => [paint('dim', label!), text!]),
      { indent: 2 },
    ),
  ].join('\n')
}

function outcomeRows(kind: ErrorKind | ApiErrorKind, exit: number | null): string[][] {
  if ('status' in kind) return [['then', `the request fails with HTTP status ${kind.status}`]]
  return [
    ['then', `${kind.verdict}: ${VERDICTS[kind.verdict]}${triesText(kind)}`],
    ['class', `${kind.class}${kind.verdict === 'halt' ? '' : `    sluice dlq retry RUN --class ${kind.class}`}`],
    ...(exit === null ? [] : [['exit', String(exit)]]),
  ]
}

/** The exit code of a command that ends with it; null if it does not end one. */
export function exitCodeFor(code: ErrorCode | ApiErrorCode): number | null {
  const kind = EVERY_ERROR[code]
  return 'verdict' in kind && kind.verdict === 'halt' ? exitCodeOf(new ScrapeError(code as ErrorCode, kind.what)) : null
}

/** Every code with its description, by class. */
export function explainAllText(paint: Paint = plain): string {
  const rows = Object.entries(EVERY_ERROR).map(([code, kind]) => [
    paint('bold', code),
    'status' in kind ? `api ${kind.status}` : kind.verdict,
    kind.what,
  ])
  return `${table(rows)}\n\nMore: sluice explain CODE`
}

const triesText = ({ triesMax }: ErrorKind) => (triesMax === undefined ? '' : ` (at most ${triesMax} tries)`)
