/** Checks for dead letters. */
import assert from 'node:assert/strict'
import type { ErrorRecord } from '../../core/errors.ts'
import type { NewTask } from '../../core/task.ts'
import type { DeadLetter } from '../contract.ts'
import { check, error, type Rig, task, tasks } from './rig.ts'

/** Adds a task and makes it a dead letter at once; a millisecond passes. */
async function kill(rig: Rig, dying: NewTask, record: ErrorRecord, snapshot?: string): Promise<string> {
  await rig.frontier.add([dying])
  const lease = await rig.claimOne()
  await rig.commit({ kind: 'dead', lease, error: record, ...(snapshot === undefined ? {} : { snapshot }) })
  rig.nowMs++
  return lease.task.id
}

const pathOf = ({ task: { url } }: DeadLetter) => new URL(url).pathname.slice(1)
const timeout = error({ code: 'E_TIMEOUT_BODY', class: 'timeout', message: 'timed out' })

const reading = [
  check('keeps of a dead task all that is needed to understand it', async (rig) => {
    const diedAtMs = rig.nowMs
    const record = error({ message: 'answered 503', status: 503, at: 'scrapers/a.ts:1' })
    await kill(
      rig,
      task(1, { data: { page: 2 }, session: 's', lane: 'reports', priority: 3 }),
      record,
      'snapshots/1.html',
    )
    const [letter, ...rest] = await rig.frontier.dead.list()
    assert.equal(rest.length, 0)
    const { error: kept, attempts, losses, snapshot } = letter!
    assert.deepEqual(
      { kept, attempts, losses, snapshot },
      { kept: record, attempts: 1, losses: 0, snapshot: 'snapshots/1.html' },
    )
    assert.equal(letter?.diedAtMs, diedAtMs)
    const { data, session, lane, priority } = letter!.task
    assert.deepEqual(
      { data, session, lane, priority },
      { data: { page: 2 }, session: 's', lane: 'reports', priority: 3 },
    )
    await rig.expect({ dead: 1, failed: 1, pending: 0, claimed: 0 })
  }),

  check('lists dead letters oldest first, page by page', async (rig) => {
    for (const path of [5, 3, 4, 1, 2]) await kill(rig, task(path), error())
    const first = await rig.frontier.dead.list({ limit: 2 })
    const second = await rig.frontier.dead.list({ limit: 2, after: first.at(-1)!.task.id })
    const third = await rig.frontier.dead.list({ limit: 2, after: second.at(-1)!.task.id })
    assert.deepEqual(
      [first, second, third].map((page) => page.map(pathOf)),
      [['5', '3'], ['4', '1'], ['2']],
    )
    assert.deepEqual(await rig.frontier.dead.list({ after: third.at(-1)!.task.id }), [])
  }),

  check('finds dead letters by class, code, host and id', async (rig) => {
    const id = await kill(rig, task('a'), error())
    await kill(rig, task('b'), timeout)
    await kill(rig, { ...task('c'), url: 'https://b.example:8080/c' }, timeout)
    const find = async (filter: Parameters<typeof rig.frontier.dead.list>[0]) =>
      (await rig.frontier.dead.list(filter)).map(pathOf)
    assert.deepEqual(await find({ class: 'timeout' }), ['b', 'c'])
    assert.deepEqual(await find({ code: 'E_SERVER' }), ['a'])
    assert.deepEqual(await find({ host: 'b.example:8080' }), ['c'])
    assert.deepEqual(await find({ ids: [id] }), ['a'])
    assert.deepEqual(await find({ ids: [id], class: 'timeout' }), [])
    assert.deepEqual(await find({ ids: [] }), [])
  }),

  check('sees one cause in messages that differ in numbers, ids and URLs', async (rig) => {
    const firstAtMs = rig.nowMs
    for (const n of [1, 22, 333]) {
      const message = `answered 50${n % 10} after ${n} ms on https://a.example/p/${n}?q=${n}`
      await kill(rig, task(n), error({ message }))
    }
    await kill(rig, task('t'), timeout)
    const [first, second, ...rest] = await rig.frontier.dead.groups()
    assert.equal(rest.length, 0)
    const { cause, ...group } = first!
    assert.doesNotMatch(cause, /\d|a\.example/)
    assert.match(cause, /^answered .+ after .+ ms on /)
    assert.ok(group.exampleUrl.startsWith('https://a.example/'))
    assert.deepEqual(
      { ...group, exampleUrl: '' },
      { code: 'E_SERVER', class: 'server-error', count: 3, exampleUrl: '', firstAtMs, lastAtMs: firstAtMs + 2 },
    )
    assert.deepEqual([second?.code, second?.count, second?.cause], ['E_TIMEOUT_BODY', 1, 'timed out'])
  }),
]

const removing = [
  check('brings dead letters back with fresh tries', async (rig) => {
    await rig.frontier.add([task('a')])
    await rig.commit({ kind: 'retry', lease: await rig.claimOne(), atMs: 0, error: error() })
    await rig.claimOne()
    await rig.lose('worker-1')
    await rig.commit({ kind: 'dead', lease: await rig.claimOne(), error: error() })
    await kill(rig, task('b'), timeout)
    assert.equal(await rig.frontier.dead.retry({ code: 'E_SERVER' }), 1)
    await rig.expect({ dead: 1, failed: 1, pending: 1, seen: 2 })
    const lease = await rig.claimOne()
    assert.deepEqual([lease.task.url, lease.attempt, lease.losses], [task('a').url, 1, 0])
    assert.equal(await rig.frontier.dead.retry({ code: 'E_SERVER' }), 0)
    assert.equal(await rig.frontier.dead.retry(), 1)
    await rig.expect({ dead: 0, failed: 0, pending: 1, claimed: 1 })
  }),

  check('forgets dropped letters, but not that they failed and were seen', async (rig) => {
    const ids = [await kill(rig, task('a'), error()), await kill(rig, task('b'), timeout)]
    assert.equal(await rig.frontier.dead.drop({ ids: [ids[0]!, 'no such id'] }), 1)
    await rig.expect({ dead: 1, failed: 2, pending: 0, seen: 2 })
    assert.deepEqual((await rig.frontier.dead.list()).map(pathOf), ['b'])
    assert.equal(await rig.frontier.dead.drop(), 1)
    await rig.expect({ dead: 0, failed: 2, pending: 0, seen: 2 })
    assert.deepEqual(await rig.frontier.add([task('a')]), { added: 0, seen: 1 })
    assert.deepEqual(await rig.claim(5), [])
  }),

  check('brings thousands of dead letters back at once', async (rig) => {
    await rig.frontier.add(tasks(2500))
    const leases = await rig.claim(2500)
    await rig.commit(...leases.map((lease) => ({ kind: 'dead' as const, lease, error: error() })))
    await rig.expect({ dead: 2500, failed: 2500 })
    assert.equal(await rig.frontier.dead.retry(), 2500)
    await rig.expect({ dead: 0, failed: 0, pending: 2500 })
    assert.equal((await rig.claim(5000)).length, 2500)
  }),
]

export const dying = [...reading, ...removing]
