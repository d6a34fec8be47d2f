import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import type { ErrorCode } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { RunEvent } from '../../core/events.ts'
import { pageOf } from '../../core/failed-page.ts'
import { openTestHttp } from '../http/http.test-kit.ts'
import type { HttpClient } from '../http/http.ts'
import { article, page as html } from './cases.test-kit.ts'
import { createJudge, type Judgement } from './to-error.ts'

interface Answer {
  status: number
  headers?: Record<string, string>
  body?: string
}

const CHALLENGE = html('Just a moment...', '<script>window._cf_chl_opt={}</script>')
const ANSWERS: Record<string, Answer> = {
  page: { status: 200, body: article() },
  empty: { status: 200, body: '' },
  'challenge-200': { status: 200, body: CHALLENGE },
  'challenge-403': { status: 403, body: CHALLENGE },
  'challenge-503': { status: 503, body: CHALLENGE, headers: { 'retry-after': '7' } },
  'slow-200': { status: 200, body: 'error code: 1015', headers: { 'content-type': 'text/plain', 'retry-after': '9' } },
  'slow-429': { status: 429, body: 'error code: 1015', headers: { 'content-type': 'text/plain', 'retry-after': '9' } },
  'plain-403': { status: 403, body: 'no' },
  'plain-429': { status: 429 },
  'plain-451': { status: 451 },
  'plain-500': { status: 500, body: 'oops' },
  'linkedin-999': { status: 999 },
  'closed-403': { status: 403, body: '{"errorCode":"S22"}', headers: { 'content-type': 'application/json' } },
  missing: { status: 404 },
  login: { status: 200, body: html('Sign in', '<input type="password">') },
  geo: { status: 403, body: '{"error_code":"geoblocked-gdpr"}', headers: { 'content-type': 'application/json' } },
}

const server = createServer((request, response: ServerResponse) => {
  const { status, headers, body } = ANSWERS[new URL(request.url!, 'http://x').searchParams.get('answer') ?? '']!
  response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(body)
})
let origin: string
let http: HttpClient
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  http = openTestHttp()
})
after(async () => {
  await http[Symbol.asyncDispose]()
  await new Promise((resolve) => server.close(resolve))
})

async function judged(answer: string, { path = '/jobs', accept = [] as number[] } = {}) {
  const events: RunEvent[] = []
  const judge = createJudge({ retryAfterMsMax: 60_000, events: { emit: (event) => void events.push(event) } })
  const request = { url: `${origin}${path}?answer=${answer}&next=%2F`, accept }
  const judgement: Judgement = await http.exchange(request, new AbortController().signal).then(
    (page) => judge.page(page, accept),
    (error: ScrapeError) => judge.failure(error),
  )
  return { ...judgement, events }
}

const expected: [answer: string, code: ErrorCode | undefined, vendor: string][] = [
  ['page', undefined, ''],
  ['challenge-200', 'E_CAPTCHA', 'cloudflare'],
  ['challenge-403', 'E_CAPTCHA', 'cloudflare'],
  ['challenge-503', 'E_CAPTCHA', 'cloudflare'],
  ['slow-200', 'E_RATE_LIMITED', 'cloudflare'],
  ['slow-429', 'E_RATE_LIMITED', 'cloudflare'],
  ['linkedin-999', 'E_BLOCKED', 'linkedin'],
  ['geo', 'E_BLOCKED', 'ziprecruiter'],
]
for (const [answer, code, vendor] of expected) {
  test(`makes ${code ?? 'no error'} of ${answer}, with vendor and signal in its words`, async () => {
    const { error, verdict, events } = await judged(answer)
    assert.equal(error?.code, code)
    assert.equal(verdict.vendor, vendor)
    assert.deepEqual(
      events.map((event) => event.type),
      code === undefined ? [] : ['blocked'],
    )
    if (error === undefined) return
    assert.match(error.message, new RegExp(vendor))
    assert.ok(error.message.includes(verdict.signal), error.message)
    assert.equal(error.details.status, ANSWERS[answer]!.status)
    assert.equal(pageOf(error)?.text, ANSWERS[answer]!.body ?? '', 'its page is kept for the snapshot')
  })
}

test('keeps the error of a status that says everything', async () => {
  const codes: [string, ErrorCode][] = [
    ['plain-403', 'E_FORBIDDEN'],
    ['plain-429', 'E_RATE_LIMITED'],
    ['plain-451', 'E_STATUS'],
    ['plain-500', 'E_SERVER'],
    ['missing', 'E_NOT_FOUND'],
  ]
  for (const [answer, code] of codes) assert.equal((await judged(answer)).error?.code, code)
})

test('counts a plain refusal among the blocks, but not a failing server', async () => {
  assert.equal((await judged('plain-403')).events.length, 1)
  assert.equal((await judged('plain-500')).events.length, 0)
})

test('honours Retry-After with any status', async () => {
  assert.equal((await judged('slow-200')).error?.details.retryAfterMs, 9000)
  assert.equal((await judged('slow-429')).error?.details.retryAfterMs, 9000)
  assert.equal((await judged('challenge-503')).error?.details.retryAfterMs, 7000)
})

test('treats a refusal for a closed posting as a page that is gone', async () => {
  const { error, events } = await judged('closed-403')
  assert.equal(error?.code, 'E_NOT_FOUND')
  assert.deepEqual(events, [])
})

test('recognizes a redirect to a login', async () => {
  assert.equal((await judged('login', { path: '/login' })).error?.code, 'E_LOGIN_WALL')
})

test('marks an empty page as suspect, and delivers it', async () => {
  const { error, verdict } = await judged('empty')
  assert.equal(error, undefined)
  assert.equal(verdict.isSuspect, true)
})

test('delivers an accepted status, but not a block page', async () => {
  assert.equal((await judged('plain-403', { accept: [403] })).error, undefined)
  assert.equal((await judged('closed-403', { accept: [403] })).error, undefined)
  assert.equal((await judged('challenge-403', { accept: [403] })).error?.code, 'E_CAPTCHA')
})

test('passes through errors without a response', () => {
  const error = new ScrapeError('E_CONNECTION', 'refused')
  assert.equal(createJudge({ retryAfterMsMax: 1 }).failure(error).error, error)
})
