/** `sluice explain CODE`: all there is to know about an error, from the one table of errors. */

import { didYouMean } from '../core/did-you-mean.ts'
import { ERRORS, type ErrorCode, type ErrorKind, type Verdict } from '../core/error-table.ts'
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
export function findErrorCode(word: string): ErrorCode {
  const upper = word.trim().toUpperCase().replaceAll('-', '_')
  const code = upper.startsWith('E_') ? upper : `E_${upper}`
  if (Object.hasOwn(ERRORS, code)) return code as ErrorCode
  const near = didYouMean(code, Object.keys(ERRORS))
  throw new ScrapeError('E_USAGE', `there is no error ${JSON.stringify(word)}`, {
    notes: near === undefined ? [] : [`did you mean ${near}?`],
    fix: near === undefined ? 'See all of them with `sluice explain`.' : `sluice explain ${near}`,
  })
}

export function explainText(word: string, paint: Paint = plain): string {
  const code = findErrorCode(word)
  const kind: ErrorKind = ERRORS[code]
  const exit = exitCodeOf(new ScrapeError(code, kind.what))
  const rows = [
    ['why', kind.why],
    ['fix', kind.fix],
    ['then', `${kind.verdict}: ${VERDICTS[kind.verdict]}${triesText(kind)}`],
    ['class', `${kind.class}${kind.verdict === 'halt' ? '' : `    sluice dlq retry RUN --class ${kind.class}`}`],
    ...(kind.verdict === 'halt' ? [['exit', String(exit)]] : []),
  ]
  return [
    `${paint('bold', code)}  ${kind.what}`,
    '',
    table(
      rows.map(([label, text]) => [paint('dim', label!), text!]),
      { indent: 2 },
    ),
  ].join('\n')
}

/** Every code with its sentence, by class. */
export function explainAllText(paint: Paint = plain): string {
  const rows = Object.entries(ERRORS as Record<string, ErrorKind>).map(([code, kind]) => [
    paint('bold', code),
    kind.verdict,
    kind.what,
  ])
  return `${table(rows)}\n\nsluice explain CODE tells more.`
}

const triesText = ({ triesMax }: ErrorKind) => (triesMax === undefined ? '' : ` (at most ${triesMax} tries)`)
