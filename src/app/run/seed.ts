/**
 * Fills the frontier at the start of a run, with the scraper's own start tasks or a list of URLs. Repeated after a crash
 * half-way.
 */

import { type ErrorRecord, ScrapeError, toErrorRecord, toScrapeError } from '../../core/errors.ts'
import type { EventBus } from '../../core/events.ts'
import { REFUSED_LANE, refusalOf, refusedTask } from '../../core/refused.ts'
import type { NewTask } from '../../core/task.ts'
import { hostOf } from '../../core/url.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import { enqueuePolicy, newCounts, toTasks } from '../../crawl/enqueue.ts'
import { LatestRoutes } from '../../crawl/queued-routes.ts'
import { UnawaitedCalls } from '../../crawl/unawaited-calls.ts'
import { type AddressOptions, refusedLiteral } from '../../fetch/net/address.ts'
import type { Added, Frontier } from '../../frontier/contract.ts'
import type { FoundUrl } from '../../sources/contract.ts'

interface SeedParts {
  compiled: CompiledScraper
  args: unknown
  frontier: Frontier
  bus: EventBus
  /** The run's creator may name hosts in the private network. Default true; API callers may not. */
  isTrusted?: boolean
  stop: AbortSignal
}

/** Whether all start tasks are in the queue: only then does an empty queue mean that nothing is left. */
export async function isFilled(frontier: Frontier): Promise<boolean> {
  return (await frontier.getMeta('started')) === 'yes'
}

/** Whether the start pages come from a list or a sitemap. */
export async function startsFromList(frontier: Frontier): Promise<boolean> {
  return (await frontier.getMeta('source')) === 'urls'
}

export async function setFilled(frontier: Frontier, isFull: boolean): Promise<void> {
  await frontier.setMeta('started', isFull ? 'yes' : 'no')
}

export async function seed({ compiled, args, frontier, bus, isTrusted = true, stop }: SeedParts): Promise<void> {
  if (await isFilled(frontier)) return
  const hosts = newHosts()
  const policy = { ...enqueuePolicy(compiled.limits, []), hosts: 'any' as const }
  const queued = new LatestRoutes()
  const calls = new UnawaitedCalls()
  const add = async (routeOrUrl: string | URL, targets?: unknown) => {
    const counts = newCounts()
    const [route, found] = routeOrUrl instanceof URL ? [undefined, routeOrUrl] : [routeOrUrl, targets]
    const tasks = toTasks(
      compiled,
      policy,
      { route, targets: found, base: undefined, depth: 0, room: Number.POSITIVE_INFINITY, queued },
      counts,
    )
    const { added, seen } = await frontier.add(watch(tasks, { hosts, isNamed: isTrusted, stop }))
    const { refused, repeated, rerouted, conflicts } = counts
    return { added, seen: seen + repeated, refused, rerouted, conflicts }
  }
  const enqueue = (routeOrUrl: string | URL, targets?: unknown) => calls.watch(add(routeOrUrl, targets))
  enqueue.links = () => {
    throw new ScrapeError('E_DEFINITION', 'start() has no page yet: enqueue.links works in handlers only')
  }
  const log = (level: 'debug' | 'info' | 'warn') => (message: string) => bus.emit({ type: 'log', level, message })
  try {
    await compiled.scraper.start({
      args,
      enqueue,
      log: { debug: log('debug'), info: log('info'), warn: log('warn') },
    } as never)
    await calls.settle()
  } catch (error) {
    const problem = toScrapeError(error, 'E_DEFINITION')
    // A full disk or a lost server is not a mistake in the definition, and the run can be resumed.
    if (problem.code === 'E_STOPPED' || problem.class === 'output' || problem.class === 'service') throw problem
    // A failed start leaves nothing to crawl: that is a mistake in the definition or its arguments, not a dead letter.
    throw new ScrapeError('E_DEFINITION', `start() of "${compiled.scraper.name}" failed: ${problem.message}`, {
      ...problem.details,
      at: compiled.file ?? problem.details.at,
      fix: problem.fix,
      cause: error,
    })
  }
  await keepHosts(frontier, hosts)
  await setFilled(frontier, true)
}

export interface SeededUrls extends Added {
  /** Not a URL, no matching route, or a private address: these become dead letters. */
  refused: number
  /** The first few refused URLs, with the reason. */
  problems: string[]
}

interface UrlsParts extends Pick<SeedParts, 'compiled' | 'frontier' | 'stop'> {
  /** Which private addresses may be queued, in addition to hosts that the user typed. */
  addresses: Pick<AddressOptions, 'allowPrivate' | 'allowAddresses'>
}

