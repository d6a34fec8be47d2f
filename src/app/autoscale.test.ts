import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import type { RunState } from '../core/run.ts'
import type { NewTask } from '../core/task.ts'
import type { Frontier } from '../frontier/contract.ts'
import { openFrontier } from '../frontier/open.ts'
import type { RunShare } from '../orchestrator/autoscale.ts'
import type { Store, StoredRun } from '../orchestrator/contract.ts'
import { type AutoscaleLine, type AutoscaleRequest, autoscale, type Crew } from './autoscale.ts'
import { ProcessCrew } from './autoscale-processes.ts'

const task = (n: number): NewTask => ({ url: `https://shop.example/${n}`, route: 'page', data: null, depth: 0 })

/** A store with one run that is going on, and its queue. */
async function fleetOfOne(pending: number) {
  const frontier = await openFrontier('memory:')
  await frontier.add(Array.from({ length: pending }, (_, n) => task(n)))
  let state: RunState = 'running'
  let trouble: Error | undefined
  const runs = () => (state === 'running' ? [{ record: { id: 'r1', scraper: 'shop', state } } as StoredRun] : [])
  const store = {
    place: 'postgres://here',
    listRuns: async () => {
      if (trouble !== undefined) throw trouble
      return runs()
    },
    findRun: async () => runs()[0],
  } as unknown as Store
  // The queue outlives each look, so what closes it here does nothing.
  const openQueue = async () =>
    new Proxy(frontier, {
      get: (target, name) => (name === Symbol.asyncDispose ? async () => {} : bound(target, name)),
    })
  return {
    store,
    openQueue,
    frontier,
    end: () => (state = 'finished'),
    break: (error: Error | undefined) => (trouble = error),
  }
}

function bound(target: Frontier, name: string | symbol): unknown {
  const value = Reflect.get(target, name) as unknown
  return typeof value === 'function' ? value.bind(target) : value
}

/** Does at once what it is told. */
class ObedientCrew implements Crew {
  size = 0
  isDismissed = false
  countOf = () => this.size
  check = () => {}
  async scale(target: number): Promise<string[]> {
    this.size = target
    return []
  }
  async dismiss(): Promise<void> {
    this.isDismissed = true
  }
}

function request(
  parts: Pick<AutoscaleRequest, 'store' | 'openQueue' | 'crew'> & Partial<AutoscaleRequest>,
): AutoscaleRequest {
  return {
    scraper: 'shop',
    policy: { min: 0, max: 4, perWorker: 10, cooldownMs: 0 },
    intervalMs: 1,
    isForever: false,
    onDecision: () => {},
    onTrouble: () => {},
    ...parts,
  }
}

test('follows the queue, and ends when the run has and nobody is left', async () => {
  const fleet = await fleetOfOne(25)
  const crew = new ObedientCrew()
  const lines: AutoscaleLine[] = []
  const onDecision = (line: AutoscaleLine) => {
    lines.push(line)
    if (lines.length === 3) fleet.end()
  }
  const end = await autoscale(request({ ...fleet, crew, onDecision }), new AbortController().signal)
  assert.equal(end, 'finished')
  assert.deepEqual(
    lines.map(({ target }) => target),
    [3, 3, 3, 0],
  )
  assert.equal(crew.isDismissed, true)
})

test('a store that is away for a while changes nothing; one that is away from the start is an error', async () => {
  const fleet = await fleetOfOne(25)
  const crew = new ObedientCrew()
  const troubles: string[] = []
  let looks = 0
  const onDecision = () => {
    if (++looks === 1) fleet.break(new ScrapeError('E_SERVICE', 'the store does not answer'))
    else fleet.end()
  }
  const onTrouble = (message: string) => {
    troubles.push(message)
    assert.equal(crew.size, 3)
    if (troubles.length === 2) fleet.break(undefined)
  }
  assert.equal(
    await autoscale(request({ ...fleet, crew, onDecision, onTrouble }), new AbortController().signal),
    'finished',
  )
  assert.equal(troubles.length, 2)

  const away = await fleetOfOne(1)
  away.break(new ScrapeError('E_SERVICE', 'the store does not answer'))
  const other = new ObedientCrew()
  await assert.rejects(autoscale(request({ ...away, crew: other }), new AbortController().signal), {
    code: 'E_SERVICE',
  })
  assert.equal(other.isDismissed, true)
})

test('a stop dismisses the crew', async () => {
  const fleet = await fleetOfOne(5)
  const crew = new ObedientCrew()
  const stop = new AbortController()
  const end = await autoscale(request({ ...fleet, crew, onDecision: () => stop.abort() }), stop.signal)
  assert.deepEqual([end, crew.isDismissed], ['stopped', true])
})

const RUN: RunShare = { runId: 'r1', pending: 100, isPaused: false, workers: 0 }

function shellCrew(script: string, drainMs = 60_000): ProcessCrew {
  return new ProcessCrew({
    command: ['/bin/sh', '-c', script],
    workerArgs: [],
    env: {},
    drainMs,
    graceMs: 0,
    onLine: () => {},
  })
}

/** Until every worker has ended by itself. */
async function empty(crew: ProcessCrew): Promise<void> {
  while (crew.size > 0) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('replaces workers that die as long as pages get done, and gives up after ten deaths with nothing done', async () => {
  const crew = shellCrew('echo "out of luck" >&2; exit 7')
  for (let settled = 1; settled <= 6; settled++) {
    await crew.scale(3, [RUN])
    await empty(crew)
    crew.check([RUN], settled)
  }
  const dieThreeTimes = async () => {
    await crew.scale(3, [RUN])
    await empty(crew)
    crew.check([RUN], 6)
  }
  await dieThreeTimes()
  await dieThreeTimes()
  await assert.rejects(dieThreeTimes, (error: ScrapeError) => {
    assert.match(error.message, /12 times in a row with nothing done \(exit code 7\)/)
    assert.match(error.details.notes?.join() ?? '', /out of luck/)
    return true
  })
})

test('the end of a run that is over is nobody’s death', async () => {
  const crew = shellCrew('exit 1')
  await crew.scale(12, [RUN])
  await empty(crew)
  crew.check([], 0)
})

test('drains with SIGTERM, and kills who does not end in time', async () => {
  const gentle = shellCrew('trap "exit 4" TERM; while :; do sleep 0.01; done')
  assert.equal((await gentle.scale(2, [RUN])).length, 2)
  assert.equal(gentle.countOf('r1'), 2)
  assert.match((await gentle.scale(1, [RUN]))[0]!, /^drained worker 2$/)
  assert.equal(gentle.countOf('r1'), 1)
  await gentle.dismiss()
  assert.equal(gentle.size, 0)

  const deaf = shellCrew('trap "" TERM; exec sleep 60', 100)
  await deaf.scale(1, [RUN])
  await deaf.dismiss()
  assert.equal(deaf.size, 0)
})
