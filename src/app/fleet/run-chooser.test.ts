/** Which run a multi-run worker takes, with fake stores and queues so that a single run can misbehave. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { temporaryFolder } from '../../../test/sluice.ts'
import { resolveConfig } from '../../config/config.ts'
import { ScrapeError } from '../../core/errors.ts'
import type { Frontier, FrontierStats } from '../../frontier/contract.ts'
import type { Store, StoredRun, StoredWorker, WorkPart } from '../../store/contract.ts'
import { definitionHash } from './definition-hash.ts'
import { RunChooser } from './run-chooser.ts'
import { TURN_MS } from './worker-shares.ts'

const folder = temporaryFolder()
after(() => folder[Symbol.dispose]())
const file = join(folder.path, 'apples.ts')
writeFileSync(join(folder.path, 'package.json'), '{"type": "module"}')
writeFileSync(
  file,
  `import { defineScraper } from 'sluice'
  import * as z from 'zod'
  export default defineScraper({
    name: 'apples', item: z.object({}), routes: { page: {} }, start: () => {}, handlers: { page() {} },
  })`,
)

const away = (what: string) => new ScrapeError('E_SERVICE', `${what} is unreachable`)

interface Given {
  /** Oldest first, with each run's answer: has work, has none, or an error. */
  runs: Record<string, boolean | Error | (() => Error)>
  only?: WorkPart
}

async function rig({ runs, only }: Given) {
  const clock = { ms: 1_000_000 }
  const asked: string[] = []
  const said: string[] = []
  const workers: string[] = []
  let opened = 0
  let storeError: Error | undefined
  const fromStore = <T>(value: T): Promise<T> =>
    storeError === undefined ? Promise.resolve(value) : Promise.reject(storeError)
  const runOf = (id: string) =>
    ({
      record: { id, scraper: 'apples', source: file },
      definitionHash: definitionHash(file),
      options: { limits: {} },
    }) as unknown as StoredRun
  const store = {
    listRuns: () => fromStore(Object.keys(runs).reverse().map(runOf)),
    listWorkers: () => fromStore(workers.map((runId) => ({ runId, state: 'working' }) as StoredWorker)),
    findRun: (id: string) => fromStore(runOf(id)),
  } as unknown as Store
  const random = { value: 0 }
  const chooser = new RunChooser({
    store,
    config: await resolveConfig({ flags: {}, cwd: folder.path }),
    scrapers: [file],
    only,
    say: (line) => void said.push(line),
    now: () => clock.ms,
    random: () => random.value,
    openRun: async ({ record }) => {
      opened++
      const stats = async () => {
        asked.push(record.id)
        clock.ms += 10
        const given = runs[record.id]
        const answer = typeof given === 'function' ? given() : given
        if (answer instanceof Error) throw answer
        return { isPaused: !answer, remaining: 5, lanes: {} } as FrontierStats
      }
      const frontier = { stats } as Frontier
      return { record, frontier, filling: undefined, refresh: async () => {}, [Symbol.asyncDispose]: async () => {} }
    },
  })
  await chooser.open()
  return {
    runs,
    clock,
    asked,
    said,
    workers,
    random,
    chooser,
    opened: () => opened,
    breakStore: (error: Error | undefined) => {
      storeError = error
    },
    /** The id of the chosen run, or that there is none. */
    async next() {
      const chosen = await chooser.next()
      return typeof chosen === 'string' ? chosen : chosen.run.record.id
    },
    async givesWay(runId: string, sinceMs: number) {
      const stats = async () => ({ isPaused: false, remaining: 5, lanes: {} }) as unknown as FrontierStats
      return await chooser.mustGiveWay({ runId, stats }, sinceMs)
    },
  }
}

const idle = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`idle-${i}`, false]))

test('reaches a run with work in one look, behind 70 idle runs', async () => {
  const { next, chooser } = await rig({ runs: { ...idle(70), busy: true } })
  await using _ = chooser
  assert.equal(await next(), 'busy')
})

