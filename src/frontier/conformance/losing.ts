/** Checks for the tasks of lost workers. */
import assert from 'node:assert/strict'
import { check, done, error, LEASE_MS, pathsOf, task, tasks } from './rig.ts'

const sweeping = [
  check('returns a lease when it has run out, not before', async (rig) => {
    await rig.frontier.add([task(1)])
    await rig.claimOne()
    rig.nowMs += LEASE_MS - 1
    assert.deepEqual(await rig.frontier.sweep({ lossesMax: 3 }), { returned: 0, dead: 0 })
    rig.nowMs += 1
    assert.deepEqual(await rig.frontier.sweep({ lossesMax: 3 }), { returned: 1, dead: 0 })
    await rig.expect({ pending: 1, claimed: 0 })
    const lease = await rig.claimOne({ workerId: 'worker-2' })
    assert.deepEqual([lease.attempt, lease.losses], [1, 1])
  }),

  check('returns the leases of workers that are named as dead', async (rig) => {
    await rig.frontier.add(tasks(6))
    for (const workerId of ['worker-1', 'worker-2', 'worker-3']) await rig.claim(2, { workerId })
    const swept = await rig.frontier.sweep({ lossesMax: 3, workerIds: ['worker-1', 'worker-3', 'unheard-of'] })
    assert.deepEqual(swept, { returned: 4, dead: 0 })
    await rig.expect({ pending: 4, claimed: 2 })
  }),

  check('returns every lease when no worker can be alive', async (rig) => {
    await rig.frontier.add(tasks(6))
    await rig.claim(2)
    await rig.claim(2, { workerId: 'worker-2' })
    assert.deepEqual(await rig.frontier.sweep({ lossesMax: 3, workerIds: 'all' }), { returned: 4, dead: 0 })
    await rig.expect({ pending: 6, claimed: 0 })
  }),
]

const suspecting = [
  check('gives a suspect to a worker with empty hands, and nothing beside it', async (rig) => {
    await rig.frontier.add([task('suspect'), task('b'), task('c'), task('d')])
    await rig.claimOne({ workerId: 'killed' })
    await rig.claimOne({ workerId: 'busy' })
    await rig.lose('killed')
    assert.deepEqual(pathsOf(await rig.claim(1, { workerId: 'busy' })), ['c'])
    const alone = await rig.claim(10, { workerId: 'idle' })
    assert.deepEqual(pathsOf(alone), ['suspect'])
    assert.equal(alone[0]?.losses, 1)
    assert.deepEqual(await rig.claim(10, { workerId: 'idle' }), [])
    await rig.commit(done(alone[0]!))
    assert.deepEqual(pathsOf(await rig.claim(10, { workerId: 'idle' })), ['d'])
  }),

  check('keeps a suspect alone when it is tried again', async (rig) => {
    await rig.frontier.add([task('suspect'), task('b')])
    await rig.claimOne()
    await rig.lose('worker-1')
    for (const atMs of [0, rig.nowMs + 10]) {
      const [lease, ...rest] = await rig.claim(5)
      assert.deepEqual([lease?.losses, rest], [1, []])
      await rig.commit({ kind: 'retry', lease: lease!, atMs, error: error() })
    }
    assert.deepEqual(pathsOf(await rig.claim(5)), ['b'])
    rig.nowMs += 10
    assert.deepEqual(await rig.claim(5), [])
    assert.deepEqual(pathsOf(await rig.claim(5, { workerId: 'worker-2' })), ['suspect'])
  }),

  check('minds lanes and avoided hosts for suspects too', async (rig) => {
    await rig.frontier.add([task('suspect', { lane: 'files' })])
    await rig.claim(1, { lanes: ['files'] })
    await rig.lose('worker-1')
    assert.deepEqual(await rig.claim(5), [])
    assert.deepEqual(await rig.claim(5, { lanes: ['bulk'] }), [])
    assert.deepEqual(await rig.claim(5, { lanes: ['files'], avoidHosts: ['a.example'] }), [])
    assert.deepEqual(pathsOf(await rig.claim(5, { lanes: ['bulk', 'files'], avoidHosts: ['b.example'] })), ['suspect'])
  }),

  check('puts a suspect that is lost again behind the other suspects', async (rig) => {
    await rig.frontier.add([task('poison'), task('b'), task('c')])
    await rig.claim(3)
    await rig.lose('worker-1')
    const given: string[] = []
    for (let i = 0; i < 3; i++) {
      const lease = await rig.claimOne()
      given.push(...pathsOf([lease]))
      if (lease.task.url.endsWith('poison')) await rig.lose('worker-1')
      else await rig.commit(done(lease))
    }
    assert.deepEqual(given, ['poison', 'b', 'c'])
    assert.deepEqual(pathsOf(await rig.claim(5)), ['poison'])
  }),

  check('declares a task dead that was lost alone as often as allowed', async (rig) => {
    await rig.frontier.add([task('poison')])
    await rig.claimOne()
    assert.deepEqual(await rig.lose('worker-1', 2), { returned: 1, dead: 0 })
    await rig.claimOne()
    assert.deepEqual(await rig.lose('worker-1', 2), { returned: 1, dead: 0 })
    await rig.claimOne()
    assert.deepEqual(await rig.lose('worker-1', 2), { returned: 0, dead: 1 })
    await rig.expect({ pending: 0, claimed: 0, failed: 1, dead: 1 })
    const [letter] = await rig.frontier.dead.list()
    assert.deepEqual(
      [letter?.error.code, letter?.error.class, letter?.losses, letter?.attempts],
      ['E_LEASE_LOST', 'crash', 3, 0],
    )
    assert.equal(letter?.diedAtMs, rig.nowMs)
  }),

  check('lets the batch mates of a poisonous task live', async (rig) => {
    await rig.frontier.add(
      tasks(20, { priority: 1 }).concat(task('poison', { priority: 1 }), tasks(10, { host: 'b.example' })),
    )
    for (;;) {
      const leases = await rig.claim(25)
      if (leases.length === 0) break
      if (pathsOf(leases).includes('poison')) await rig.lose('worker-1', 2)
      else await rig.commit(...leases.map(done))
    }
    await rig.expect({ completed: 30, failed: 1, dead: 1, remaining: 0 })
  }),
]

export const losing = [...sweeping, ...suspecting]