const PROBLEMS_SHOWN_MAX = 5
/** Maximum number of refused URLs waiting to become dead letters. */
const REFUSED_AT_ONCE = 500

/** Replaces the scraper's own start: each URL goes to the route whose `match` accepts it. */
export async function seedUrls(
  urls: AsyncIterable<FoundUrl>,
  { compiled, frontier, stop, addresses }: UrlsParts,
): Promise<SeededUrls> {
  const hosts = newHosts(await metaList(frontier, 'startHosts'), await metaList(frontier, 'namedHosts'))
  const problems: string[] = []
  let refused = 0
  let waiting: Refused[] = []
  const policy = { ...enqueuePolicy(compiled.limits, []), hosts: 'any' as const }
  const refusePrivate = (url: string) => {
    const refusal = hosts.namedHosts.has(hostOf(url)) ? null : refusedLiteral(new URL(url), addresses)
    if (refusal !== null) throw refusal
  }
  async function* tasks(): AsyncGenerator<NewTask> {
    for await (const found of urls) {
      const { text, from, isNamed, priority, lane } = found
      const target = { url: text, priority, lane }
      const request = { route: undefined, targets: target, base: undefined, depth: 0, room: 1 }
      try {
        if (found.error !== undefined) throw new ScrapeError(found.error.code, found.error.message)
        const [...queued] = toTasks(compiled, policy, request, newCounts())
        for (const { url } of queued) if (!isNamed) refusePrivate(url)
        yield* watch(queued, { hosts, isNamed, stop })
      } catch (error) {
        stop.throwIfAborted()
        refused++
        const problem = toErrorRecord(toScrapeError(error, 'E_URL_INVALID'))
        waiting.push({ text, error: problem })
        if (problems.length < PROBLEMS_SHOWN_MAX) problems.push(`${from}: ${problem.message} (${problem.code})`)
        if (waiting.length < REFUSED_AT_ONCE) continue
        await bury(frontier, waiting)
        waiting = []
      }
    }
  }
  const { added, seen } = await frontier.add(tasks())
  await bury(frontier, waiting)
  await keepHosts(frontier, hosts)
  await setFilled(frontier, true)
  return { added, seen, refused, problems }
}

interface Refused {
  text: string
  error: ErrorRecord
}

const BURY_LEASE_MS = 60_000

/**
 * URLs that cannot be queued become dead letters, through a separate lane. The cause travels with the task, so it is the same
 * whether we or a faster worker buries it.
 */
async function bury(frontier: Frontier, refused: readonly Refused[]): Promise<void> {
  if (refused.length === 0) return
  await frontier.add(refused.map(({ text, error }) => refusedTask(text, error)))
  for (;;) {
    const leases = await frontier.claim({
      max: REFUSED_AT_ONCE,
      workerId: `producer-${process.pid}`,
      leaseMs: BURY_LEASE_MS,
      lanes: [REFUSED_LANE],
    })
    if (leases.length === 0) return
    const outcomes = leases.map((lease) => ({ kind: 'dead' as const, lease, error: refusalOf(lease.task)! }))
    await frontier.commit(outcomes)
  }
}

/** Stored as frontier meta values of the same names, which `work` reads. */
interface StartHosts {
  /** Hosts of all start tasks: links to them are followed. */
  startHosts: Set<string>
  /** Hosts that the user typed: private addresses among them are allowed (`typedAddresses`). */
  namedHosts: Set<string>
}

/** With more hosts than this it is a list, not a site. */
const START_HOSTS_MAX = 100_000

function newHosts(started: readonly string[] = [], named: readonly string[] = []): StartHosts {
  return { startHosts: new Set(started), namedHosts: new Set(named) }
}

async function metaList(frontier: Frontier, name: keyof StartHosts): Promise<string[]> {
  return JSON.parse((await frontier.getMeta(name)) ?? '[]')
}

async function keepHosts(frontier: Frontier, hosts: StartHosts): Promise<void> {
  await frontier.setMeta('startHosts', JSON.stringify([...hosts.startHosts]))
  await frontier.setMeta('namedHosts', JSON.stringify([...hosts.namedHosts]))
}

function* watch(
  tasks: Iterable<NewTask>,
  { hosts, isNamed, stop }: { hosts: StartHosts; isNamed: boolean; stop: AbortSignal },
): Generator<NewTask> {
  for (const task of tasks) {
    stop.throwIfAborted()
    const host = hostOf(task.url)
    if (hosts.startHosts.size < START_HOSTS_MAX) hosts.startHosts.add(host)
    if (isNamed && hosts.namedHosts.size < START_HOSTS_MAX) hosts.namedHosts.add(host)
    yield task
  }
}
