import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventOf, RunEvent } from '../core/events.ts'
import { createTally } from './tally.ts'
import { troubleNotes } from './trouble.ts'

const page = (over: Partial<EventOf<'page'>> = {}): RunEvent => ({
  type: 'page',
  outcome: 'ok',
  url: 'https://shop.example/p/1',
  host: 'shop.example',
  route: 'book',
  attempt: 1,
  ...over,
})
const notFound = { code: 'E_NOT_FOUND', class: 'not-found', message: '404' } as const
const serverError = { code: 'E_SERVER', class: 'server-error', message: '503' } as const

function tallyAt(startMs = 1_000_000) {
  const clock = { nowMs: startMs }
  return { clock, tally: createTally({ now: () => clock.nowMs }) }
}

test('counts pages by outcome and by route', () => {
  const { tally } = tallyAt()
  tally.record(page({ bytes: 100 }))
  tally.record(page({ outcome: 'failed', route: 'list', error: notFound }))
  tally.record(page({ outcome: 'postponed', bytes: 20, fromCache: true }))
  const { pages, routes, bytes, fromCache } = tally.snapshot()
  assert.deepEqual(pages, { ok: 1, retried: 0, postponed: 1, failed: 1, skipped: 0, stale: 0 })
  assert.equal(routes['list']?.failed, 1)
  assert.equal(bytes, 120)
  assert.equal(fromCache, 1)
})

test('counts a task as retrying from its first failure until it is settled', () => {
  const { tally } = tallyAt()
  tally.record(page({ outcome: 'retried', error: serverError }))
  tally.record(page({ outcome: 'retried', attempt: 2, error: serverError }))
  assert.equal(tally.snapshot().retrying, 1)
  tally.record(page({ attempt: 3 }))
  assert.equal(tally.snapshot().retrying, 0)
  tally.record(page({ attempt: 2 })) // first failed before a resume
  assert.equal(tally.snapshot().retrying, 0)
})

test('groups errors by code with an example, the most frequent first', () => {
  const { tally } = tallyAt()
  tally.record(page({ outcome: 'failed', url: 'https://x.test/?token=abc', error: notFound }))
  tally.record(page({ outcome: 'retried', error: serverError }))
  tally.record(page({ outcome: 'failed', error: serverError, attempt: 2 }))
  tally.record(page({ outcome: 'failed', error: serverError, attempt: 2 }))
  tally.record({
    type: 'item.invalid',
    url: 'https://x.test/1',
    route: 'book',
    problems: ['price: missing'],
    item: '{}',
  })
  const { errors, items } = tally.snapshot()
  assert.deepEqual(
    errors.map(({ code, count, retries, example }) => [code, count, retries, example]),
    [
      ['E_SERVER', 2, 1, 'https://shop.example/p/1'],
      ['E_NOT_FOUND', 1, 0, 'https://x.test/?token=***'],
      ['E_ITEM_INVALID', 1, 0, 'https://x.test/1'],
    ],
  )
  assert.equal(items.invalid, 1)
})

test('keeps routes, errors, hosts, fields and workers bounded', () => {
  const { tally } = tallyAt()
  for (let i = 0; i < 2000; i++) {
    const error = { code: `E_${i}` as never, class: 'odd', message: '' }
    tally.record(page({ outcome: 'failed', route: `r${i}`, error }))
    tally.record({ type: 'throttled', host: `h${i}`, untilMs: 9e12, reason: '429' })
    tally.record({ type: 'fields', items: 1, filled: { [`f${i}`]: 1 } })
    tally.record({ type: 'worker.in-flight', workerId: `w${i}`, inFlight: 1, rssBytes: 1, cpuMs: 1 })
  }
  const snapshot = tally.snapshot()
  assert.ok(Object.keys(snapshot.routes).length <= 101)
  assert.equal(snapshot.routes['other']?.failed, 1900)
  assert.ok(snapshot.errors.length <= 101)
  assert.equal(snapshot.errors[0]?.code, 'other')
  assert.ok(snapshot.throttled.length <= 200)
  assert.ok(Object.keys(snapshot.fieldFill).length <= 500)
  assert.ok(snapshot.workers.length <= 256)
})

test('measures the rate over the last seconds, not over the whole run', () => {
  const { tally, clock } = tallyAt()
  for (let second = 0; second < 30; second++) {
    for (let i = 0; i < 40; i++) tally.record(page({ bytes: 1000 }))
    clock.nowMs += 1000
  }
  const busy = tally.snapshot().rate
  assert.ok(Math.abs(busy.pages - 40) < 4, String(busy.pages))
  assert.ok(Math.abs(busy.bytes - 40_000) < 4000, String(busy.bytes))
  clock.nowMs += 60_000
  assert.equal(tally.snapshot().rate.pages, 0)
})

test('knows the rate of a run two seconds old', () => {
  const { tally, clock } = tallyAt()
  for (let i = 0; i < 20; i++) {
    tally.record(page())
    clock.nowMs += 100
  }
  assert.ok(Math.abs(tally.snapshot().rate.pages - 10) < 1)
})

test('does not count tries that come back in the rate of pages', () => {
  const { tally } = tallyAt()
  tally.record(page({ outcome: 'retried', error: serverError }))
  assert.equal(tally.snapshot().rate.pages, 0)
})

