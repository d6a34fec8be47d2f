/** Checks for stats, metadata of the run, the end of a process, and several processes. */
import assert from 'node:assert/strict'
import { check, done, error, item, LEASE_MS, pathsOf, task, tasks, urlsOf } from './rig.ts'

const figures = [
  check('counts per lane and host', async (rig) => {
    await rig.frontier.add([
      ...tasks(5),
      ...tasks(3, { host: 'b.example', lane: 'reports' }),
      ...tasks(2, { host: 'c.example', notBeforeMs: rig.nowMs + 1 }),
      ...tasks(1, { host: 'd.example', lane: 'manual' }),
    ])
    const [manual] = await rig.claim(3)
    await rig.commit(done(manual!))
    const { lanes, hosts } = await rig.frontier.stats()
    assert.deepEqual(lanes['bulk'], { pending: 6, claimed: 1 })
    assert.deepEqual(lanes['reports'], { pending: 2, claimed: 1 })
    assert.deepEqual(lanes['manual'], { pending: 0, claimed: 0 })
    const open = hosts.filter(({ pending, claimed }) => pending + claimed > 0)
    assert.deepEqual(
      open.map(({ host, pending, claimed }) => [host, pending, claimed]),
      [
        ['a.example', 4, 1],
        ...[
          ['b.example', 2, 1],
          ['c.example', 2, 0],
        ].sort((x, y) => open.findIndex((h) => h.host === x[0]) - open.findIndex((h) => h.host === y[0])),
      ],
    )
  }),

  check('names the 50 hosts with most pending tasks, also among thousands', async (rig) => {
    const small = Array.from({ length: 3000 }, (_, i) => task(i, { url: `https://small${i}.example/` }))
    const large = Array.from({ length: 60 }, (_, i) => tasks(20 + 20 * (i + 1), { host: `large${i}.example` })).flat()
    await rig.frontier.add([...small, ...large])
    const { hosts } = await rig.frontier.stats()
    assert.equal(hosts.length, 50)
    assert.deepEqual(hosts[0], { host: 'large59.example', pending: 1220, claimed: 0 })
    for (const [i, { host }] of hosts.entries()) assert.equal(host, `large${59 - i}.example`)
  }),

  check('tells how long the oldest task that is due has waited, if it declares that it can', async (rig) => {
    const ageMs = async () => (await rig.frontier.stats()).oldestAgeMs
    assert.equal(await ageMs(), undefined, 'nothing is due')
    await rig.frontier.add([task('old'), task('later', { notBeforeMs: rig.nowMs + 60_000 })])
    rig.nowMs += 5000
    await rig.frontier.add([task('new', { priority: 5 })])
    const tellsAge = rig.frontier.can.tellsAge === true
    assert.equal(await ageMs(), tellsAge ? 5000 : undefined)
    if (!tellsAge) return // only the order is stored
    await rig.claim(2)
    assert.equal(await ageMs(), undefined, 'what is claimed does not wait, and the other is not due')
    rig.nowMs += 56_000
    assert.equal(await ageMs(), 61_000)
  }),

  check('keeps notes of the run', async (rig) => {
    assert.equal(await rig.frontier.getMeta('started'), undefined)
    await rig.frontier.setMeta('started', '1')
    await rig.frontier.setMeta('started', '2')
    await rig.frontier.setMeta('empty', '')
    assert.deepEqual([await rig.frontier.getMeta('started'), await rig.frontier.getMeta('empty')], ['2', ''])
  }),

  check('may be closed twice', async (rig) => {
    await rig.frontier[Symbol.asyncDispose]()
    await rig.frontier[Symbol.asyncDispose]()
  }),
]

