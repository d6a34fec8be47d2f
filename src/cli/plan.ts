/** `--dry-run`: what a run would do, from the definition alone. Nothing is fetched and nothing written. */

import { seed } from '../app/run/seed.ts'
import type { Config } from '../config/config.ts'
import { checkArgs } from '../config/scraper-arguments.ts'
import { userAgent } from '../config/user-agent.ts'
import { createEventBus } from '../core/events.ts'
import type { Scraper } from '../core/scraper.ts'
import { compileScraper } from '../crawl/compile-scraper.ts'
import { openMemoryFrontier } from '../frontier/memory/engine.ts'

interface PlanRequest {
  scraper: Scraper
  file: string
  args: Record<string, unknown>
  config: Config
}

const SHOWN_MAX = 10

export async function planText({ scraper, file, args: given, config }: PlanRequest): Promise<string> {
  const compiled = compileScraper(scraper, config.limits, file)
  const args = checkArgs(scraper, given)
  await using frontier = openMemoryFrontier({})
  await seed({ compiled, args, frontier, bus: createEventBus(), stop: AbortSignal.timeout(60_000) })
  const { pending } = await frontier.stats()
  const first = await frontier.claim({ max: SHOWN_MAX, workerId: 'plan', leaseMs: 60_000 })
  const { limits } = compiled
  const lines = [
    `scraper   ${scraper.name}  ${file}`,
    `args      ${JSON.stringify(args)}`,
    `start     ${pending} task${pending === 1 ? '' : 's'}`,
    ...first.map(({ task }) => `          ${task.route}  ${task.url}`),
    ...(pending > first.length ? [`          … and ${pending - first.length} more`] : []),
    `limits    ${limits.concurrency} in flight, ${limits.perHost.concurrency} per host, ${limits.perHost.rps || 'any'} requests/s per host, ${limits.retries} retries, robots.txt ${limits.robots === 'respect' ? 'respected' : 'ignored'}`,
    `agent     ${userAgent(config.values)}`,
    `output    ${config.values.out}/${scraper.name}/<run id>/  (${formats(scraper, config)})`,
    'nothing was fetched and nothing written',
  ]
  return `${lines.join('\n')}\n`
}

function formats(scraper: Scraper, config: Config): string {
  const own = (scraper.sinks ?? []).map((sink) => sink.kind)
  return config.values.format ?? (own.length > 0 ? own.join(',') : 'jsonl,csv')
}
