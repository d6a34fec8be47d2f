/** `sluice/testing`: the kits for engines and sinks of your own, and replay for scrapers. They run under `node --test`. */
export { type Replayed, replay } from './app/tools/replay.ts'
export { type FrontierCheck, frontierChecks, frontierConformance } from './frontier/conformance.ts'
export type { Frontier } from './frontier/contract.ts'
export { sinkChecks, sinkConformance } from './sinks/conformance.ts'
