/**
 * `make chaos SEED=1 MINUTES=5`: runs fault schedules on every engine, each from its own seed, until the time is up. Prints one
 * line per schedule; to repeat one: `make chaos SEED=7 MINUTES=0 ENGINES=redis`.
 */
import { FLEET_ENGINES, type FleetEngine } from '../test/faults/chaos/engines.ts'
import { runFleetSchedule, type ScheduleResult } from '../test/faults/chaos/schedule.ts'
import { runSingleSchedule } from '../test/faults/chaos/single.ts'

const env = (name: string, fallback: string) => process.env[name] || fallback
const firstSeed = Number(env('SEED', '1'))
const minutes = Number(env('MINUTES', '5'))
const engines = env('ENGINES', `sqlite,${Object.keys(FLEET_ENGINES).join()}`).split(',')

const runOn = (engine: string, seed: number): Promise<ScheduleResult> =>
  engine === 'sqlite' ? runSingleSchedule(seed) : runFleetSchedule(engine as FleetEngine, seed)

const results: ScheduleResult[] = []
const endMs = Date.now() + minutes * 60_000
for (let seed = firstSeed; seed === firstSeed || Date.now() < endMs; seed++) {
  for (const engine of engines) {
    if (seed > firstSeed && Date.now() >= endMs) break
    const startMs = Date.now()
    const result = await runOn(engine, seed).catch(
      (error: Error): ScheduleResult => ({ engine, seed, faults: [], lost: 0, doubled: 0, wrong: [error.message] }),
    )
    results.push(result)
    const { faults, lost, doubled, wrong } = result
    const seconds = Math.round((Date.now() - startMs) / 1000)
    console.log(`${engine} seed ${seed}: ${lost} lost, ${doubled} doubled, ${seconds} s (${faults.join(', ')})`)
    for (const line of wrong) console.log(`  WRONG ${line}`)
  }
}
const sum = (of: readonly ScheduleResult[], pick: (result: ScheduleResult) => number) =>
  of.reduce((total, result) => total + pick(result), 0)
console.table(
  engines.map((engine) => {
    const own = results.filter((result) => result.engine === engine)
    return {
      engine,
      schedules: own.length,
      faults: sum(own, ({ faults }) => faults.length),
      lost: sum(own, ({ lost }) => lost),
      doubled: sum(own, ({ doubled }) => doubled),
      wrong: sum(own, ({ wrong }) => wrong.length),
    }
  }),
)
process.exitCode = results.some(({ lost, doubled, wrong }) => lost + doubled + wrong.length > 0) ? 1 : 0
