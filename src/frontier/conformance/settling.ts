/** Checks for outcomes, fencing, heartbeats, tries and counters. */
import assert from 'node:assert/strict'
import type { Outcome } from '../contract.ts'
import { check, done, error, item, LEASE_MS, pathsOf, task, tasks } from './rig.ts'

const fencing = [
  check('settles a lease once', async (rig) => {
    await rig.frontier.add([task(1)])
    const lease = await rig.claimOne()
    const both = await rig.commit(done(lease), { kind: 'dead', lease, error: error() })
    assert.deepEqual([both.settled, both.stale], [1, [lease]])
    assert.deepEqual((await rig.commit(done(lease))).stale, [lease])
    await rig.expect({ completed: 1, failed: 0, dead: 0, pending: 0, claimed: 0 })
  }),

  check('drops an outcome of a lost lease with its tasks and items', async (rig) => {
    await rig.frontier.add([task(1)])
    const lost = await rig.claimOne()
    rig.nowMs += LEASE_MS
    await rig.frontier.sweep({ lossesMax: 3 })
    const late = await rig.commit({ kind: 'done', lease: lost, tasks: [task(2)], items: [item('late')] })
    const items = { new: 0, same: 0, changed: 0, backlog: 0 }
    assert.deepEqual(late, { settled: 0, stale: [lost], added: 0, seen: 0, items })
    await rig.expect({ pending: 1, claimed: 0, completed: 0, seen: 1, items: 0 })
    assert.deepEqual(await rig.frontier.items.read({ afterSeq: 0, max: 10 }), [])
    // Nothing in the stale outcome is remembered, not even as seen: its successor can add it again.
    const lease = await rig.claimOne({ workerId: 'worker-2' })
    const good = await rig.commit({ kind: 'done', lease, tasks: [task(2)], items: [item('late')] })
    assert.deepEqual([good.settled, good.added, good.items.new], [1, 1, 1])
  }),

  check('tells two leases of one worker on one task apart', async (rig) => {
    await rig.frontier.add([task(1)])
    const old = await rig.claimOne()
    await rig.lose('worker-1')
    const current = await rig.claimOne()
    assert.equal(current.task.id, old.task.id)
    assert.notEqual(current.token, old.token)
    const outcomes: Outcome[] = [
      done(old),
      { kind: 'retry', lease: old, atMs: 0, error: error() },
      { kind: 'postpone', lease: old, atMs: 0, reason: 'drain' },
      { kind: 'dead', lease: old, error: error() },
    ]
    for (const outcome of outcomes) assert.deepEqual((await rig.commit(outcome)).stale, [old])
    assert.deepEqual(await rig.frontier.extend([old, current], LEASE_MS), { lost: [old] })
    await rig.expect({ claimed: 1, pending: 0, dead: 0 })
    assert.equal((await rig.commit(done(current))).settled, 1)
  }),

  check('does not let a stale outcome spoil the others of its commit', async (rig) => {
    await rig.frontier.add(tasks(2))
    const [first, second] = await rig.claim(2)
    await rig.commit(done(first!))
    const both = await rig.commit(
      { kind: 'done', lease: first!, items: [item('x')] },
      { kind: 'done', lease: second!, items: [item('y')], tasks: [task('new')] },
    )
    assert.deepEqual([both.settled, both.stale, both.added, both.items.new], [1, [first], 1, 1])
    await rig.expect({ completed: 2, pending: 1, items: 1 })
  }),

  check('takes an outcome after the expiry as long as nobody has swept', async (rig) => {
    await rig.frontier.add([task(1)])
    const lease = await rig.claimOne()
    rig.nowMs += 10 * LEASE_MS
    assert.deepEqual(await rig.claim(1, { workerId: 'worker-2' }), [])
    assert.equal((await rig.commit(done(lease))).settled, 1)
  }),
]

const heartbeats = [
  check('keeps a lease that is extended, from now on for the time given', async (rig) => {
    await rig.frontier.add(tasks(2))
    const [kept, left] = await rig.claim(2)
    rig.nowMs += LEASE_MS - 1
    assert.deepEqual(await rig.frontier.extend([kept!], LEASE_MS), { lost: [] })
    rig.nowMs += LEASE_MS - 1
    assert.deepEqual(await rig.frontier.sweep({ lossesMax: 3 }), { returned: 1, dead: 0 })
    assert.deepEqual(await rig.frontier.extend([kept!, left!], 2 * LEASE_MS), { lost: [left] })
    rig.nowMs += 2 * LEASE_MS - 1
    assert.deepEqual(await rig.frontier.sweep({ lossesMax: 3 }), { returned: 0, dead: 0 })
    rig.nowMs += 1
    assert.deepEqual(await rig.frontier.sweep({ lossesMax: 3 }), { returned: 1, dead: 0 })
  }),

  check('reports a lease as lost that is settled', async (rig) => {
    await rig.frontier.add([task(1)])
    const lease = await rig.claimOne()
    await rig.commit(done(lease))
    assert.deepEqual(await rig.frontier.extend([lease], LEASE_MS), { lost: [lease] })
    await rig.expect({ claimed: 0, completed: 1 })
  }),
]

