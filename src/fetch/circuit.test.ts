import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorCode } from '../core/error-table.ts'
import { type ErrorDetails, ScrapeError } from '../core/errors.ts'
import type { EventOf } from '../core/events.ts'
import { decide } from '../crawl/retry.ts'
import { type CircuitOptions, createCircuit } from './circuit.ts'
import { outcomeOfError, type RequestOutcome } from './circuit-outcome.ts'
import { createRateLimit } from './rate-limit.ts'

function given(more: CircuitOptions = {}) {
  const time = { nowMs: 1_000_000 }
  const now = () => time.nowMs
  const events: EventOf<'circuit'>[] = []
  const pauses: { host: string; ms: number }[] = []
  const circuit = createCircuit({
    now,
    monotonicNow: now,
    random: () => 0,
    coolDownMs: 10_000,
    patienceMs: 180_000,
    rateLimit: { pause: (host, untilMs) => void pauses.push({ host, ms: untilMs - time.nowMs }) },
    events: { emit: (event) => void events.push(event as EventOf<'circuit'>) },
    ...more,
  })
  const request = (error?: ScrapeError, host = 'a') => circuit.enter(host).end(error)
  const fail = (times: number, host = 'a') => {
    for (let i = 0; i < times; i++) request(failure(), host)
  }
  const states = () => events.map(({ state }) => state)
  return { circuit, time, events, pauses, request, fail, states }
}

const failure = (code: ErrorCode = 'E_SERVER', details: ErrorDetails = { status: 500 }) =>
  new ScrapeError(code, 'x', details)

/** What stands in the way of a request, if anything does. */
function refusal(act: () => unknown): ScrapeError | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    assert.ok(error instanceof ScrapeError)
    assert.equal(error.code, 'E_CIRCUIT_OPEN')
    return error
  }
}

test('opens after ten failures that are most of what was asked', () => {
  const { circuit, fail, states, pauses } = given()
  fail(9)
  circuit.check('a')
  fail(1)
  assert.equal(refusal(() => circuit.check('a'))?.details.retryAfterMs, 10_000)
  assert.ok(refusal(() => circuit.enter('a')))
  assert.deepEqual(states(), ['open'])
  assert.deepEqual(pauses[0], { host: 'a', ms: 10_000 })
})

test('stays closed while one in four is answered', () => {
  const { fail, request, states } = given()
  for (let i = 0; i < 40; i++) {
    request()
    fail(3)
  }
  assert.deepEqual(states(), [])
})

test('opens after ten failures in a row, however well it was before', () => {
  const { request, fail, states, events } = given()
  for (let i = 0; i < 200; i++) request()
  fail(9)
  assert.deepEqual(states(), [])
  fail(1)
  assert.deepEqual(states(), ['open'])
  assert.equal(events[0]?.reason, '10 of 20 requests failed, the last with E_SERVER (status 500)')
})

test('opens when four in five of the last twenty failed, however well it was before', () => {
  const { request, fail, states } = given()
  for (let i = 0; i < 200; i++) request()
  for (let i = 0; i < 3; i++) {
    fail(4)
    request()
  }
  fail(3)
  assert.deepEqual(states(), [])
  fail(1)
  assert.deepEqual(states(), ['open'])
})

test('ends its pages with the code of the block when it has waited for too long', () => {
  const { circuit, time, request } = given({ patienceMs: 1000 })
  for (let i = 0; i < 10; i++) request(failure('E_CAPTCHA', { status: 200 }))
  assert.equal(refusal(() => circuit.check('a'))?.details.retryAfterMs, 1000)
  time.nowMs += 1000
  assert.throws(() => circuit.check('a'), { code: 'E_CAPTCHA', details: {} })
})

test('forgets what is older than the window', () => {
  const { time, fail, states } = given()
  for (let i = 0; i < 50; i++) {
    fail(1)
    time.nowMs += 10_000
  }
  assert.deepEqual(states(), [])
})

test('leaves the other hosts alone', () => {
  const { circuit, fail } = given()
  fail(10)
  circuit.check('b')
  circuit.enter('b').end()
})

test('lets exactly one probe through, and all others when it is answered', () => {
  const { circuit, time, fail, states } = given()
  fail(10)
  time.nowMs += 10_000
  circuit.check('a')
  const probe = circuit.enter('a')
  for (let i = 0; i < 5; i++) assert.equal(refusal(() => circuit.enter('a'))?.details.retryAfterMs, 6000)
  assert.ok(refusal(() => circuit.check('a')))
  probe.end()
  circuit.check('a')
  circuit.enter('a').end()
  assert.deepEqual(states(), ['open', 'half-open', 'closed'])
})

