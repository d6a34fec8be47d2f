/** What identifies a run: its queue and its arguments. A resume may not change them. */
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/config.ts'
import { parseEngineUrl } from '../core/engine-url.ts'
import { ScrapeError } from '../core/errors.ts'
import { redactAll } from '../core/redact.ts'
import type { RunRecord } from '../core/run.ts'
import { TLS_PARAMETERS } from '../core/server-tls.ts'
import type { Json } from '../core/task.ts'
import type { Frontier } from '../frontier/contract.ts'
import type { RunFolder } from './run-folder.ts'

/** Where the queue is, as stored in the record: valid from any folder, and without a password. */
export function absolutePlace(given: string): string {
  const { path, url } = parseEngineUrl(given)
  return path === undefined ? withoutPassword(url) : `sqlite:${resolve(path)}`
}

/** The URL to open for a stored place: the one given now if it is the same place, because only that may have a password. */
export function urlOfPlace(place: string, given: string): string {
  return absolutePlace(given) === absolutePlace(place) ? given : place
}

/** A URL that is safe to display and store. */
export function withoutPassword(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null) return url.replace(/:\/\/.*@/s, '://') // up to the last @: a password may contain any character
  // A Redis may have its own password; how messages are acknowledged does not identify the place, and may change on resume.
  // Certificates are local files: another machine may have them elsewhere.
  const left = ['password', 'redis', 'ack', 'expired', ...TLS_PARAMETERS].filter((name) =>
    parsed.searchParams.has(name),
  )
  if (parsed.password === '' && left.length === 0) return url
  parsed.password = ''
  for (const name of left) parsed.searchParams.delete(name)
  return parsed.href
}

/** The configured Redis: on its own, with an `amqp:` queue, or as the queue. */
export function redisUrlOf({ frontier, redis }: { frontier: string; redis?: string | undefined }): string | undefined {
  const named = URL.parse(frontier)?.searchParams.get('redis') ?? redis
  return named ?? (parseEngineUrl(frontier).engine === 'redis' ? frontier : undefined)
}

/** The cache to open: `redis:` alone means the configured Redis. */
export function cacheStoreOf(values: { cacheStore: string; frontier: string; redis?: string | undefined }): string {
  if (parseEngineUrl(values.cacheStore).url !== 'redis:') return values.cacheStore
  const url = redisUrlOf(values)
  if (url !== undefined) return url
  throw new ScrapeError('E_OPTION', '--cache-store redis: needs a Redis URL', {
    fix: 'Name it with --redis redis://HOST:PORT/NUMBER or SLUICE_REDIS, or write the URL after --cache-store.',
  })
}

export interface QueuePlace {
  frontier: string
  redis?: string | undefined
  ack?: string | undefined
  expired?: string | undefined
}

/**
 * The queue to open: `amqp:` needs to know its Redis, and how its messages are treated. What the URL itself says takes
 * precedence.
 */
export function queueUrlOf({ frontier, ...named }: QueuePlace): string {
  const { redis, ack, expired } = named
  const given = Object.entries({ redis, ack, expired }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  )
  if (given.length === 0 || parseEngineUrl(frontier).engine !== 'amqp') return frontier
  const url = URL.parse(frontier)
  if (url === null) return frontier // opening it reports the problem
  for (const [name, value] of given) if (!url.searchParams.has(name)) url.searchParams.set(name, value)
  return url.href
}

/** `sqlite:` alone is a file in the run folder. */
export function frontierUrlOf(given: string, folder: RunFolder): string {
  const { url } = parseEngineUrl(given)
  return url === 'sqlite:' ? `sqlite:${folder.file('frontier.db')}` : url
}

/** A frontier holds one run: another run's queue at the same place must not be confused with this one. */
export async function claimFrontier(
  frontier: Frontier,
  folder: RunFolder,
  url: string,
  isResumed: boolean,
): Promise<void> {
  const owner = await frontier.getMeta('run')
  if (owner === folder.runId) return
  if (owner === undefined && !isResumed) return await frontier.setMeta('run', folder.runId)
  // An empty queue would start the run, and its files, from scratch.
  throw new ScrapeError(
    'E_OPTION',
    `the frontier ${url} ${owner === undefined ? 'is empty' : `belongs to run ${owner}`}`,
    {
      fix: isResumed
        ? 'Put the queue of this run back where it was, or start a new run without --resume.'
        : `Resume that run with --resume ${owner}, or name another place for this one.`,
    },
  )
}

/** Arguments that differ from those the run was started with. */
export function argumentProblems(kept: Json, given: Record<string, unknown>): string[] {
  const before = kept as Record<string, Json>
  return Object.entries(given)
    .filter(([name, value]) => !isDeepStrictEqual(JSON.parse(JSON.stringify(value)), before[name]))
    .map(([name, value]) => {
      const shown = (one: unknown) => JSON.stringify((redactAll({ [name]: one }) as Record<string, unknown>)[name])
      return `its argument ${name} is ${shown(before[name])}, not ${shown(value)}`
    })
}

const ARGS = 'args'

/**
 * The arguments of a run, including secrets, are stored with its tasks in the queue. `run.json` has many readers, so they are
 * masked there.
 */
export async function keepArgs(frontier: Frontier, given: Record<string, unknown>): Promise<void> {
  await frontier.setMeta(ARGS, JSON.stringify(given))
}

/**
 * The arguments that a resumed run continues with, checked against those given again. Runs of earlier versions have them in their
 * record.
 */
export async function keptArgs(
  frontier: Frontier,
  previous: RunRecord,
  again: Record<string, unknown> = {},
): Promise<Record<string, unknown>> {
  const kept = await frontier.getMeta(ARGS)
  const args = (kept === undefined ? previous.args : JSON.parse(kept)) as Record<string, unknown>
  refuseProblems(previous.id, argumentProblems(args as Json, again))
  return args
}

/** The arguments and the queue of a run cannot change half-way. */
export function refuseOtherRun(
  previous: RunRecord,
  { args = {} }: { args?: Record<string, unknown> },
  { values, origins }: Config,
): void {
  const problems = argumentProblems(redactAll(previous.args), redactAll(args))
  if (origins.frontier !== 'default' && absolutePlace(values.frontier) !== absolutePlace(previous.frontier)) {
    problems.push(`its queue is in ${previous.frontier}, not in ${absolutePlace(values.frontier)}`)
  }
  if (parseEngineUrl(previous.frontier).engine === 'memory') problems.push('its queue was in memory, and is gone')
  refuseProblems(previous.id, problems)
}

function refuseProblems(runId: string, problems: string[]): void {
  if (problems.length === 0) return
  throw new ScrapeError('E_OPTION', `run ${runId} cannot be resumed with these arguments`, {
    notes: problems,
    fix: 'Resume it without these flags, or start a new run without --resume.',
  })
}
