import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ERRORS, type ErrorCode } from '../core/error-table.ts'
import { type ErrorDetails, ScrapeError } from '../core/errors.ts'
import { limitsSchema } from '../core/options.ts'
import type { Page } from '../core/page.ts'
import type { Lease } from '../frontier/contract.ts'
import type { PageReading } from './read-page.ts'
import { settleDone, settleFailure, settleHandedBack } from './settle.ts'

const NOW_MS = 1_700_000_000_000
const URL_TEXT = 'https://a.test:8080/x'
const times = { queueMs: 1, fetchMs: 2, parseMs: 3 }

function leaseOf(attempt = 1): Lease {
  const task = {
    id: '1',
    url: URL_TEXT,
    route: 'page',
    data: null,
    depth: 0,
    priority: 0,
    lane: 'bulk',
    session: undefined,
  }
  return { task, token: 't', attempt, losses: 0 }
}

const page: Page = {
  requestedUrl: URL_TEXT,
  url: URL_TEXT,
  redirects: [],
  status: 203,
  headers: {},
  body: Buffer.from('x'.repeat(50)),
  contentType: 'text/html',
  charset: 'UTF-8',
  text: 'x'.repeat(50),
  bytes: { wire: 20, decoded: 50 },
  timings: { firstByteMs: 1, totalMs: 2 },
  fromCache: true,
  fetchedAtMs: NOW_MS,
  release() {},
}

function fail(
  code: ErrorCode,
  {
    attempt = 1,
    snapshot,
    isStart = true,
    skipsFiles = false,
    ...details
  }: ErrorDetails & { attempt?: number; snapshot?: string; isStart?: boolean; skipsFiles?: boolean } = {},
) {
  let snapshots = 0
  const lease = leaseOf(attempt)
  const error = new ScrapeError(code, 'it broke', details)
  const settled = settleFailure(lease, error, {
    limits: limitsSchema.parse({ retries: 2, backoff: 1000 }),
    nowMs: NOW_MS,
    random: () => 0.5,
    times,
    isStart,
    skipsFiles,
    keepSnapshot: () => {
      snapshots++
      return snapshot
    },
  })
  return { settled, lease, error, snapshots: () => snapshots }
}

describe('settleDone', () => {
  const reading: PageReading = {
    items: [
      { key: 'a', json: '{}' },
      { key: 'b', json: '{}' },
    ],
    tasks: [{ url: 'https://a.test/y', route: 'page', depth: 1 }],
    invalid: [],
    filled: { title: 2 },
    notFetched: { depth: 4, links: 1 },
    skipped: undefined,
  }

  it('passes the reading to the frontier under its lease', () => {
    const lease = leaseOf()
    const { outcome, filled } = settleDone(lease, page, reading, times)
    const counts = { 'notFetched.depth': 4, 'notFetched.links': 1 }
    assert.deepEqual(outcome, { kind: 'done', lease, tasks: reading.tasks, items: reading.items, counts })
    assert.equal(outcome.lease, lease)
    assert.deepEqual(filled, { title: 2 })
  })

  it('tells observers what the page was and what it cost', () => {
    assert.deepEqual(settleDone(leaseOf(2), page, reading, times).event, {
      type: 'page',
      outcome: 'ok',
      url: URL_TEXT,
      host: 'a.test:8080',
      route: 'page',
      attempt: 2,
      ...times,
      status: 203,
      bytes: 20,
      fromCache: true,
      items: 2,
      tasks: 1,
    })
  })
})

