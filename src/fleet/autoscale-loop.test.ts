import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ScrapeError } from '../core/errors.ts'
import type { RunState } from '../core/run.ts'
import type { NewTask } from '../core/task.ts'
import { openFrontier } from '../frontier/open.ts'
import { over } from '../frontier/over.ts'
import type { Store, StoredRun } from '../store/contract.ts'
import type { Staffing } from './autoscale.ts'
import { type AutoscaleLine, type AutoscaleRequest, autoscale, type Crew } from './autoscale-loop.ts'

const task = (n: number): NewTask => ({ url: `https://shop.example/${n}`, route: 'page', data: null, depth: 0 })

/** A store with one running run, and its queue. */
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
  // The queue outlives each look, so closing it here does nothing.
  const openQueue = async () => over(frontier, { [Symbol.asyncDispose]: async () => {} })
  return {
    store,
    openQueue,
    frontier,
    end: () => (state = 'finished'),
    break: (error: Error | undefined) => (trouble = error),
  }
}

/** Carries out orders at once. */
class ObedientCrew implements Crew {
  size = 0
  isDismissed = false
  countOf = () => this.size
  check = () => {}
  async scale({ target }: Staffing): Promise<string[]> {
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

test('follows the queue, and ends when the run is over and no worker is left', async () => {
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

test('ignores a store that is down for a while, but fails if it is down from the start', async () => {
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

test('dismisses the crew when stopped', async () => {
  const fleet = await fleetOfOne(5)
  const crew = new ObedientCrew()
  const stop = new AbortController()
  const end = await autoscale(request({ ...fleet, crew, onDecision: () => stop.abort() }), stop.signal)
  assert.deepEqual([end, crew.isDismissed], ['stopped', true])
})

test('measures cooldowns by the given clock, not by the time of day', async () => {
  const fleet = await fleetOfOne(5)
  let nowMs = 0
  const targets: number[] = []
  const onDecision = ({ target }: AutoscaleLine) => {
    targets.push(target)
    if (targets.length === 1) nowMs = 999
    if (targets.length === 2) nowMs = 1000
    if (targets.length === 3) fleet.end()
  }
  const policy = { min: 0, max: 4, perWorker: 10, cooldownMs: 1000 }
  const openQueue = async () => {
    const queue = await fleet.openQueue()
    return over(queue, { stats: async () => ({ ...(await queue.stats()), pending: targets.length === 0 ? 5 : 40 }) })
  }
  const crew = new ObedientCrew()
  await autoscale(
    request({ ...fleet, openQueue, crew, policy, onDecision, now: () => nowMs }),
    new AbortController().signal,
  )
  assert.deepEqual(targets, [1, 1, 4, 0])
})
