/** Checks for `claim`: which worker gets which tasks, and when. */
import assert from 'node:assert/strict'
import { check, done, error, hostsOf, LEASE_MS, pathsOf, task, tasks, urlsOf } from './rig.ts'

const priorities = [
  check('gives each task to one worker only', async (rig) => {
    await rig.frontier.add(tasks(30))
    const claims = await Promise.all([1, 2, 3, 4].map((n) => rig.claim(10, { workerId: `worker-${n}` })))
    const urls = claims.flatMap(urlsOf)
    assert.equal(urls.length, 30)
    assert.equal(new Set(urls).size, 30)
    const tokens = claims.flat().map(({ token, task: { id } }) => token + id)
    assert.equal(new Set(tokens).size, 30)
    await rig.expect({ pending: 0, claimed: 30 })
  }),

  check('gives no more than asked for, and no less while there is more', async (rig) => {
    await rig.frontier.add([
      ...tasks(3),
      ...tasks(3, { host: 'b.example', priority: 1 }),
      ...tasks(3, { lane: 'manual', host: 'c.example' }),
    ])
    assert.equal((await rig.claim(0)).length, 0)
    assert.equal((await rig.claim(4)).length, 4)
    assert.equal((await rig.claim(10)).length, 5)
    assert.equal((await rig.claim(10)).length, 0)
  }),

  check('gives the higher priority first, then the oldest', async (rig) => {
    await rig.frontier.add([
      task('low', { priority: -1 }),
      task('a'),
      task('b'),
      task('high', { priority: 10 }),
      task('half', { priority: 0.5 }),
    ])
    await rig.frontier.add([task('c'), task('high 2', { priority: 10 })])
    assert.deepEqual(pathsOf(await rig.claim(10)), ['high', 'high%202', 'half', 'a', 'b', 'c', 'low'])
  }),

  check('gives a task that was handed back its old place', async (rig) => {
    await rig.frontier.add([task('a'), task('b'), task('c')])
    const [first, second] = await rig.claim(2)
    await rig.commit({ kind: 'postpone', lease: second!, atMs: 0, reason: 'drain' })
    await rig.commit({ kind: 'postpone', lease: first!, atMs: 0, reason: 'drain' })
    assert.deepEqual(pathsOf(await rig.claim(10)), ['a', 'b', 'c'])
  }),
]

const lanes = [
  check('serves the lanes manual and priority before the others', async (rig) => {
    await rig.frontier.add([
      task('bulk', { priority: 9 }),
      task('reports', { lane: 'reports', priority: 10 }),
      task('priority', { lane: 'priority', priority: 1 }),
      task('manual', { lane: 'manual' }),
    ])
    assert.deepEqual(pathsOf(await rig.claim(10)), ['manual', 'priority', 'reports', 'bulk'])
  }),

  check('gives files only to who asks for them by name', async (rig) => {
    await rig.frontier.add([
      task('file', { lane: 'files', priority: 10 }),
      task('pinned', { lane: 'files@here', priority: 10 }),
      task('page'),
    ])
    assert.deepEqual(pathsOf(await rig.claim(10)), ['page'])
    assert.deepEqual(pathsOf(await rig.claim(10, { lanes: ['files@here', 'files'] })), ['pinned', 'file'])
  }),

  check('serves only the lanes asked for, in their order', async (rig) => {
    await rig.frontier.add(['bulk', 'files', 'manual', 'bulk', 'files'].map((lane, i) => task(`${lane}${i}`, { lane })))
    assert.deepEqual(pathsOf(await rig.claim(10, { lanes: ['files', 'bulk'] })), ['files1', 'files4', 'bulk0', 'bulk3'])
    assert.deepEqual(await rig.claim(10, { lanes: ['files', 'unheard-of'] }), [])
    assert.deepEqual(await rig.claim(10, { lanes: [] }), [])
    assert.deepEqual(pathsOf(await rig.claim(10)), ['manual2'])
  }),
]

