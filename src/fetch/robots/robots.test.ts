import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorCode } from '../../core/error-table.ts'
import { type ErrorDetails, ScrapeError } from '../../core/errors.ts'
import { createRobots } from './robots.ts'

const never = new AbortController().signal
const HOUR_MS = 3_600_000

type Answer = string | Buffer | ScrapeError | { body: string; redirects: string[] }

/** A robots.txt whose answers are given in order, the last one repeatedly, and a clock that is set manually. */
function given(...answers: Answer[]) {
  const time = { nowMs: 1_700_000_000_000 }
  const asked: string[] = []
  const delays: unknown[] = []
  const pauses: unknown[] = []
  const robots = createRobots({
    userAgent: 'MyBot/1.0 (+https://example.org)',
    now: () => time.nowMs,
    rateLimit: {
      setDelay: (host, delayMs) => void delays.push([host, delayMs]),
      pause: (host, untilMs, reason) => void pauses.push([host, untilMs - time.nowMs, reason]),
    },
    retryAfterMsMax: HOUR_MS,
    async fetchRobots(url) {
      asked.push(url)
      await null
      const answer = answers.length > 1 ? answers.shift()! : answers[0]!
      if (answer instanceof ScrapeError) throw answer
      if (typeof answer === 'string' || Buffer.isBuffer(answer)) return { body: Buffer.from(answer), redirects: [] }
      return { body: Buffer.from(answer.body), redirects: answer.redirects }
    },
  })
  const check = async (url: string, signal = never) => robots.check(url, signal)
  return { robots, check, time, asked, delays, pauses }
}

const failure = (code: ErrorCode, details: ErrorDetails = {}) => new ScrapeError(code, 'it failed', details)
const codeOf = (check: Promise<void>) =>
  check.then(
    () => 'allowed',
    (error: ScrapeError) => error.code,
  )

const DISALLOW = 'User-agent: *\nDisallow: /'

const answers: [title: string, answer: Answer, expected: string][] = [
  ['obeys the rules it reads', DISALLOW, 'E_ROBOTS'],
  ['allows everything when the file is empty', '', 'allowed'],
  ['allows everything when there is no file (404)', failure('E_NOT_FOUND', { status: 404 }), 'allowed'],
  ['allows everything when the file is forbidden (403)', failure('E_FORBIDDEN', { status: 403 }), 'allowed'],
  ['allows everything when the file wants a login (401)', failure('E_UNAUTHORIZED', { status: 401 }), 'allowed'],
  ['allows everything when redirects go in circles', failure('E_REDIRECT_LIMIT'), 'allowed'],
  [
    'allows everything after more than five redirects',
    { body: DISALLOW, redirects: ['', '', '', '', '', ''] },
    'allowed',
  ],
  ['obeys rules five redirects away', { body: DISALLOW, redirects: ['', '', '', '', ''] }, 'E_ROBOTS'],
  ['allows nothing when the server fails (500)', failure('E_SERVER', { status: 500 }), 'E_ROBOTS_UNREACHABLE'],
  [
    'allows nothing when the server throttles (429)',
    failure('E_RATE_LIMITED', { status: 429 }),
    'E_ROBOTS_UNREACHABLE',
  ],
  ['allows nothing when nobody answers', failure('E_TIMEOUT_HEADERS'), 'E_ROBOTS_UNREACHABLE'],
  ['allows nothing when the file is cut', failure('E_BODY_SHORT', { status: 200 }), 'E_ROBOTS_UNREACHABLE'],
  ['names a bad certificate for what it is', failure('E_TLS'), 'E_TLS'],
  ['names an unknown host for what it is', failure('E_DNS'), 'E_DNS'],
  [
    'waits, and forgets nothing, while the host is paused',
    failure('E_RATE_LIMITED', { retryAfterMs: 9 }),
    'E_RATE_LIMITED',
  ],
]

for (const [title, answer, expected] of answers) {
  test(title, async () => {
    assert.equal(await codeOf(given(answer).check('https://a.example/x')), expected)
  })
}

test('requests the file once per origin while many wait, and again after 24 hours', async () => {
  const { check, time, asked } = given('User-agent: *\nDisallow: /x', '')
  const checks = ['/a', '/b', '/x', '/c'].map((path) => codeOf(check(`https://a.example${path}`)))
  assert.deepEqual(await Promise.all(checks), ['allowed', 'allowed', 'E_ROBOTS', 'allowed'])
  await check('https://a.example:8443/a')
  await check('http://a.example/a')
  assert.deepEqual(
    asked,
    ['https://a.example', 'https://a.example:8443', 'http://a.example'].map((o) => `${o}/robots.txt`),
  )
  time.nowMs += 23 * HOUR_MS
  assert.equal(await codeOf(check('https://a.example/x')), 'E_ROBOTS')
  time.nowMs += 2 * HOUR_MS
  assert.equal(await codeOf(check('https://a.example/x')), 'allowed')
  assert.equal(asked.length, 4)
})

test('requests the file of a failing server again after a while, and says when', async () => {
  const broken = failure('E_SERVER', { status: 503 })
  const { check, time, asked } = given(broken, broken, '')
  const url = 'https://a.example/x'
  const waits: (number | undefined)[] = []
  for (let i = 0; i < 4; i++) {
    const error: ScrapeError = await check(url).then(
      () => assert.fail(),
      (e) => e,
    )
    waits.push(error.details.retryAfterMs)
    if (i % 2 === 1) time.nowMs += error.details.retryAfterMs!
  }
  assert.deepEqual(waits, [2000, 2000, 4000, 4000])
  assert.equal(asked.length, 2)
  assert.equal(await codeOf(check(url)), 'allowed')
})

