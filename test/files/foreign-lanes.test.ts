/** Files that wait for a silent machine: reported, then given up; never while it is alive. */
import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createEventBus, type EventOf, type RunEvent } from '../../src/core/events.ts'
import { ForeignLanes } from '../../src/files/foreign-lanes.ts'
import { LaneLife } from '../../src/files/lane-life.ts'
import { openFrontier } from '../../src/frontier/open.ts'
import { postgresForTests } from '../services/postgres.ts'
import { temporaryFolder } from '../sluice.ts'
import { fileTask } from './loop-rig.ts'

const LANE = 'files@there'
const STEP_MS = 20_000

async function rig(url = 'memory:') {
  const frontier = await openFrontier(url)
  const said: RunEvent[] = []
  const bus = createEventBus()
  bus.on((event) => said.push(event))
  let nowMs = 0
  const foreign = new ForeignLanes({ frontier, bus, workerId: 'w1', now: () => nowMs })
  return {
    frontier,
    add: (...names: string[]) =>
      frontier.add(
        names.map((name) =>
          fileTask(
            'http://shop.example/cart',
            { type: 'upload', path: `/spool/${name}`, name },
            { lane: LANE, key: name },
          ),
        ),
      ),
    /** Looks every 20 s for this long. */
    async look(minutes: number, stepMs = STEP_MS) {
      for (let ms = 0; ms < minutes * 60_000; ms += stepMs) {
        nowMs += stepMs
        const { lanes, isPaused } = await frontier.stats()
        await foreign.look({ lanes: Object.entries(lanes).filter(([lane]) => lane === LANE), isPaused })
      }
    },
    dead: async () => (await frontier.dead.list()).length,
    sign: () => new LaneLife(frontier).sign(LANE),
    logs: () => said.filter((event) => event.type === 'log').map(({ message }) => message),
    failed: () => said.filter((event): event is EventOf<'file'> => event.type === 'file' && event.outcome === 'failed'),
    [Symbol.asyncDispose]: () => frontier[Symbol.asyncDispose](),
  }
}

async function givesUp(url: string): Promise<void> {
  await using files = await rig(url)
  await files.sign()
  await files.add('a.pdf', 'b.pdf', 'c.pdf')
  const [lease] = await files.frontier.claim({ max: 1, workerId: 'gone', leaseMs: 60_000, lanes: [LANE] })
  assert.ok(lease)
  await files.frontier.sweep({ lossesMax: 3, workerIds: ['gone'] })
  await files.look(10)
  assert.equal(await files.dead(), 0, 'watched for not quite ten minutes')
  await files.look(1)
  const letters = await files.frontier.dead.list()
  assert.deepEqual(new Set(letters.map(({ error }) => error.code)), new Set(['E_FILE_LOST']))
  const text = letters.map(({ error }) => error.message).join()
  for (const name of ['a.pdf', 'b.pdf', 'c.pdf']) assert.match(text, new RegExp(`"${name}" \\(/spool/${name}\\)`))
  assert.ok(text.includes('the id there') && text.includes(hostname()), text)
  assert.equal((await files.frontier.stats()).remaining, 0)
  assert.equal(files.failed().length, 3)
}

test('turns files of a machine that is silent for ten minutes into dead letters that name it (SQLite)', async () => {
  using folder = temporaryFolder()
  await givesUp(`sqlite:${join(folder.path, 'queue.db')}`)
})

test('turns files of a machine that is silent for ten minutes into dead letters that name it (PostgreSQL)', async () => {
  await using database = await postgresForTests()
  await givesUp(database.url)
})

test('reports files of other machines once a minute, as long as none is stored', async () => {
  await using files = await rig()
  await files.add('a.pdf', 'b.pdf', 'c.pdf')
  await files.look(4 / 3)
  assert.equal(files.logs().length, 1)
  assert.match(files.logs()[0]!, /3 downloads of a browser wait for .* id there .* given up after 10 min/)
  await files.look(1)
  assert.equal(files.logs().length, 2)
  const leases = await files.frontier.claim({ max: 1, workerId: 'there', leaseMs: 60_000, lanes: [LANE] })
  await files.look(1)
  await files.frontier.commit(leases.map((lease) => ({ kind: 'done', lease })))
  await files.look(2 / 3)
  assert.equal(files.logs().length, 2, 'somebody is there')
})

test('keeps the files of a machine that sends heartbeats, however long they wait', async () => {
  await using files = await rig()
  await files.add('a.pdf')
  for (let i = 0; i < 4; i++) {
    await files.sign()
    await files.look(9)
  }
  assert.equal(await files.dead(), 0)
  await files.look(2)
  assert.equal(await files.dead(), 1)
})

test('does not count silence in a paused run, or while the queue was down', async () => {
  await using files = await rig()
  await files.add('a.pdf')
  await files.look(9)
  await files.frontier.pause('lunch')
  await files.look(30)
  await files.frontier.resume()
  await files.look(9)
  await files.look(60, 3_600_000)
  assert.equal(await files.dead(), 0)
})

test('gives files that were given up and retried another ten minutes', async () => {
  await using files = await rig()
  await files.add('a.pdf')
  await files.look(11)
  assert.equal(await files.frontier.dead.retry(), 1)
  await files.look(9)
  assert.equal(await files.dead(), 0)
  await files.look(2)
  assert.equal(await files.dead(), 1)
})