test('waits twice as long after every probe that failed, up to a limit', () => {
  const { circuit, time, fail, events } = given({ coolDownMsMax: 50_000, patienceMs: 1e9 })
  fail(10)
  for (let i = 0; i < 4; i++) {
    time.nowMs = events.at(-1)!.untilMs!
    circuit.enter('a').end(failure())
  }
  const waits = events.filter(({ state }) => state === 'open').map(({ untilMs }) => untilMs! - 1_000_000)
  const gaps = waits.map((until, i) => until - (waits[i - 1] ?? 0))
  assert.deepEqual(gaps, [10_000, 20_000, 40_000, 50_000, 50_000])
})

test('waits longer by chance, never shorter', () => {
  const { fail, pauses } = given({ random: () => 1 })
  fail(10)
  assert.equal(pauses[0]?.ms, 12_500)
})

test('goes on doubling for a host that fails again right after its probe, and starts anew after a calm time', () => {
  const { circuit, time, fail, pauses } = given()
  const probe = () => {
    time.nowMs += 20_000
    circuit.enter('a').end()
  }
  fail(10)
  probe()
  fail(10)
  assert.equal(pauses.at(-1)?.ms, 20_000)
  probe()
  time.nowMs += 60_000
  fail(10)
  assert.equal(pauses.at(-1)?.ms, 10_000)
})

test('sends another probe when one is lost', () => {
  const { circuit, time, fail, states } = given({ probeMs: 30_000 })
  fail(10)
  time.nowMs += 10_000
  const lost = circuit.enter('a')
  time.nowMs += 29_999
  assert.ok(refusal(() => circuit.enter('a')))
  time.nowMs += 1
  const second = circuit.enter('a')
  lost.end() // too late to say anything
  assert.ok(refusal(() => circuit.enter('a')))
  second.end()
  assert.deepEqual(states(), ['open', 'half-open', 'half-open', 'closed'])
})

test('sends another probe when one was not sent, after a moment', () => {
  const { circuit, time, fail } = given()
  fail(10)
  time.nowMs += 10_000
  circuit.enter('a').end(new ScrapeError('E_STOPPED', 'x'))
  assert.ok(refusal(() => circuit.enter('a')))
  time.nowMs += 6000
  circuit.enter('a')
})

test('does not count what was under way when it opened, nor one end twice', () => {
  const { circuit, fail, states, time } = given()
  const early = Array.from({ length: 20 }, () => circuit.enter('a'))
  fail(10)
  for (const pass of early) pass.end(failure())
  time.nowMs += 10_000
  for (const pass of early) pass.end()
  assert.deepEqual(states(), ['open'])
  const probe = circuit.enter('a')
  probe.end()
  for (let i = 0; i < 20; i++) probe.end(failure())
  assert.deepEqual(states(), ['open', 'half-open', 'closed'])
})

const outcomes: [RequestOutcome, ErrorCode, ErrorDetails?][] = [
  ['failed', 'E_CONNECTION'],
  ['failed', 'E_TIMEOUT_TOTAL'],
  ['failed', 'E_DNS'],
  ['failed', 'E_SERVER', { status: 503 }],
  ['failed', 'E_STATUS', { status: 408 }],
  ['failed', 'E_STATUS', { status: 425 }],
  ['failed', 'E_FORBIDDEN', { status: 403 }],
  ['failed', 'E_BLOCKED', { status: 200 }],
  ['failed', 'E_CAPTCHA', { status: 429 }],
  ['answered', 'E_NOT_FOUND', { status: 404 }],
  ['answered', 'E_STATUS', { status: 400 }],
  ['answered', 'E_UNAUTHORIZED', { status: 401 }],
  ['throttled', 'E_RATE_LIMITED', { status: 429 }],
  ['unsent', 'E_RATE_LIMITED'],
  ['unsent', 'E_ROBOTS'],
  ['unsent', 'E_ROBOTS_UNREACHABLE', { status: 500 }],
  ['unsent', 'E_STOPPED'],
  ['unsent', 'E_PROXY'],
  ['unsent', 'E_CIRCUIT_OPEN'],
  ['unsent', 'E_PRIVATE_ADDRESS'],
]
for (const [outcome, code, details] of outcomes) {
  test(`takes ${code} ${details?.status ?? ''} for ${outcome}`, () => {
    assert.equal(outcomeOfError(new ScrapeError(code, 'x', details)), outcome)
  })
}

