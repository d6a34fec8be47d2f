/** One suite for both stores. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { postgresForTests } from '../../test/services/postgres.ts'
import { temporaryFolder } from '../../test/sluice.ts'
import type { RunRecord, RunState } from '../core/run.ts'
import type { NewStoredRun, Store, WorkerReport } from './contract.ts'
import { openPostgresStore } from './postgres.ts'
import { openSqliteStore } from './sqlite.ts'

const ENGINES: Record<string, () => Promise<AsyncDisposable & { open(): Promise<Store> }>> = {
  'sqlite:': async () => {
    const folder = temporaryFolder()
    return {
      open: async () => openSqliteStore(join(folder.path, 'deep', 'store.db')),
      [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
    }
  },
  'postgres:': async () => {
    const database = await postgresForTests()
    return {
      open: () => openPostgresStore(database.url, async () => {}),
      [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
    }
  },
}

function run(id: string, more: Partial<RunRecord> = {}): NewStoredRun {
  const record = { id, scraper: 'books', state: 'running', reason: null, ...more } as RunRecord
  const options = { limits: { retries: 2 }, allowPrivate: false, allowAddress: ['a:1'], userAgent: 'us' }
  return { record, definitionHash: 'abc', options }
}

const report = (ok: number) => ({ tally: { pages: { ok } }, inFlight: 1, rssBytes: 2, loopLagMs: 3 }) as WorkerReport
const worker = (id: string, runId = 'r1') => ({ id, runId, scraper: 'books', host: 'here', pid: 7 })
const idsOf = (runs: readonly { record: RunRecord }[]) => runs.map(({ record }) => record.id)

for (const [name, start] of Object.entries(ENGINES)) {
  const check = (title: string, body: (store: Store, again: () => Promise<Store>) => Promise<void>) =>
    test(`${name} ${title}`, async () => {
      await using place = await start()
      await using store = await place.open()
      await body(store, place.open)
    })

  check('gives back a run as it was created, to whoever opens the store', async (store, again) => {
    const created = run('r1', { args: { pages: 3 } })
    await store.createRun(created)
    await using other = await again()
    const { createdAtMs, wokenAtMs, ...found } = (await other.findRun('r1'))!
    assert.equal(wokenAtMs, createdAtMs)
    assert.deepEqual(found, created)
    assert.ok(Math.abs(createdAtMs - Date.now()) < 60_000)
    assert.equal(await other.findRun('r2'), undefined)
  })

  check('refuses a second run of the same id', async (store) => {
    await store.createRun(run('r1'))
    await store.createRun(run('r1')) // the same one again: its answer may have been lost
    await assert.rejects(store.createRun(run('r1', { reason: 'other' })), /there is a run r1 already/)
  })

  check('shows a worker the runs of its region, and those that name none', async (store) => {
    await store.createRun(run('r1'))
    await store.createRun(run('r2', { region: 'eu' }))
    await store.createRun(run('r3', { region: 'us' }))
    const openTo = async (region: string | undefined) => idsOf(await store.listRuns({ openTo: { region } })).sort()
    assert.deepEqual(await openTo('eu'), ['r1', 'r2'])
    assert.deepEqual(await openTo(undefined), ['r1'])
    assert.equal((await store.listRuns()).length, 3)
    const { record, options } = run('r2', { region: 'us' })
    await store.wakeRun(record, options)
    assert.deepEqual(await openTo('us'), ['r1', 'r2', 'r3'])
    await store.registerWorker({ ...worker('w1'), region: 'eu', only: 'files' })
    await store.registerWorker(worker('w2'))
    const workers = (await store.listWorkers()).map(({ id, region, only }) => [id, region, only])
    assert.deepEqual(workers.sort(), [
      ['w1', 'eu', 'files'],
      ['w2', undefined, undefined],
    ])
  })

  check('finds the newest run by scraper, and of all', async (store) => {
    for (const [id, scraper] of [
      ['r1', 'books'],
      ['r2', 'books'],
      ['r3', 'jobs'],
    ] as const)
      await store.createRun(run(id, { scraper }))
    assert.equal((await store.findRun('books'))?.record.id, 'r2')
    assert.equal((await store.findRun())?.record.id, 'r3')
    assert.deepEqual(idsOf(await store.listRuns()), ['r3', 'r2', 'r1'])
    assert.deepEqual(idsOf(await store.listRuns({ scraper: 'books', limit: 1 })), ['r2'])
  })

  check('lists runs by state', async (store) => {
    const states: RunState[] = ['running', 'finished', 'stopped']
    for (const [i, state] of states.entries()) await store.createRun(run(`r${i}`, { state }))
    assert.deepEqual(idsOf(await store.listRuns({ states: ['running', 'stopped'] })), ['r2', 'r0'])
  })

  check('knows when each scraper last succeeded, however many runs of others came since', async (store) => {
    assert.deepEqual(await store.lastSuccesses(), new Map())
    const finished = (day: number) => ({ state: 'finished', finishedAt: `2026-01-0${day}T06:00:00.000Z` }) as const
    await store.createRun(run('r1', { scraper: 'weekly', ...finished(1) }))
    await store.createRun(run('r2', { scraper: 'weekly', ...finished(2) }))
    await store.createRun(run('r3', { scraper: 'weekly', state: 'failed', finishedAt: '2026-01-03T06:00:00.000Z' }))
    await store.createRun(run('r4', { scraper: 'never', state: 'running', finishedAt: null }))
    for (let i = 0; i < 120; i++) await store.createRun(run(`often${i}`, { scraper: 'often', ...finished(4) }))
    assert.deepEqual(
      await store.lastSuccesses(),
      new Map([
        ['weekly', Date.parse('2026-01-02T06:00:00.000Z')],
        ['often', Date.parse('2026-01-04T06:00:00.000Z')],
      ]),
    )
  })

  check('saves a record only from the states it may come from: of two one ends the run', async (store) => {
    await store.createRun(run('r1'))
    const finished = run('r1', { state: 'finished', reason: 'done' }).record
    const answers = await Promise.all([store.saveRun(finished, ['running']), store.saveRun(finished, ['running'])])
    assert.deepEqual(answers.sort(), [false, true])
    assert.equal((await store.findRun('r1'))?.record.state, 'finished')
  })

  check('wakes a run with other options, and its time counts anew', async (store) => {
    await store.createRun(run('r1', { state: 'finished' }))
    const before = (await store.findRun('r1'))!
    const woken = { ...before.record, state: 'running' as const }
    await store.wakeRun(woken, { ...before.options, limits: { pages: 9 } })
    const after = (await store.findRun('r1'))!
    assert.deepEqual([after.record.state, after.options.limits], ['running', { pages: 9 }])
    assert.ok(after.wokenAtMs >= before.wokenAtMs && after.createdAtMs === before.createdAtMs)
  })

  check('hears no more of a worker that has ended', async (store) => {
    await store.registerWorker(worker('w1'))
    await store.endWorker('w1', report(9))
    await store.beat('w1', report(5))
    assert.deepEqual(
      (await store.listWorkers()).map(({ state, report: said }) => [state, said?.tally.pages.ok]),
      [['ended', 9]],
    )
  })

  check('knows its workers, what they report, and which of them ended', async (store) => {
    for (const id of ['w1', 'w2']) await store.registerWorker(worker(id))
    await store.registerWorker(worker('w3', 'r2'))
    const { isDrainAsked, nowMs } = await store.beat('w1', report(5))
    assert.equal(isDrainAsked, false)
    assert.ok(Math.abs(nowMs - Date.now()) < 60_000)
    await store.endWorker('w2', report(9))
    const found = await store.listWorkers({ runId: 'r1' })
    assert.deepEqual(found.map(({ id, state, report: said }) => [id, state, said?.tally.pages.ok]).sort(), [
      ['w1', 'working', 5],
      ['w2', 'ended', 9],
    ])
    assert.ok(found.every(({ silentMs }) => silentMs >= 0 && silentMs < 60_000))
    assert.deepEqual((await store.listWorkers({ isAlive: true })).map(({ id }) => id).sort(), ['w1', 'w3'])
    assert.deepEqual(
      (await store.listWorkers({ isAlive: false })).map(({ id }) => id),
      ['w2'],
    )
  })

  check('tells a worker to drain with its next heartbeat', async (store) => {
    await store.registerWorker(worker('w1'))
    assert.equal(await store.askDrain('w1'), true)
    assert.equal(await store.askDrain('nobody'), false)
    assert.equal((await store.listWorkers())[0]?.state, 'draining')
    assert.equal((await store.beat('w1', report(1))).isDrainAsked, true)
  })

  check('keeps snapshots byte by byte, the last one of a name', async (store) => {
    await store.putSnapshot('r1', 'a.html', Uint8Array.of(0, 255, 7))
    await store.putSnapshot('r1', 'a.html', Uint8Array.of(1, 0, 2))
    assert.deepEqual([...(await store.getSnapshot('r1', 'a.html'))!], [1, 0, 2])
    assert.equal(await store.getSnapshot('r2', 'a.html'), undefined)
  })

  check('keeps each item key once, the first one, and tells what each was', async (store) => {
    const item = (key: string, n: number) => ({ key, json: JSON.stringify({ n }) })
    assert.deepEqual(await store.putItems('r1', [item('a', 1), item('b', 1), item('a', 1), item('b', 2)]), [
      'new',
      'new',
      'same',
      'changed',
    ])
    assert.deepEqual(await store.putItems('r1', [item('b', 1), item('c', 1)]), ['same', 'new'])
    assert.deepEqual(await store.putItems('r2', [item('a', 9)]), ['new'])
    const first = await store.readItems('r1', { afterSeq: 0, max: 2 })
    const rest = await store.readItems('r1', { afterSeq: first.at(-1)!.seq, max: 10 })
    assert.deepEqual(
      [...first, ...rest].map(({ key, json }) => [key, json]),
      [
        ['a', '{"n":1}'],
        ['b', '{"n":1}'],
        ['c', '{"n":1}'],
      ],
    )
    assert.equal(await store.countItems('r1'), 3)
  })

  check('takes more items at once than fit into one statement', async (store) => {
    const items = Array.from({ length: 1000 }, (_, i) => ({ key: `k${i}`, json: '{}' }))
    assert.equal((await store.putItems('r1', items)).filter((one) => one === 'new').length, 1000)
    assert.equal(await store.countItems('r1'), 1000)
  })

  check('gives back log lines in order, page by page', async (store) => {
    await store.addLogs('r1', [])
    await store.addLogs('r1', ['one', 'two'])
    await store.addLogs('r2', ['other'])
    await store.addLogs('r1', ['three'])
    const first = await store.readLogs('r1', { after: 0, max: 2 })
    assert.deepEqual(
      first.map(({ line }) => line),
      ['one', 'two'],
    )
    const rest = await store.readLogs('r1', { after: first.at(-1)!.id, max: 10 })
    assert.deepEqual(
      rest.map(({ line }) => line),
      ['three'],
    )
  })

  check('forgets a run with all that belongs to it, and no other', async (store) => {
    for (const id of ['r1', 'r2']) {
      await store.createRun(run(id))
      await store.registerWorker(worker(`w-${id}`, id))
      await store.addLogs(id, ['line'])
      await store.putSnapshot(id, 'a', Uint8Array.of(1))
    }
    await store.dropRun('r1')
    assert.deepEqual(idsOf(await store.listRuns()), ['r2'])
    assert.deepEqual(
      (await store.listWorkers()).map(({ id }) => id),
      ['w-r2'],
    )
    assert.equal(await store.getSnapshot('r1', 'a'), undefined)
    assert.deepEqual(await store.readLogs('r1', { after: 0, max: 1 }), [])
    assert.equal((await store.readLogs('r2', { after: 0, max: 1 })).length, 1)
  })

  test(`${name} is opened by ten at once`, async () => {
    await using place = await start()
    const stores = await Promise.all(Array.from({ length: 10 }, () => place.open()))
    await Promise.all(stores.map((store, i) => store.createRun(run(`r${i}`))))
    assert.equal((await stores[0]!.listRuns()).length, 10)
    for (const store of stores) await store[Symbol.asyncDispose]()
  })
}