test('makes the page that requested a failing file wait, and pauses the host for the others', async () => {
  const { check, pauses, asked, time } = given(failure('E_SERVER', { status: 503, retryAfterMs: 600_000 }), '')
  const checks = ['/1', '/2', '/3'].map((path) => codeOf(check(`https://a.example${path}`)))
  assert.deepEqual(await Promise.all(checks), ['E_ROBOTS_UNREACHABLE', 'E_RATE_LIMITED', 'E_RATE_LIMITED'])
  assert.equal(await codeOf(check('https://a.example/4')), 'E_RATE_LIMITED')
  assert.deepEqual([asked.length, pauses], [1, [['a.example', 600_000, 'robots.txt: E_SERVER']]])
  time.nowMs += 600_000
  assert.equal(await codeOf(check('https://a.example/4')), 'allowed')
})

test('costs no page an attempt while the file fails, and one page if the host cannot be reached', async () => {
  const verdicts = async (cause: ScrapeError) => {
    const { check } = given(cause)
    const checks = ['/1', '/2'].map((path) => check(`https://a.example${path}`))
    const failed = (await Promise.allSettled(checks)) as PromiseRejectedResult[]
    return failed.map(({ reason: { verdict, details } }) => [verdict, details.retryAfterMs, details.status])
  }
  // Without a status: the page was not requested, so no Retry-After is too long for it.
  const waits = ['later', 2000, undefined]
  assert.deepEqual(await verdicts(failure('E_SERVER', { status: 503 })), [waits, waits])
  assert.deepEqual(await verdicts(failure('E_TIMEOUT_HEADERS')), [waits, waits])
  assert.deepEqual(await verdicts(failure('E_CONNECTION')), [['retry', 2000, undefined], waits])
})

test('fails every page at once for errors that waiting cannot fix', async () => {
  const { check, pauses } = given(failure('E_PRIVATE_ADDRESS'))
  const checks = ['/1', '/2'].map((path) => codeOf(check(`https://a.example${path}`)))
  assert.deepEqual(await Promise.all(checks), ['E_PRIVATE_ADDRESS', 'E_PRIVATE_ADDRESS'])
  assert.equal(await codeOf(check('https://a.example/3')), 'E_PRIVATE_ADDRESS')
  assert.deepEqual(pauses, [])
})

test('makes pages wait, and blames no host, while no proxy works', async () => {
  const { check, pauses, asked } = given(failure('E_PROXIES_DOWN', { retryAfterMs: 5000 }), '')
  const checks = ['/1', '/2'].map((path) => codeOf(check(`https://a.example${path}`)))
  assert.deepEqual(await Promise.all(checks), ['E_PROXIES_DOWN', 'E_PROXIES_DOWN'])
  assert.deepEqual([asked.length, pauses], [1, []])
  assert.equal(await codeOf(check('https://a.example/1')), 'allowed')
})

test('keeps the rules it has while the server fails', async () => {
  const { check, time } = given('User-agent: *\nDisallow: /x', failure('E_CONNECTION'))
  await check('https://a.example/a')
  time.nowMs += 25 * HOUR_MS
  assert.equal(await codeOf(check('https://a.example/x')), 'E_ROBOTS')
  assert.equal(await codeOf(check('https://a.example/a')), 'allowed')
})

test('always allows robots.txt itself', async () => {
  const { check, asked } = given(DISALLOW)
  await check('https://a.example/robots.txt')
  assert.deepEqual(asked, [])
})

test('reads 512 KiB of a longer file and no half line', async () => {
  const head = 'User-agent: *\nDisallow: /first\n'
  const line = `Disallow: /${'x'.repeat(100)}\n`
  const text = `${head}${line.repeat(Math.ceil((600 * 1024) / line.length))}Disallow: /last`
  const { check } = given(text)
  assert.equal(await codeOf(check('https://a.example/first')), 'E_ROBOTS')
  assert.equal(await codeOf(check('https://a.example/last')), 'allowed')
  assert.equal(await codeOf(check('https://a.example/xx')), 'allowed', 'a rule cut in half is no rule')
})

test('hands the crawl-delay to the rate limit', async () => {
  const { check, delays } = given('User-agent: *\nCrawl-delay: 3\n')
  await check('https://a.example:8443/x')
  assert.deepEqual(delays, [['a.example:8443', 3000]])
})

test('explains what it decided and why', async () => {
  const { robots } = given('Sitemap: https://a.example/s.xml\nUser-agent: MyBot\nCrawl-delay: 1\nDisallow: /x # mine')
  assert.deepEqual(await robots.explain('https://a.example/x/y?z', never), {
    robotsUrl: 'https://a.example/robots.txt',
    isAllowed: false,
    productToken: 'mybot',
    group: 'mybot',
    rule: { isAllowed: false, line: 4, text: 'Disallow: /x # mine', length: 2 },
    crawlDelayMs: 1000,
    sitemaps: ['https://a.example/s.xml'],
  })
  assert.equal((await robots.explain('https://a.example/other', never)).isAllowed, true)
})

test('lets one page leave while others still wait for the same file', async () => {
  const { check, asked } = given('')
  const stop = new AbortController()
  const leaving = check('https://a.example/a', stop.signal)
  const staying = check('https://a.example/b')
  stop.abort(new Error('enough'))
  await assert.rejects(leaving, /enough/)
  await staying
  await assert.rejects(check('https://b.example/', stop.signal), /enough/)
  assert.equal(asked.length, 1)
})