describe('settleFailure', () => {
  it('gives a task with attempts left another one after its backoff', () => {
    const { settled, lease, snapshots } = fail('E_SERVER', { status: 503 })
    const error = { code: 'E_SERVER', class: 'server-error', message: 'it broke', status: 503 }
    assert.deepEqual(settled.outcome, { kind: 'retry', lease, atMs: NOW_MS + 500, error })
    assert.equal(settled.event!.outcome, 'retried')
    assert.equal(settled.event!.retryAtMs, NOW_MS + 500)
    assert.equal(settled.event!.status, 503)
    assert.deepEqual(settled.event!.error, error)
    assert.equal(snapshots(), 0)
  })

  it('postpones a throttled task to the time the server asks for', () => {
    const { settled, lease, snapshots } = fail('E_RATE_LIMITED', { attempt: 9, retryAfterMs: 7000 })
    assert.deepEqual(settled.outcome, { kind: 'postpone', lease, atMs: NOW_MS + 7000, reason: 'it broke' })
    assert.equal(settled.event!.outcome, 'postponed')
    assert.equal(settled.event!.retryAtMs, NOW_MS + 7000)
    assert.equal(snapshots(), 0)
  })

  it('sends a task without attempts left to the dead letters, with its snapshot', () => {
    const { settled, lease, snapshots } = fail('E_SERVER', { attempt: 3, snapshot: 'snapshots/1.html' })
    const error = { code: 'E_SERVER', class: 'server-error', message: 'it broke' }
    assert.deepEqual(settled.outcome, { kind: 'dead', lease, error, snapshot: 'snapshots/1.html' })
    assert.equal(settled.event!.outcome, 'failed')
    assert.equal(settled.event!.snapshot, 'snapshots/1.html')
    assert.equal(snapshots(), 1)
  })

  it('omits the snapshot if nothing was kept', () => {
    const { settled } = fail('E_NOT_FOUND', { status: 404 })
    assert.equal('snapshot' in settled.outcome, false)
    assert.equal('snapshot' in settled.event!, false)
    assert.equal(settled.event!.status, 404)
  })

  it('hands the task back without an attempt if the error ends the run, and tells only the loop', () => {
    const { settled, lease, error } = fail('E_STOPPED')
    assert.deepEqual(settled.outcome, { kind: 'postpone', lease, atMs: 0, reason: 'it broke' })
    assert.equal(settled.event, undefined)
    assert.equal(settled.halt, error)
  })

  it('halts for no other verdict', () => {
    for (const [code, { verdict }] of Object.entries(ERRORS))
      assert.equal(fail(code as ErrorCode).settled.halt !== undefined, verdict === 'halt', code)
  })

  it('skips and counts pages that robots.txt forbids, unless it is a start page', () => {
    const { settled, lease, snapshots } = fail('E_ROBOTS', { isStart: false })
    assert.deepEqual(settled.outcome, { kind: 'done', lease, counts: { 'notFetched.robots': 1 } })
    assert.deepEqual([settled.event!.outcome, settled.event!.error!.code, snapshots()], ['skipped', 'E_ROBOTS', 0])
    assert.equal(fail('E_ROBOTS').settled.outcome.kind, 'dead')
    assert.equal(fail('E_ROBOTS_UNREACHABLE', { isStart: false }).settled.outcome.kind, 'retry')
  })

  it('skips and counts files if the route says so, unless it is a start page', () => {
    assert.equal(fail('E_CONTENT_TYPE', { isStart: false }).settled.outcome.kind, 'dead')
    assert.equal(fail('E_CONTENT_TYPE', { skipsFiles: true }).settled.outcome.kind, 'dead')
    const { outcome } = fail('E_CONTENT_TYPE', { isStart: false, skipsFiles: true }).settled
    assert.deepEqual([outcome.kind, outcome.counts], ['done', { 'notFetched.file': 1 }])
  })

  it('keeps messages within bounds', () => {
    const error = new ScrapeError('E_NOT_FOUND', 'x'.repeat(100_000))
    const context = {
      limits: limitsSchema.parse({}),
      nowMs: NOW_MS,
      random: () => 0,
      times,
      isStart: true,
      skipsFiles: false,
      keepSnapshot: () => undefined,
    }
    const { outcome } = settleFailure(leaseOf(), error, context)
    assert.equal(outcome.kind === 'dead' && outcome.error.message.length, 1000)
  })
})

describe('settleHandedBack', () => {
  it('costs no attempt, is due at once unless told otherwise, and emits no page event', () => {
    const lease = leaseOf()
    assert.deepEqual(settleHandedBack(lease, 'why'), {
      outcome: { kind: 'postpone', lease, atMs: 0, reason: 'why' },
    })
    assert.deepEqual(settleHandedBack(lease, 'why', 77).outcome, { kind: 'postpone', lease, atMs: 77, reason: 'why' })
  })
})
