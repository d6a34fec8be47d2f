/**
 * The conformance suite of the frontier: checks an engine against the contract. A third party runs it in four lines:
 *
 *   import { frontierConformance } from './conformance.ts'
 *   frontierConformance('mine:', ({ place, now, fresh }) => openMine(place, { now, fresh }))
 *
 * Checks for capabilities that an engine does not declare are skipped. Time is simulated: the suite never sleeps.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { adding } from './conformance/adding.ts'
import { claiming } from './conformance/claiming.ts'
import { dying } from './conformance/dying.ts'
import { keeping } from './conformance/keeping.ts'
import { loggingItems } from './conformance/logging-items.ts'
import { losing } from './conformance/losing.ts'
import { check, type FrontierCheck, type OpenForCheck } from './conformance/rig.ts'
import { settling } from './conformance/settling.ts'

export type { FrontierCheck, OpenForCheck } from './conformance/rig.ts'

const modelled = [
  check('agrees with the model after every step of a random history', async (rig) => {
    const { agreeOnHistories } = await import('./conformance/model-run.ts') // loads fast-check, which `replay` does not need
    await agreeOnHistories(rig)
  }),
]

/** Every check, to be run individually: `await check.run(open)` rejects if the engine breaks the promise. */
export const frontierChecks: readonly FrontierCheck[] = [
  ...adding,
  ...claiming,
  ...settling,
  ...losing,
  ...dying,
  ...loggingItems,
  ...keeping,
  ...modelled,
]

interface ConformanceOptions {
  /** Capabilities the engine does not declare (`can`): their checks are skipped, and the declaration itself is checked. */
  cannot?: readonly ('durable' | 'shared')[]
}

/** Registers every check with node:test under the engine's name. */
export function frontierConformance(name: string, open: OpenForCheck, { cannot = [] }: ConformanceOptions = {}): void {
  for (const { title, needs, run } of frontierChecks) {
    if (needs === undefined || !cannot.includes(needs)) test(`${name} ${title}`, () => run(open))
  }
  test(`${name} declares what it can`, async () => {
    await using frontier = await open({ place: `probe-${process.pid}`, now: Date.now, fresh: true })
    const { durable, shared } = frontier.can
    assert.deepEqual({ durable, shared }, { durable: !cannot.includes('durable'), shared: !cannot.includes('shared') })
  })
}