test('counts a request to slow down neither way, and takes it for a sign of life of a probe', () => {
  const { circuit, time, request, fail, states } = given()
  const slow = failure('E_RATE_LIMITED', { status: 429 })
  for (let i = 0; i < 50; i++) request(slow)
  assert.deepEqual(states(), [])
  fail(10)
  time.nowMs += 10_000
  circuit.enter('a').end(slow)
  assert.deepEqual(states(), ['open', 'half-open', 'closed'])
})

test('costs a page no try while the host may be waited for, and then ends it', () => {
  const { circuit, time, fail, events, pauses } = given({ patienceMs: 60_000 })
  const limits = { retries: 3, backoff: 1000, backoffMax: 60_000, retryAfterMax: 3_600_000 }
  fail(10)
  const openedMs = time.nowMs
  for (;;) {
    const { retryAfterMs } = refusal(() => circuit.check('a'))!.details
    if (retryAfterMs === undefined) break
    const error = new ScrapeError('E_CIRCUIT_OPEN', 'x', { retryAfterMs })
    assert.equal(decide(error, { attempt: 4 }, limits, time.nowMs).kind, 'postpone')
    time.nowMs += retryAfterMs
    if (refusal(() => circuit.check('a')) === undefined) circuit.enter('a').end(failure())
  }
  assert.equal(time.nowMs - openedMs, 60_000, 'no longer, however long the cool-down has become')
  const { length } = pauses
  const error = refusal(() => circuit.check('a'))!
  assert.equal(decide(error, { attempt: 1 }, limits, time.nowMs).kind, 'retry')
  assert.equal(decide(error, { attempt: 4 }, limits, time.nowMs).kind, 'dead')
  assert.equal(pauses.length, length, 'a host that is given up holds nobody back')
  time.nowMs = events.at(-1)!.untilMs!
  circuit.enter('a').end()
  circuit.check('a')
})

test('holds the host back in the rate limit: nothing is claimed for it, waiters are sent away, a probe goes when it is due', async () => {
  const time = { nowMs: 1_000_000 }
  const now = () => time.nowMs
  const perHost = { concurrency: 1, rps: 0, delayMs: 0 }
  using rateLimit = createRateLimit({
    perHost,
    concurrency: 10,
    crawlDelayMsMax: 0,
    now,
    monotonicNow: now,
    setTimer: () => () => {},
  })
  const circuit = createCircuit({ rateLimit, coolDownMs: 10_000, now, monotonicNow: now, random: () => 0.5 })
  const { signal } = new AbortController()
  const slot = await rateLimit.acquire('a', signal)
  const waiting = rateLimit.acquire('a', signal)
  for (let i = 0; i < 10; i++) circuit.enter('a').end(failure('E_CONNECTION', {}))
  await assert.rejects(waiting, { code: 'E_RATE_LIMITED' })
  slot[Symbol.dispose]()
  assert.deepEqual(rateLimit.busyHosts(), ['a'])
  assert.equal(rateLimit.waitMs('a'), 11_250)
  time.nowMs += 11_250
  assert.equal(rateLimit.waitMs('a'), 0)
  {
    using _ = await rateLimit.acquire('a', signal)
    const probe = circuit.enter('a')
    assert.ok(rateLimit.waitMs('a') > 5000, 'while it is out, nobody else is claimed')
    probe.end()
  }
  circuit.check('a')
})

test('shows what is not well', () => {
  const { circuit, time, fail, request } = given()
  fail(10)
  fail(3, 'b')
  request(undefined, 'b')
  request(undefined, 'c')
  const byHost = circuit.states().sort((one, other) => one.host.localeCompare(other.host))
  assert.deepEqual(byHost, [
    {
      host: 'a',
      state: 'open',
      reason: '10 of 10 requests failed, the last with E_SERVER (status 500)',
      requests: 0,
      failed: 0,
      untilMs: time.nowMs + 10_000,
    },
    { host: 'b', state: 'closed', reason: '', requests: 4, failed: 3 },
  ])
})

test('remembers ten thousand hosts, and says when it forgets an open one', () => {
  const { circuit, fail, events, request } = given()
  fail(10)
  for (let i = 0; i < 10_000; i++) request(undefined, `h${i}`)
  assert.deepEqual(events.at(-1), { type: 'circuit', host: 'a', state: 'closed', reason: 'forgotten: too many hosts' })
  circuit.check('a')
})
