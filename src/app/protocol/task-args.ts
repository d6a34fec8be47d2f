/** Maps the parameters of a task to the arguments of our scrapers and the fetch chain. */

import { argumentNames, checkArgs } from '../../config/scraper-arguments.ts'
import type { DelayRange } from '../../core/options.ts'
import type { Scraper } from '../../core/scraper.ts'
import type { Json } from '../../core/task.ts'
import type { Posting } from '../../jobs/read/posting.ts'
import type { TaskParams } from '../../protocol/messages.ts'

/** Names on the wire → names our job scrapers use; a scraper that accepts the wire's own name gets it under that name. */
const OUR_NAMES: Readonly<Record<string, string>> = {
  search_term: 'search',
  location: 'location',
  results_wanted: 'results',
  job_type: 'type',
  is_remote: 'remote',
  posted_since: 'since',
}
/** Handled by the worker, whatever the scraper accepts. */
const OURS = new Set(['proxy', 'user_agent', 'delay_range', 'page_limit', 'results_wanted', 'salary_min', 'salary_max'])
const DAY_MS = 86_400_000

interface TaskArgs {
  args: Json
  /** Wire parameters that this scraper cannot use. */
  ignored: string[]
}

/** Throws E_OPTION for arguments that the scraper does not accept, or not in this form. */
export function taskArgs(scraper: Scraper, params: TaskParams, now: () => number = Date.now): TaskArgs {
  const known = argumentNames(scraper)
  const given: Record<string, unknown> = {}
  const ignored: string[] = []
  const { args = {}, ...named } = params
  for (const [name, value] of Object.entries(named)) {
    if (value === undefined) continue
    const isOfWire = name in OUR_NAMES || OURS.has(name)
    const own = [name, OUR_NAMES[name] ?? name].find((one) => known.includes(one))
    if (own !== undefined) given[own] = own === 'since' ? daysSince(value, now()) : value
    else if (!isOfWire)
      given[name] = value // checkArgs rejects it and lists the valid names
    else if (!OURS.has(name)) ignored.push(name)
  }
  return { args: checkArgs(scraper, { ...given, ...args }), ignored }
}

function daysSince(value: unknown, nowMs: number): unknown {
  return typeof value === 'string' ? Math.max(0, (nowMs - Date.parse(value)) / DAY_MS) : value
}

/** The parts of a task that need a different egress than the worker's own. */
export interface ChainWish {
  proxy?: string
  userAgent?: string
  delayMs?: DelayRange
}

export function chainWish({ proxy, user_agent, delay_range }: TaskParams): ChainWish {
  return {
    ...(proxy === undefined ? {} : { proxy }),
    ...(user_agent === undefined ? {} : { userAgent: user_agent }),
    ...(delay_range === undefined ? {} : { delayMs: rangeMs(delay_range) }),
  }
}

function rangeMs([one, other]: readonly [number, number]): DelayRange {
  return [Math.min(one, other) * 1000, Math.max(one, other) * 1000]
}

/** A posting without a salary is kept. */
export function paysWithin({ salary_min, salary_max }: TaskParams, posting: Posting): boolean {
  const most = posting.salary_annual_max ?? posting.salary_annual_min
  const least = posting.salary_annual_min ?? posting.salary_annual_max
  if (salary_min !== undefined && most !== null && most < salary_min) return false
  return !(salary_max !== undefined && least !== null && least > salary_max)
}
