import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import { coloured } from '../observe/terminal.ts'
import { errorText, exitCodeOf } from './print-error.ts'

const unmatched = new ScrapeError('E_ROUTE_UNMATCHED', 'no route of "jobs" matches https://x.test/careers/9', {
  url: 'https://x.test/careers/9',
  at: 'scrapers/jobs.ts:31 (handler "list")',
  notes: ['routes: list /jobs · job /job/:id'],
  fix: "add a route, or name one: enqueue('job', url)",
})

test('says what, where, why and what to do', () => {
  assert.equal(
    errorText(unmatched),
    `error E_ROUTE_UNMATCHED  no route of "jobs" matches https://x.test/careers/9
  at scrapers/jobs.ts:31 (handler "list")
  routes: list /jobs · job /job/:id
  fix: add a route, or name one: enqueue('job', url)         sluice explain E_ROUTE_UNMATCHED`,
  )
})

test('puts the second command below the advice if the terminal is narrow', () => {
  assert.match(errorText(unmatched, { columns: 60 }), /url\)\n {2}sluice explain E_ROUTE_UNMATCHED$/)
})

test('shows all problems of one message, one per line', () => {
  const error = new ScrapeError(
    'E_OPTION',
    '2 options are not right\nretries: must be at most 100\nrpz: unknown, did you mean rps?',
  )
  assert.match(errorText(error), /^error E_OPTION {2}2 options are not right\n {2}retries: .*\n {2}rpz: .*\n {2}fix: /)
  const several = new AggregateError([error, unmatched])
  assert.match(errorText(several), /E_OPTION[\s\S]*\n\nerror E_ROUTE_UNMATCHED/)
})

test('shows the stack trace and the causes only on request', () => {
  const error = new ScrapeError('E_SERVICE', 'no answer', { cause: new Error('ECONNREFUSED') })
  assert.doesNotMatch(errorText(error), /print-error\.test/)
  assert.match(errorText(error, { verbose: true }), /print-error\.test[\s\S]*caused by Error: ECONNREFUSED/)
})

test('shows an unknown error as a bug', () => {
  assert.match(errorText(new TypeError('x is undefined')), /^error {2}TypeError: x is undefined\n {2}fix: .* -v/)
  assert.match(errorText('text'), /^error {2}text\n/)
})

test('prints no secret and no escape sequence', () => {
  const error = new ScrapeError('E_SERVICE', 'cannot reach postgres://ana:hunter2@db/x \x1b[2J', {
    notes: ['password: hunter2'],
  })
  const text = errorText(error)
  assert.ok(!text.includes('hunter2') && !text.includes('\x1b'), text)
})

test('colours the code and the fix if colours are enabled', () => {
  assert.ok(errorText(unmatched, { paint: coloured }).startsWith('\x1b[31m'))
})

test('ends with the matching exit code', () => {
  const of = (code: ConstructorParameters<typeof ScrapeError>[0]) => exitCodeOf(new ScrapeError(code, ''))
  assert.deepEqual(
    [of('E_USAGE'), of('E_DEFINITION'), of('E_ROUTE_UNMATCHED'), of('E_SERVICE'), of('E_STOPPED'), of('E_OUTPUT')],
    [2, 2, 2, 3, 4, 2],
  )
  assert.deepEqual([of('E_NOT_FOUND'), exitCodeOf(new Error('x')), exitCodeOf(undefined)], [1, 1, 1])
  assert.equal(exitCodeOf(new AggregateError([unmatched])), 2)
  const output = (cause: object) => new ScrapeError('E_OUTPUT', '', { cause: Object.assign(new Error(), cause) })
  assert.equal(exitCodeOf(output({ code: 'EACCES' })), 2, 'a wrong --out')
  assert.equal(exitCodeOf(output({ code: 'ENOSPC' })), 4, 'a full disk')
  assert.equal(exitCodeOf(output({ code: 'ERR_SQLITE_ERROR', errcode: 13 })), 4, 'a full disk under SQLite')
})