const durable = [
  check(
    'survives the end of its process with all it knew',
    async (rig) => {
      await rig.frontier.add([...tasks(6), task('later', { notBeforeMs: rig.nowMs + 1000 })])
      const [finished, dead, retried, held] = await rig.claim(4)
      await rig.commit(
        { kind: 'done', lease: finished!, items: [item('a'), item('b')], counts: { 'filled.title': 2 } },
        { kind: 'dead', lease: dead!, error: error(), snapshot: 's' },
        { kind: 'retry', lease: retried!, atMs: rig.nowMs + 500, error: error() },
      )
      const [a] = await rig.frontier.items.read({ afterSeq: 0, max: 1 })
      await rig.frontier.items.confirm(a!.seq, { jsonl: '12' })
      await rig.frontier.setMeta('started', 'x')
      await rig.frontier.pause('lunch')
      const before = await rig.frontier.stats()
      assert.deepEqual(before.counts, { 'filled.title': 2 })
      await rig.reopen()
      assert.deepEqual(await rig.frontier.stats(), before)
      assert.equal(await rig.frontier.getMeta('started'), 'x')
      assert.deepEqual(await rig.frontier.items.confirmed(), { seq: a!.seq, positions: { jsonl: '12' } })
      assert.deepEqual(
        (await rig.frontier.items.read({ afterSeq: 0, max: 9 })).map(({ key }) => key),
        ['b'],
      )
      assert.equal((await rig.frontier.dead.list())[0]?.snapshot, 's')
      assert.deepEqual(await rig.claim(5), [])
      await rig.frontier.resume()
      assert.deepEqual(await rig.frontier.add(tasks(6)), { added: 0, seen: 6 })
      assert.deepEqual(await rig.frontier.extend([held!], LEASE_MS), { lost: [] })
      assert.equal((await rig.commit(done(held!))).settled, 1)
      assert.deepEqual(pathsOf(await rig.claim(5)), ['4', '5'])
      rig.nowMs += 500
      assert.equal((await rig.claimOne()).attempt, 2)
    },
    'durable',
  ),

  check(
    'does not give a token out again after a restart',
    async (rig) => {
      await rig.frontier.add([task(1)])
      const old = await rig.claimOne()
      await rig.reopen()
      await rig.frontier.sweep({ lossesMax: 3, workerIds: 'all' })
      const current = await rig.claimOne()
      assert.notEqual(current.token, old.token)
      assert.deepEqual((await rig.commit(done(old))).stale, [old])
    },
    'durable',
  ),

  check(
    'forgets everything when it is opened fresh',
    async (rig) => {
      await rig.frontier.add(tasks(3))
      await rig.commit({ kind: 'done', lease: await rig.claimOne(), items: [item('a')] })
      await rig.frontier.setMeta('started', 'x')
      await rig.reopen({ fresh: true })
      await rig.expect({ seen: 0, pending: 0, claimed: 0, completed: 0, items: 0 })
      assert.equal(await rig.frontier.getMeta('started'), undefined)
      assert.deepEqual(await rig.frontier.add(tasks(3)), { added: 3, seen: 0 })
    },
    'durable',
  ),
]

const shared = [
  check(
    'is one frontier for all who have it open',
    async (rig) => {
      const other = await rig.open()
      await rig.frontier.add([task(1)])
      assert.deepEqual(await other.add([task(1), task(2)]), { added: 1, seen: 1 })
      assert.deepEqual(await rig.frontier.add([task(1), task(2)]), { added: 0, seen: 2 })
      const [lease] = await other.claim({ max: 1, workerId: 'other', leaseMs: LEASE_MS })
      await rig.expect({ pending: 1, claimed: 1 })
      assert.equal((await rig.commit({ kind: 'done', lease: lease!, items: [item('a')] })).settled, 1)
      assert.deepEqual((await other.commit([done(lease!)])).stale, [lease])
      assert.equal((await other.items.read({ afterSeq: 0, max: 5 })).length, 1)
      await other.pause('by another')
      assert.deepEqual(await rig.claim(5), [])
    },
    'shared',
  ),

  check(
    'gives no task twice and admits none twice to several who work at once',
    async (rig) => {
      const handles = [rig.frontier, await rig.open(), await rig.open()]
      const source = tasks(600)
      const added = await Promise.all(handles.map((handle, i) => handle.add(source.slice(i * 100, 400 + i * 100))))
      assert.equal(
        added.reduce((sum, { added: count }) => sum + count, 0),
        600,
      )
      const work = async (n: number) => {
        const given: string[] = []
        for (;;) {
          const leases = await handles[n]!.claim({ max: 10, workerId: `worker-${n}`, leaseMs: LEASE_MS })
          if (leases.length === 0) return given
          given.push(...urlsOf(leases))
          await handles[n]!.commit(leases.map(done))
        }
      }
      const given = (await Promise.all([0, 1, 2].map(work))).flat()
      assert.equal(given.length, 600)
      assert.equal(new Set(given).size, 600)
      await rig.expect({ completed: 600, remaining: 0 })
    },
    'shared',
  ),
]

export const keeping = [...figures, ...durable, ...shared]
