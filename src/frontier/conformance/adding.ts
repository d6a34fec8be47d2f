/** Checks for `add`. */
import assert from 'node:assert/strict'
import type { NewTask } from '../../core/task.ts'
import { taskId } from '../../core/url.ts'
import { check, done, error, task, tasks } from './rig.ts'

/** An engine that reads further ahead than this does not work in chunks. */
const HELD_TASKS_MAX = 10_000

export const adding = [
  check('adds a task once, however often it is offered', async (rig) => {
    assert.deepEqual(await rig.frontier.add([task(1), task(2), task(1)]), { added: 2, seen: 1 })
    assert.deepEqual(await rig.frontier.add([task(2), task(3)]), { added: 1, seen: 1 })
    assert.equal((await rig.drain()).length, 3)
    await rig.expect({ seen: 3, pending: 0, completed: 3 })
  }),

  check('does not add a task again that is claimed, done, waiting or dead', async (rig) => {
    await rig.frontier.add(tasks(4))
    const [first, second, third] = await rig.claim(3)
    await rig.commit(
      done(first!),
      { kind: 'dead', lease: second!, error: error() },
      { kind: 'retry', lease: third!, atMs: rig.nowMs + 1000, error: error() },
    )
    await rig.claimOne()
    assert.deepEqual(await rig.frontier.add(tasks(4)), { added: 0, seen: 4 })
    await rig.expect({ seen: 4, pending: 1, claimed: 1, completed: 1, failed: 1 })
  }),

  check('does not add a discovered task that was seen', async (rig) => {
    await rig.frontier.add([task(1)])
    const lease = await rig.claimOne()
    const found = [task(1), task(2), task(2), task(3)]
    const committed = await rig.commit({ kind: 'done', lease, tasks: found })
    assert.deepEqual([committed.added, committed.seen], [2, 2])
    assert.deepEqual(await rig.frontier.add(found), { added: 0, seen: 4 })
    await rig.expect({ seen: 3, pending: 2 })
  }),

  check('knows a task by its key in place of its URL', async (rig) => {
    const page = (key: string) => task('search', { key })
    assert.deepEqual(await rig.frontier.add([page('p1'), page('p2'), page('p1'), task('search')]), {
      added: 3,
      seen: 1,
    })
    const ids = (await rig.claim(10)).map((lease) => lease.task.id)
    assert.deepEqual(ids, [taskId(page('p1')), taskId(page('p2')), taskId(task('search'))])
  }),

  check('gives a task out with all that was put in and every default filled in', async (rig) => {
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const full = task(1, { data: { a: [1, 'ü', null] }, depth: 3, priority: 5, lane: 'reports', session: 's', trace })
    await rig.frontier.add([full, task(2)])
    const leases = await rig.claim(2)
    const { url, route } = full
    const expected = {
      id: taskId(full),
      url,
      route,
      data: full.data,
      depth: 3,
      priority: 5,
      lane: 'reports',
      session: 's',
      trace,
    }
    assert.deepEqual(leases[0]?.task, expected)
    const { data, depth, priority, lane, session, trace: none } = leases[1]!.task
    assert.deepEqual(
      { data, depth, priority, lane, session, none },
      { data: null, depth: 0, priority: 0, lane: 'bulk', session: undefined, none: undefined },
    )
    assert.deepEqual([leases[0]?.attempt, leases[0]?.losses], [1, 0])
  }),

  check('takes any number of tasks and holds only a chunk of them', async (rig) => {
    const count = 3 * HELD_TASKS_MAX
    let heldMax = 0
    async function* source(): AsyncGenerator<NewTask> {
      for (let i = 0; i < count; i++) {
        if (i % 1000 === 0) heldMax = Math.max(heldMax, i - (await rig.frontier.stats()).seen)
        yield task(i)
      }
    }
    assert.deepEqual(await rig.frontier.add(source()), { added: count, seen: 0 })
    assert.ok(heldMax <= HELD_TASKS_MAX, `held ${heldMax} tasks`)
    await rig.expect({ pending: count, seen: count })
  }),

  check('loses nothing when a source fails half way and is read again', async (rig) => {
    function* broken(): Generator<NewTask> {
      yield* tasks(5000)
      throw new Error('the source broke')
    }
    await assert.rejects(rig.frontier.add(broken()), /the source broke/)
    await rig.frontier.add(tasks(5001))
    await rig.expect({ pending: 5001, seen: 5001 })
  }),

  check('adds nothing from an empty source', async (rig) => {
    assert.deepEqual(await rig.frontier.add([]), { added: 0, seen: 0 })
    assert.deepEqual(await rig.claim(5), [])
    assert.equal(await rig.frontier.nextDueMs(), undefined)
  }),
]
