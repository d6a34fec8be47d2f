/**
 * How many workers, bytes and machines a number of pages needs on each engine. Every assumption of capacity-model.ts is a flag.
 *
 *   node bench/capacity.ts [--pages 1e9] [--days 30] [--page-bytes 20000] [--rps-per-host 1] … [--json]
 */
import { parseArgs } from 'node:util'
import { ASSUMED, type Assumptions, ENGINES, type Plan, planFor } from './capacity-model.ts'

const flagOf = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
const NAMES = Object.keys(ASSUMED) as (keyof Assumptions)[]

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    ...Object.fromEntries(NAMES.map((name) => [flagOf(name), { type: 'string' as const }])),
  },
})

function given(): Partial<Assumptions> {
  const said: Partial<Assumptions> = {}
  for (const name of NAMES) {
    const text = (values as Record<string, string | boolean | undefined>)[flagOf(name)]
    if (text === undefined) continue
    const value = Number(text)
    if (!(value >= 0) || value === Number.POSITIVE_INFINITY) throw new Error(`--${flagOf(name)} ${text} is no number`)
    said[name] = value
  }
  return said
}

const count = (value: number) => Math.round(value).toLocaleString('en')
const round = (value: number) => (value >= 10 ? count(value) : String(Number(value.toPrecision(2))))
const gb = (bytes: number) => `${round(bytes / 1e9)} GB`

const ROWS: [label: string, of: (plan: Plan) => string][] = [
  ['pages/s', (plan) => round(plan.pagesPerS)],
  ['hosts at once', (plan) => count(plan.hostsAtOnce)],
  ['workers', (plan) => count(plan.workers)],
  ['cores of workers', (plan) => round(plan.workerCores)],
  ['memory of workers', (plan) => gb(plan.workerMemoryBytes)],
  ['cores of server', (plan) => round(plan.serverCores)],
  ['memory of server', (plan) => gb(plan.serverMemoryBytes)],
  ['runs', (plan) => count(plan.runs)],
  ['queue in use', (plan) => `${round(plan.queueShare * 100)} %`],
  ['disk', (plan) => gb(plan.diskBytes)],
  ['network', (plan) => gb(plan.networkBytes)],
  ['a month', (plan) => round(plan.costPerMonth)],
]

const assumptions = given()
const plans = ENGINES.map((engine) => planFor(engine, assumptions))
if (values.json) console.log(JSON.stringify({ assumptions: { ...ASSUMED, ...assumptions }, plans }, null, 2))
else {
  console.log(
    ['', ...ENGINES]
      .map((cell, n) => cell.padEnd(n === 0 ? 18 : 12))
      .join(' ')
      .trimEnd(),
  )
  for (const [label, of] of ROWS)
    console.log([label.padEnd(18), ...plans.map((plan) => of(plan).padEnd(12))].join(' ').trimEnd())
  for (const { engine, limits } of plans) for (const limit of limits) console.log(`! ${engine}: ${limit}`)
}
