/**
 * The conformance suite of the frontier: what the contract promises, asked of an engine. A third party runs it in four lines:
 *
 *   import { frontierConformance } from './conformance.ts'
 *   frontierConformance('mine:', ({ place, now, fresh }) => openMine(place, { now, fresh }))
 *
 * Checks of what an engine says it cannot do (`can`) are skipped. Time is turned, never slept.
 */
import { test } from 'node:test'
import { adding } from './conformance/adding.ts'
import { claiming } from './conformance/claiming.ts'
import { dying } from './conformance/dying.ts'
import { keeping } from './conformance/keeping.ts'
import { loggingItems } from './conformance/logging-items.ts'
import { losing } from './conformance/losing.ts'
import { modelled } from './conformance/model-run.ts'
import type { FrontierCheck, OpenForCheck } from './conformance/rig.ts'
import { settling } from './conformance/settling.ts'

export type { FrontierCheck, OpenForCheck } from './conformance/rig.ts'

/** Every check, to be run by hand: `await check.run(open)` rejects when the engine breaks the promise. */
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

/** Registers every check with node:test under the engine's name. */
export function frontierConformance(name: string, open: OpenForCheck): void {
  for (const { title, needs, run } of frontierChecks) {
    test(`${name} ${title}`, async (context) => {
      if (needs !== undefined && !(await canDo(open, needs))) context.skip(`${name} is not ${needs}`)
      else await run(open)
    })
  }
}

async function canDo(open: OpenForCheck, need: 'durable' | 'shared'): Promise<boolean> {
  await using frontier = await open({ place: `probe-${process.pid}`, now: Date.now, fresh: true })
  return frontier.can[need]
}