test('ends a look in time, and starts the next with the runs it did not ask', async () => {
  const { next, asked, chooser } = await rig({ runs: { ...idle(700), busy: true } })
  await using _ = chooser
  assert.equal(await next(), 'more')
  assert.ok(asked.length < 600)
  assert.equal(await next(), 'busy')
  assert.equal(new Set(asked).size, 701, 'each was asked')
  assert.equal(asked.length, 701, 'and none twice')
})

test('asks idle runs less and less often, and says `none` only when all were asked', async () => {
  const { next, asked, clock, chooser } = await rig({ runs: idle(70) })
  await using _ = chooser
  const endMs = clock.ms + 300_000
  while (clock.ms < endMs) {
    assert.equal(await next(), 'none')
    clock.ms += 2000
  }
  assert.ok(asked.length < 70 * 10, `asked ${asked.length} times in 5 minutes`)
})

test('is not held up by a run whose queue is down, reports it once, and takes the run when the queue is back', async () => {
  const { runs, next, said, clock, chooser } = await rig({ runs: { lost: away('redis://cache'), busy: true } })
  await using _ = chooser
  for (let i = 0; i < 5; i++, clock.ms += 6000) assert.equal(await next(), 'busy')
  assert.deepEqual(said, ['run lost is left alone for a while: redis://cache is unreachable'])
  runs['lost'] = true
  runs['busy'] = false
  clock.ms += 60_000
  assert.equal(await next(), 'lost')
})

test('reports a store that goes down with the queue, without blaming a run', async () => {
  const goAway = () => {
    breakStore(away('the store'))
    return away('the queue')
  }
  const { runs, next, said, breakStore, chooser } = await rig({ runs: { busy: goAway } })
  await using _ = chooser
  await assert.rejects(next(), /the store is unreachable/)
  assert.deepEqual(said, [])
  breakStore(undefined)
  runs['busy'] = true
  assert.equal(await next(), 'busy')
})

test('opens a queue once, however often it is asked', async () => {
  const { givesWay, workers, random, clock, opened, asked, chooser } = await rig({ runs: { own: true, waits: true } })
  await using _ = chooser
  const sinceMs = clock.ms - TURN_MS
  workers.push(...Array<string>(50).fill('own'))
  random.value = 0.5
  assert.equal(await givesWay('own', sinceMs), false, 'one run waits: about one of fifty goes')
  assert.deepEqual(asked, [], 'and only that one asks')
  random.value = 0.01
  for (let i = 0; i < 5; i++) assert.equal(await givesWay('own', sinceMs), true)
  assert.deepEqual([asked, opened()], [Array(5).fill('waits'), 1])
})

test('keeps a worker where it is until its turn is over, and while no other run has work', async () => {
  const { runs, givesWay, workers, clock, chooser } = await rig({ runs: { own: true, waits: true } })
  await using _ = chooser
  workers.push('own')
  assert.equal(await givesWay('own', clock.ms), false)
  assert.equal(await givesWay('own', clock.ms - TURN_MS), true)
  runs['waits'] = false
  assert.equal(await givesWay('own', clock.ms - TURN_MS), false)
})

test('may retake a run it left to give way at once, but a run it left on its own only after a pause', async () => {
  const { runs, next, givesWay, workers, clock, chooser } = await rig({ runs: { own: true, waits: true } })
  await using _ = chooser
  assert.equal(await next(), 'own')
  workers.push('own')
  assert.equal(await givesWay('own', clock.ms - TURN_MS), true)
  runs['waits'] = false // another worker was faster
  workers.pop()
  chooser.left('own', { how: 'stopped' })
  assert.equal(await next(), 'own')
  chooser.left('own', { how: 'stopped' })
  assert.equal(await next(), 'none')
  clock.ms += 5001
  assert.equal(await next(), 'own')
})
