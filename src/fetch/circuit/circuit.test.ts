import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorCode } from '../../core/error-table.ts'
import { type ErrorDetails, ScrapeError } from '../../core/errors.ts'
import type { EventOf } from '../../core/events.ts'
import { decide } from '../../crawl/retry.ts'
import { createRateLimit } from '../rate/rate-limit.ts'
import { type CircuitOptions, type CircuitPage, createCircuit } from './circuit.ts'
import { outcomeOfError, type RequestOutcome } from './outcome.ts'

let pages = 0
/** A page that was never requested. */
const fresh = (host = 'a'): CircuitPage => ({ host, id: `p${++pages}`, isRetry: false })

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
    rateLimit: { pause: (host, untilMs) => void pauses.push({ host, ms: untilMs - time.nowMs }) },
    events: { emit: (event) => void events.push(event as EventOf<'circuit'>) },
    ...more,
  })
  const request = (error?: ScrapeError, host = 'a') => circuit.enter(fresh(host)).end(error)
  const fail = (times: number, host = 'a') => {
    for (let i = 0; i < times; i++) request(failure(), host)
  }
  const states = () => events.map(({ state }) => state)
  return { circuit, time, events, pauses, request, fail, states }
}

const failure = (code: ErrorCode = 'E_SERVER', details: ErrorDetails = { status: 500 }) =>
  new ScrapeError(code, 'x', details)

/** The error that refuses a request, if there is one. */
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