const tries = [
  check('counts a retry as a try, but neither a postponement nor a lost lease', async (rig) => {
    await rig.frontier.add([task(1)])
    const first = await rig.claimOne()
    await rig.commit({ kind: 'postpone', lease: first, atMs: 0, reason: 'rate' })
    const second = await rig.claimOne()
    await rig.commit({ kind: 'retry', lease: second, atMs: 0, error: error() })
    const third = await rig.claimOne()
    await rig.lose('worker-1')
    const fourth = await rig.claimOne()
    await rig.commit({ kind: 'retry', lease: fourth, atMs: 0, error: error() })
    const fifth = await rig.claimOne()
    const seen = [first, second, third, fourth, fifth].map(({ attempt, losses }) => [attempt, losses])
    assert.deepEqual(seen, [
      [1, 0],
      [1, 0],
      [2, 0],
      [2, 1],
      [3, 1],
    ])
    await rig.commit({ kind: 'dead', lease: fifth, error: error() })
    const [letter] = await rig.frontier.dead.list()
    assert.deepEqual([letter?.attempts, letter?.losses], [3, 1])
  }),

  check('brings a retried or postponed task back at its time, not before', async (rig) => {
    await rig.frontier.add([task('retried'), task('postponed')])
    const [retried, postponed] = await rig.claim(2)
    const startMs = rig.nowMs
    await rig.commit(
      { kind: 'retry', lease: retried!, atMs: startMs + 100, error: error() },
      { kind: 'postpone', lease: postponed!, atMs: startMs + 50, reason: 'rate' },
    )
    await rig.expect({ pending: 2, claimed: 0 })
    rig.nowMs = startMs + 49
    assert.deepEqual(await rig.claim(5), [])
    rig.nowMs = startMs + 99
    assert.deepEqual(pathsOf(await rig.claim(5)), ['postponed'])
    rig.nowMs = startMs + 100
    assert.deepEqual(pathsOf(await rig.claim(5)), ['retried'])
  }),

  check('settles many outcomes of every kind in one commit', async (rig) => {
    await rig.frontier.add(tasks(64))
    const leases = await rig.claim(64)
    const outcomes = leases.map((lease, i): Outcome => {
      if (i % 8 === 1) return { kind: 'retry', lease, atMs: 0, error: error() }
      if (i % 8 === 2) return { kind: 'postpone', lease, atMs: 0, reason: 'rate' }
      if (i % 8 === 3) return { kind: 'dead', lease, error: error() }
      return { kind: 'done', lease, tasks: [task(i + 1), task(`new${i}`)], items: [item(`k${i}`), item('shared')] }
    })
    const committed = await rig.commit(...outcomes)
    const items = { new: 41, same: 39, changed: 0, backlog: 41 }
    assert.deepEqual(committed, { settled: 64, stale: [], added: 41, seen: 39, items })
    await rig.expect({ pending: 57, claimed: 0, completed: 40, failed: 8, dead: 8, seen: 105, items: 41 })
    assert.equal((await rig.frontier.items.read({ afterSeq: 0, max: 100 })).length, 41)
  }),
]

const counting = [
  check('adds up what outcomes of every kind count', async (rig) => {
    await rig.frontier.add(tasks(5))
    const [a, b, c, d, e] = await rig.claim(5)
    const counts = { 'x.tries': 1, 'filled.constructor': 2, 'filled.a "b" é': 3_000_000_000 }
    await rig.commit(
      { kind: 'done', lease: a!, counts },
      { kind: 'retry', lease: b!, atMs: 0, error: error(), counts },
      { kind: 'postpone', lease: c!, atMs: 0, reason: 'rate', counts: { 'x.tries': 1 } },
      done(d!),
    )
    await rig.commit({ kind: 'dead', lease: e!, error: error(), counts: { 'x.dead': 1 } })
    const sums = { 'x.tries': 3, 'x.dead': 1, 'filled.constructor': 4, 'filled.a "b" é': 6_000_000_000 }
    assert.deepEqual({ ...(await rig.frontier.stats()).counts }, sums)
  }),

  check('counts nothing of a stale outcome, and everything of the others in its commit', async (rig) => {
    await rig.frontier.add(tasks(4))
    const [lost] = await rig.claim(1)
    const [a, b] = await rig.claim(2, { workerId: 'worker-2' })
    await rig.lose('worker-1')
    const counted = (lease: typeof lost): Outcome => ({ kind: 'done', lease: lease!, counts: { 'x.pages': 1 } })
    const { stale } = await rig.commit(counted(lost), counted(a), counted(a), done(b!))
    assert.deepEqual(stale, [lost, a])
    assert.deepEqual({ ...(await rig.frontier.stats()).counts }, { 'x.pages': 1 })
  }),

  check('counts items whose key was taken by other content', async (rig) => {
    await rig.frontier.add(tasks(2))
    const [a, b] = await rig.claim(2)
    const other = { ...item('k'), json: '{"other":true}', content: 'other' }
    await rig.commit({ kind: 'done', lease: a!, items: [item('k'), item('k')] })
    await rig.commit({ kind: 'done', lease: b!, items: [other, item('k'), item('new')] })
    assert.deepEqual({ ...(await rig.frontier.stats()).counts }, { 'items.changed': 1 })
  }),
]

export const settling = [...fencing, ...heartbeats, ...tries, ...counting]
