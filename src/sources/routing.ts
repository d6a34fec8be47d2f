/** Routing rules: the lane, priority and time to live of a URL, depending on what it looks like. */
import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { ScrapeError } from '../core/errors.ts'
import { parseDurationMs } from '../core/options.ts'

const ruleSchema = z.strictObject({
  /** Regular expression, case-insensitive. */
  match: z.string().min(1),
  lane: z.string().min(1).optional(),
  priority: z.number().optional(),
  /** A message that is not fetched in this time expires, if the queue supports it (`amqp:`); the queue's own limit counts too. */
  ttl: z.union([z.string(), z.number()]).transform(parseDurationMs).optional(),
})
const rulesSchema = z.array(ruleSchema).max(1000)

export interface Routing {
  lane?: string
  priority?: number
  ttlMs?: number
}

/** The first matching rule decides; undefined: the scraper decides. */
export type Route = (url: string) => Routing | undefined

export function readRules(path: string): Route {
  let given: unknown
  try {
    given = JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw new ScrapeError('E_OPTION', `the rules in ${path} cannot be read: ${(cause as Error).message}`, { cause })
  }
  return compileRules(given, path)
}

export function compileRules(given: unknown, at: string): Route {
  const parsed = rulesSchema.safeParse(given)
  const problems = parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  const rules = (parsed.data ?? []).map(({ match, lane, priority, ttl }, i) => {
    if (ttl !== undefined && !(ttl >= 0)) problems.push(`${i}.ttl: must be a time such as "5m"`)
    return { pattern: patternOf(match, i, problems), lane, priority, ttl }
  })
  if (problems.length > 0)
    throw new ScrapeError('E_OPTION', `the routing rules in ${at} are not usable`, {
      notes: problems,
      fix: 'A list of {"match": "regular expression", "lane": "priority", "priority": 1, "ttl": "5m"}.',
    })
  return (url) => {
    const found = rules.find(({ pattern }) => pattern.test(url))
    if (found === undefined) return undefined
    const { lane, priority, ttl } = found
    return {
      ...(lane === undefined ? {} : { lane }),
      ...(priority === undefined ? {} : { priority }),
      ...(ttl === undefined ? {} : { ttlMs: ttl }),
    }
  }
}

function patternOf(match: string, i: number, problems: string[]): RegExp {
  try {
    return new RegExp(match, 'i')
  } catch (error) {
    problems.push(`${i}.match: ${(error as Error).message}`)
    return /$^/
  }
}