const hosts = [
  check('deals the tasks of one priority out over hosts', async (rig) => {
    await rig.frontier.add([
      ...tasks(400, { host: 'large.example' }),
      ...Array.from({ length: 20 }, (_, i) => tasks(2, { host: `h${i}.example` })).flat(),
    ])
    const given = hostsOf(await rig.claim(42))
    assert.equal(new Set(given).size, 21)
    assert.ok(given.filter((host) => host === 'large.example').length <= 3)
  }),

  check('lets no host wait while another is served again and again', async (rig) => {
    await rig.frontier.add([
      ...tasks(300, { host: 'large.example' }),
      ...Array.from({ length: 9 }, (_, i) => tasks(3, { host: `h${i}.example` })).flat(),
    ])
    const given: string[] = []
    for (let i = 0; i < 30; i++) {
      const lease = await rig.claimOne()
      given.push(...hostsOf([lease]))
      await rig.commit(done(lease))
    }
    for (const round of [given.slice(0, 10), given.slice(10, 20), given.slice(20)])
      assert.equal(new Set(round).size, 10)
  }),

  check('lets the tasks of one host follow each other when there is no other', async (rig) => {
    await rig.frontier.add(tasks(60))
    assert.deepEqual(
      pathsOf(await rig.claim(50)),
      Array.from({ length: 50 }, (_, i) => String(i)),
    )
  }),

  check('leaves the hosts that a worker avoids to the others', async (rig) => {
    const all = Array.from({ length: 80 }, (_, i) => `h${i}.example`)
    await rig.frontier.add(all.flatMap((host) => tasks(2, { host })))
    const avoidHosts = all.slice(0, 79)
    assert.deepEqual(hostsOf(await rig.claim(10, { avoidHosts })), ['h79.example', 'h79.example'])
    assert.deepEqual(await rig.claim(10, { avoidHosts: all }), [])
    assert.deepEqual(hostsOf(await rig.claim(2, { workerId: 'worker-2' })), ['h0.example', 'h1.example'])
    // An avoided host may come before the others at many priorities.
    const many = Array.from({ length: 40 }, (_, i) => task(i, { priority: 100 + i }))
    await rig.frontier.add(many)
    assert.deepEqual(hostsOf(await rig.claim(1, { avoidHosts: ['a.example'] })), ['h2.example'])
  }),
]

const times = [
  check('gives nothing before its time', async (rig) => {
    const atMs = rig.nowMs + 5000
    await rig.frontier.add([task('later', { notBeforeMs: atMs, priority: 9 }), task('now', { notBeforeMs: rig.nowMs })])
    assert.equal(await rig.frontier.nextDueMs(), atMs)
    assert.deepEqual(pathsOf(await rig.claim(10)), ['now'])
    await rig.expect({ pending: 1, claimed: 1 })
    rig.nowMs = atMs - 1
    assert.deepEqual(await rig.claim(10), [])
    rig.nowMs = atMs
    assert.deepEqual(pathsOf(await rig.claim(10)), ['later'])
  }),

  check('puts a task that became due where its priority and age belong', async (rig) => {
    const notBeforeMs = rig.nowMs + 10
    await rig.frontier.add([task('old', { notBeforeMs }), task('new'), task('top', { priority: 1, notBeforeMs })])
    rig.nowMs = notBeforeMs
    assert.deepEqual(pathsOf(await rig.claim(10)), ['top', 'old', 'new'])
  }),

  check('names the first time at which something will happen', async (rig) => {
    await rig.frontier.add([task(1), task(2, { notBeforeMs: rig.nowMs + 2 * LEASE_MS })])
    const lease = await rig.claimOne()
    assert.equal(await rig.frontier.nextDueMs(), rig.nowMs + LEASE_MS)
    await rig.commit({ kind: 'retry', lease, atMs: rig.nowMs + 700, error: error() })
    assert.equal(await rig.frontier.nextDueMs(), rig.nowMs + 700)
    rig.nowMs += 2 * LEASE_MS
    await rig.drain()
    assert.equal(await rig.frontier.nextDueMs(), undefined)
  }),

  check('gives nothing while paused, but takes tasks and outcomes', async (rig) => {
    await rig.frontier.add(tasks(3))
    const lease = await rig.claimOne()
    await rig.frontier.pause('captcha on a.example')
    await rig.expect({ isPaused: true, pauseReason: 'captcha on a.example' })
    assert.deepEqual(await rig.claim(5), [])
    assert.equal((await rig.commit(done(lease))).settled, 1)
    assert.equal((await rig.frontier.add([task('new')])).added, 1)
    await rig.frontier.resume()
    await rig.expect({ isPaused: false, pauseReason: undefined, pending: 3, completed: 1 })
    assert.equal((await rig.claim(5)).length, 3)
  }),
]

export const claiming = [...priorities, ...lanes, ...hosts, ...times]