test('opens after ten failures that are most of the requests', () => {
  const { circuit, fail, states, pauses } = given()
  fail(9)
  circuit.check(fresh())
  fail(1)
  assert.equal(refusal(() => circuit.check(fresh()))?.details.retryAfterMs, 10_000)
  assert.ok(refusal(() => circuit.enter(fresh())))
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

test('opens after ten failures in a row, however healthy it was before', () => {
  const { request, fail, states, events } = given()
  for (let i = 0; i < 200; i++) request()
  fail(9)
  assert.deepEqual(states(), [])
  fail(1)
  assert.deepEqual(states(), ['open'])
  assert.equal(events[0]?.reason, '10 of 20 pages failed, the last with E_SERVER (status 500)')
})

test('opens when four in five of the last twenty failed, however healthy it was before', () => {
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

test('counts a page that fails again and again once', () => {
  const { circuit, states } = given()
  for (let i = 0; i < 50; i++) circuit.enter({ host: 'a', id: 'same', isRetry: false }).end(failure())
  for (let i = 0; i < 50; i++) circuit.enter({ host: 'a', id: `retried elsewhere ${i}`, isRetry: true }).end(failure())
  assert.deepEqual(states(), [])
})

test('probes with pages that have not failed, and with failed ones if there are no others', () => {
  const { circuit, time, states } = given()
  const failed = Array.from({ length: 10 }, () => fresh())
  for (const page of failed) circuit.enter(page).end(failure())
  time.nowMs += 10_000
  for (const page of failed) assert.equal(refusal(() => circuit.check(page))?.details.retryAfterMs, 10_000)
  assert.ok(
    refusal(() => circuit.check({ ...fresh(), isRetry: true })),
    'it failed in another worker',
  )
  circuit.check(fresh())
  time.nowMs += 10_000
  circuit.enter(failed[3]!).end()
  assert.deepEqual(states(), ['open', 'half-open', 'closed'])
})

test('probes with twice as many pages after each failed round, up to eight, at an even pace', () => {
  const { circuit, time, fail, events } = given()
  fail(10)
  const rounds: number[] = []
  const waits: number[] = []
  for (let round = 0; round < 6; round++) {
    const { untilMs } = events.at(-1)!
    waits.push(untilMs! - time.nowMs)
    time.nowMs = untilMs!
    let probes = 0
    for (; refusal(() => circuit.check(fresh())) === undefined; probes++) circuit.enter(fresh()).end(failure())
    rounds.push(probes)
  }
  assert.deepEqual(rounds, [1, 2, 4, 8, 8, 8])
  assert.deepEqual(new Set(waits), new Set([10_000]))
})

test('probes an unreachable host with one page at a time, and doubles the pause each time', () => {
  const { circuit, time, events } = given({ coolDownMsMax: 50_000 })
  const refused = failure('E_CONNECTION', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) })
  for (let i = 0; i < 10; i++) circuit.enter(fresh()).end(refused)
  const waits: number[] = []
  for (let round = 0; round < 5; round++) {
    const { untilMs } = events.at(-1)!
    waits.push(untilMs! - time.nowMs)
    time.nowMs = untilMs!
    circuit.enter(fresh()).end(refused)
    assert.ok(refusal(() => circuit.check(fresh())))
  }
  assert.deepEqual(waits, [10_000, 20_000, 40_000, 50_000, 50_000])
})

test('closes when one of several probes is answered, and then takes twice the failures to open again', () => {
  const { circuit, time, fail, states } = given()
  fail(10)
  time.nowMs += 10_000
  fail(1)
  time.nowMs += 10_000
  const probes = [circuit.enter(fresh()), circuit.enter(fresh())]
  probes[0]!.end(failure())
  probes[1]!.end()
  assert.equal(states().at(-1), 'closed')
  fail(19)
  assert.equal(states().at(-1), 'closed')
  fail(1)
  assert.equal(states().at(-1), 'open')
})

test('never costs a page an attempt, however long the host fails', () => {
  const { circuit, time, fail } = given()
  const limits = { retries: 0, backoff: 1000, backoffMax: 60_000, retryAfterMax: 0 }
  fail(10)
  for (let i = 0; i < 200; i++) {
    const error = refusal(() => circuit.enter(fresh()).end(failure()))
    if (error === undefined) continue
    assert.equal(decide(error, { attempt: 99 }, limits, time.nowMs).kind, 'postpone')
    time.nowMs += error.details.retryAfterMs!
  }
  assert.ok(time.nowMs > 1_000_000 + 600_000)
})

test('never opens for a host where it is off', () => {
  const { fail, states } = given({ openAfterOf: (host) => (host === 'a' ? 'off' : 3) })
  fail(500)
  assert.deepEqual(states(), [])
  fail(3, 'b')
  assert.deepEqual(states(), ['open'])
})

test('forgets requests older than the window', () => {
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
  circuit.check(fresh('b'))
  circuit.enter(fresh('b')).end()
})

test('lets exactly one probe through, and all others when it is answered', () => {
  const { circuit, time, fail, states } = given()
  fail(10)
  time.nowMs += 10_000
  circuit.check(fresh())
  const probe = circuit.enter(fresh())
  for (let i = 0; i < 5; i++) assert.equal(refusal(() => circuit.enter(fresh()))?.details.retryAfterMs, 2000)
  assert.ok(refusal(() => circuit.check(fresh())))
  probe.end()
  circuit.check(fresh())
  circuit.enter(fresh()).end()
  assert.deepEqual(states(), ['open', 'half-open', 'closed'])
})

test('random jitter only lengthens the wait', () => {
  const { fail, pauses } = given({ random: () => 1 })
  fail(10)
  assert.equal(pauses[0]?.ms, 12_500)
})

test('sends another probe when one is lost', () => {
  const { circuit, time, fail, states } = given({ probeMs: 30_000 })
  fail(10)
  time.nowMs += 10_000
  const lost = circuit.enter(fresh())
  time.nowMs += 29_999
  assert.ok(refusal(() => circuit.enter(fresh())))
  time.nowMs += 1
  const second = circuit.enter(fresh())
  lost.end() // too late to count
  assert.ok(refusal(() => circuit.enter(fresh())))
  second.end()
  assert.deepEqual(states(), ['open', 'half-open', 'half-open', 'closed'])
})

test('sends another probe when one was not sent', () => {
  const { circuit, time, fail } = given()
  fail(10)
  time.nowMs += 10_000
  circuit.enter(fresh()).end(new ScrapeError('E_STOPPED', 'x'))
  circuit.enter(fresh())
  assert.ok(refusal(() => circuit.enter(fresh())))
})

test('does not count requests that were in flight when it opened, nor the same end twice', () => {
  const { circuit, fail, states, time } = given()
  const early = Array.from({ length: 20 }, () => circuit.enter(fresh()))
  fail(10)
  for (const pass of early) pass.end(failure())
  time.nowMs += 10_000
  for (const pass of early) pass.end()
  assert.deepEqual(states(), ['open'])
  const probe = circuit.enter(fresh())
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

test('counts a request to slow down neither way, and treats it as a successful probe', () => {
  const { circuit, time, request, fail, states } = given()
  const slow = failure('E_RATE_LIMITED', { status: 429 })
  for (let i = 0; i < 50; i++) request(slow)
  assert.deepEqual(states(), [])
  fail(10)
  time.nowMs += 10_000
  circuit.enter(fresh()).end(slow)
  assert.deepEqual(states(), ['open', 'half-open', 'closed'])
})

test('holds the host back in the rate limit: nothing is claimed for it, waiters are rejected, a probe is sent when it is due', async () => {
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
  for (let i = 0; i < 10; i++) circuit.enter(fresh()).end(failure('E_CONNECTION', {}))
  await assert.rejects(waiting, { code: 'E_RATE_LIMITED' })
  slot[Symbol.dispose]()
  assert.deepEqual(rateLimit.busyHosts(), ['a'])
  assert.equal(rateLimit.waitMs('a'), 11_250)
  time.nowMs += 11_250
  assert.equal(rateLimit.waitMs('a'), 0)
  {
    using _ = await rateLimit.acquire('a', signal)
    const probe = circuit.enter(fresh())
    assert.ok(rateLimit.waitMs('a') > 1000, 'while it is out, no other page starts')
    probe.end()
  }
  circuit.check(fresh())
})

test('lists hosts that are not healthy', () => {
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
      reason: '10 of 10 pages failed, the last with E_SERVER (status 500)',
      requests: 0,
      failed: 0,
      untilMs: time.nowMs + 10_000,
    },
    { host: 'b', state: 'closed', reason: '', requests: 4, failed: 3 },
  ])
})

test('remembers ten thousand hosts, and reports when it forgets an open one', () => {
  const { circuit, fail, events, request } = given()
  fail(10)
  for (let i = 0; i < 10_000; i++) request(undefined, `h${i}`)
  assert.deepEqual(events.at(-1), { type: 'circuit', host: 'a', state: 'closed', reason: 'forgotten: too many hosts' })
  circuit.check(fresh())
})