test('shows hosts that are throttled now, and how often since they were calm', () => {
  const { tally, clock } = tallyAt()
  const untilMs = clock.nowMs + 10_000
  for (let i = 0; i < 3; i++) tally.record({ type: 'throttled', host: 'a.test', untilMs, reason: '429' })
  tally.record({ type: 'throttled', host: 'b.test', untilMs: untilMs + 1, reason: '503' })
  assert.deepEqual(
    tally.snapshot().throttled.map(({ host, count }) => [host, count]),
    [
      ['b.test', 1],
      ['a.test', 3],
    ],
  )
  clock.nowMs = untilMs + 5
  assert.deepEqual(tally.snapshot().throttled, [])
  tally.record({ type: 'throttled', host: 'a.test', untilMs: clock.nowMs + 1000, reason: '429' })
  assert.equal(tally.snapshot().throttled[0]?.count, 4)
  clock.nowMs += 62_000
  tally.record({ type: 'throttled', host: 'a.test', untilMs: clock.nowMs + 1000, reason: '429' })
  assert.equal(tally.snapshot().throttled[0]?.count, 1)
})

test('adds up the memory and CPU of workers, and forgets those gone silent', () => {
  const { tally, clock } = tallyAt()
  const report = (workerId: string, cpuMs: number) =>
    tally.record({ type: 'worker.in-flight', workerId, inFlight: 4, rssBytes: 100e6, cpuMs })
  report('a', 1000)
  report('b', 500)
  clock.nowMs += 1000
  report('a', 1600)
  report('b', 700)
  const both = tally.snapshot()
  assert.deepEqual([both.inFlight, both.rssBytes, both.cpuMs], [8, 200e6, 2300])
  assert.ok(Math.abs(both.cpuRatio - 0.8) < 1e-9)
  clock.nowMs += 31_000
  report('a', 2000)
  const one = tally.snapshot()
  assert.deepEqual([one.inFlight, one.rssBytes, one.rssBytesMax, one.cpuMs], [4, 100e6, 200e6, 2700])
})

test('says how full each field is over all items', () => {
  const { tally } = tallyAt()
  tally.record({ type: 'fields', items: 2, filled: { title: 2, price: 1 } })
  tally.record({ type: 'fields', items: 2, filled: { title: 2, price: 2 } })
  assert.deepEqual(tally.snapshot().fieldFill, { title: 1, price: 0.75 })
})

test('adds up what commits and sinks report', () => {
  const { tally } = tallyAt()
  tally.record({
    type: 'committed',
    outcomes: 3,
    added: 5,
    itemsNew: 2,
    itemsSame: 1,
    itemsChanged: 1,
    backlog: 9,
    ms: 1,
  })
  tally.record({ type: 'leases.expired', returned: 2, dead: 1 })
  tally.record({ type: 'lease.lost', url: 'https://x.test/', count: 2 })
  const { items, added, rate, leases, sinkBacklog } = tally.snapshot()
  assert.deepEqual(items, { new: 2, same: 1, changed: 1, invalid: 0 })
  assert.deepEqual([added, rate.added, sinkBacklog], [5, 5, 9])
  assert.deepEqual(leases, { lost: 2, expired: 3, dead: 1 })
})

test('groups blocks by class and vendor, and knows which hosts are left alone', () => {
  const { clock, tally } = tallyAt()
  const blocked = {
    type: 'blocked',
    url: 'https://a.test/',
    signal: 'x',
    class: 'challenge',
    vendor: 'cloudflare',
  } as const
  tally.record({ ...blocked, host: 'a.test', class: 'captcha', vendor: 'datadome' })
  tally.record({ ...blocked, host: 'a.test' })
  tally.record({ ...blocked, host: 'b.test' })
  tally.record({ type: 'circuit', host: 'a.test', state: 'open', reason: 'failed', untilMs: 5 })
  tally.record({ type: 'circuit', host: 'b.test', state: 'open', reason: 'failed', untilMs: 5 })
  tally.record({ type: 'circuit', host: 'b.test', state: 'closed', reason: 'answered' })
  const { blocked: groups, circuits } = tally.snapshot()
  assert.deepEqual(groups, [
    { class: 'challenge', vendor: 'cloudflare', host: 'b.test', count: 2, atMs: clock.nowMs },
    { class: 'captcha', vendor: 'datadome', host: 'a.test', count: 1, atMs: clock.nowMs },
  ])
  assert.deepEqual(circuits, [{ host: 'a.test', state: 'open', reason: 'failed', untilMs: 5 }])
  assert.deepEqual(troubleNotes({ blocked: groups, circuits }), [
    '2× challenged by cloudflare, last at b.test',
    '1× met with a CAPTCHA by datadome, last at a.test',
    'a.test left alone: failed',
  ])
})

test('keeps no more kinds of blocks and open hosts than it can hold', () => {
  const { tally } = tallyAt()
  for (let i = 0; i < 5000; i++) {
    tally.record({ type: 'blocked', url: '', host: 'a', class: 'blocked', vendor: `v${i}`, signal: '' })
    tally.record({ type: 'circuit', host: `h${i}`, state: 'open', reason: '' })
  }
  const { blocked, circuits } = tally.snapshot()
  assert.equal(blocked.length, 100)
  assert.equal(circuits.length, 1000)
})
