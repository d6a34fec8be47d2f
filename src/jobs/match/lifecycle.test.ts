/** The life cycle of a posting. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RawPosting } from '../read/posting.ts'
import { toPosting } from '../read/to-posting.ts'
import { type LifecycleEvent, nextState, type Observation, type PostingState } from './lifecycle.ts'
import { judgeCycle, NEW_BOARD } from './listing-cycle.ts'

const day = (n: number) => new Date(Date.UTC(2026, 2, n))
const posting = (more: Partial<RawPosting> = {}) => {
  const raw = {
    source_job_id: '1',
    board_token: 'acme',
    title: 'Engineer',
    company: 'Acme',
    job_url: 'https://x.test/1',
    ...more,
  }
  return toPosting('greenhouse', raw, { now: day(1) })
}
const seen = (n: number, more: Partial<RawPosting> = {}, by: 'listing' | 'detail' = 'listing'): Observation => ({
  kind: 'seen',
  at: day(n),
  by,
  posting: posting(more),
})
const absent = (n: number, listing: 'api' | 'html' = 'api'): Observation => ({
  kind: 'absent',
  at: day(n),
  listing,
  cycle: 'conclusive',
})
const detail = (n: number, answer: number | 'closed' | 'timeout' | 'empty'): Observation => ({
  kind: 'detail',
  at: day(n),
  answer,
})

function live(...observations: Observation[]): { state: PostingState | null; events: LifecycleEvent[] } {
  let state: PostingState | null = null
  const events: LifecycleEvent[] = []
  for (const observation of observations) {
    const step = nextState(state, observation)
    state = step.state
    events.push(...step.events)
  }
  return { state, events }
}
const types = (...observations: Observation[]) => live(...observations).events.map(({ type }) => type)

test('is created once; further sightings cause no event', () => {
  assert.deepEqual(types(seen(1), seen(2), seen(3)), ['created'])
  const { state } = live(seen(1), seen(3))
  assert.deepEqual([state?.first_seen_at, state?.last_seen_at], [day(1).toISOString(), day(3).toISOString()])
})

test('is gone when missing from one API listing, or from three HTML listings', () => {
  assert.deepEqual(types(seen(1), absent(2)), ['created', 'gone'])
  assert.deepEqual(types(seen(1), absent(2, 'html'), absent(3, 'html')), ['created'])
  assert.deepEqual(types(seen(1), absent(2, 'html'), absent(3, 'html'), absent(4, 'html')), ['created', 'gone'])
  assert.deepEqual(types(seen(1), absent(2, 'html'), seen(3), absent(4, 'html'), absent(5, 'html')), ['created'])
})

test('an inconclusive listing changes nothing', () => {
  const nothing: Observation = { kind: 'absent', at: day(2), listing: 'api', cycle: 'inconclusive' }
  const before = live(seen(1))
  assert.deepEqual(live(seen(1), nothing, nothing), before)
})

test('its own page reports it gone at once, after three odd answers, and never because of outages', () => {
  for (const answer of [404, 410, 'closed'] as const)
    assert.deepEqual(types(seen(1), detail(2, answer)), ['created', 'gone'])
  assert.deepEqual(types(seen(1), detail(2, 400), detail(3, 422)), ['created'])
  assert.deepEqual(types(seen(1), detail(2, 400), detail(3, 422), detail(4, 400)), ['created', 'gone'])
  const trouble = [401, 403, 429, 408, 500, 503, 'timeout', 'empty'] as const
  assert.deepEqual(types(seen(1), ...trouble.flatMap((answer) => [2, 3, 4, 5].map((n) => detail(n, answer)))), [
    'created',
  ])
})

test('comes back as relisted, with its counters reset', () => {
  const { state, events } = live(seen(1), absent(2), seen(3))
  assert.deepEqual(
    events.map(({ type }) => type),
    ['created', 'gone', 'relisted'],
  )
  assert.deepEqual([state?.status, state?.missing_count, state?.gone_by], ['active', 0, null])
})

test('a lagging list does not bring back a posting whose own page is gone', () => {
  assert.deepEqual(types(seen(1), detail(2, 404), seen(3), seen(4)), ['created', 'gone'])
  assert.deepEqual(types(seen(1), detail(2, 404), seen(3, {}, 'detail')), ['created', 'gone', 'relisted'])
})

test('expires when its last day is over, and is relisted with a later one', () => {
  const clock = (n: number): Observation => ({ kind: 'clock', at: day(n) })
  const end = { valid_through: '2026-03-05' }
  assert.deepEqual(types(seen(1, end), clock(5), clock(6)), ['created'])
  assert.deepEqual(types(seen(1, end), clock(7), clock(8)), ['created', 'expired'])
  assert.deepEqual(types(seen(1, end), seen(7, end), seen(8, end)), ['created', 'expired'])
  assert.deepEqual(types(seen(1, end), clock(7), seen(8, { valid_through: '2026-04-01' })), [
    'created',
    'expired',
    'relisted',
  ])
  assert.deepEqual(types(seen(1), clock(300)), ['created'])
})

test('an update names its fields, and a pay change is a separate event', () => {
  const { events } = live(seen(1), seen(2, { title: 'Senior Engineer', salary: '$100,000 a year' }))
  const [, updated, pay] = events
  assert.ok(updated?.type === 'updated' && pay?.type === 'salary_changed')
  assert.deepEqual(updated.fields, ['title', 'salary'])
  assert.deepEqual([updated.before.title, updated.after.title], ['Engineer', 'Senior Engineer'])
  assert.deepEqual([pay.before, pay.after?.max], [null, 100_000])
  const text = live(seen(1, { description_text: 'a' }), seen(2, { description_text: 'b' })).events[1]
  assert.deepEqual(text?.type === 'updated' && text.fields, ['description_text'])
})

test('is reposted with a new id or a new date after more than 14 days', () => {
  const twin = (n: number): Observation => ({ ...seen(n), twinSeenAt: day(1) }) as Observation
  assert.deepEqual(types(twin(16)), ['created', 'reposted'])
  assert.deepEqual(types(twin(14)), ['created'])
  assert.deepEqual(types(seen(1, { date_posted: '2026-02-01' }), seen(2, { date_posted: '2026-03-01' })), [
    'created',
    'reposted',
  ])
  assert.deepEqual(types(seen(1, { date_posted: '2026-02-01' }), seen(2, { date_posted: 'today' })), ['created'])
})

test('joins a cluster once', () => {
  const inCluster = (n: number): Observation => ({ ...seen(n), cluster: 'c1' }) as Observation
  assert.deepEqual(types(seen(1), inCluster(2), inCluster(3), seen(4)), ['created', 'cluster_joined'])
})

test('duplicate or late observations change nothing', () => {
  const once = live(seen(1), absent(2, 'html'))
  assert.deepEqual(live(seen(1), absent(2, 'html'), absent(2, 'html'), seen(1)), once)
  assert.deepEqual(live(seen(5), absent(3), detail(4, 404)), live(seen(5)))
  assert.deepEqual(live(absent(1), detail(2, 404)), { state: null, events: [] })
})

test('only a complete, untruncated, uncapped listing is conclusive', () => {
  const whole = { isComplete: true, isTruncated: false, isCapped: false, items: 10 }
  assert.equal(judgeCycle(NEW_BOARD, whole).verdict, 'conclusive')
  for (const flaw of [{ isComplete: false }, { isTruncated: true }, { isCapped: true }]) {
    assert.deepEqual(judgeCycle(NEW_BOARD, { ...whole, ...flaw }), { verdict: 'inconclusive', board: NEW_BOARD })
  }
})

test('an empty board is suspect after three cycles and believed after six', () => {
  const whole = { isComplete: true, isTruncated: false, isCapped: false }
  let { board } = judgeCycle(NEW_BOARD, { ...whole, items: 10 })
  const turns: string[] = []
  for (let i = 0; i < 6; i++) {
    const judged = judgeCycle(board, { ...whole, items: 0 })
    board = judged.board
    turns.push(`${judged.verdict} ${board.status}`)
  }
  assert.deepEqual(turns, [
    'inconclusive live',
    'inconclusive live',
    'inconclusive suspect',
    'inconclusive suspect',
    'inconclusive suspect',
    'conclusive delisted',
  ])
  assert.deepEqual(judgeCycle(board, { ...whole, items: 1 }).board, { status: 'live', emptyCycles: 0, items: 1 })
})
