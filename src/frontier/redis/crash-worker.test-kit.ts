/** A process for the crash tests of the engines on Redis. */
import { crawlUntilDone } from '../crash-site.test-kit.ts'
import { type CrashPlan, openPlanned } from './crash-plan.test-kit.ts'

const plan = JSON.parse(process.argv[2]!) as CrashPlan
await using frontier = await openPlanned(plan)
await crawlUntilDone(frontier, plan.pages, { max: 10, pollMs: 5 })
