/** Assembles one instance: scraper, fetch chains, browsers if needed, and its membership in the consumer group. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { loadScraper } from '../../config/load-scraper.ts'
import { assertTurnedOn } from '../../config/opt-in.ts'
import type { ConfigValues } from '../../config/option-table.ts'
import { userAgent } from '../../config/user-agent.ts'
import { createEventBus } from '../../core/events.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import { compileScraper } from '../../crawl/compile-scraper.ts'
import { GroupReader } from '../../protocol/redis-group-reader.ts'
import { streamNames, WORKERS_GROUP } from '../../protocol/streams.ts'
import { cacheStoreOf } from '../../runs/run-identity.ts'
import { egressOf, openPool } from '../run/egress-options.ts'
import type { RateSharing } from '../run/fetching.ts'
import { type BrowsersOptions, canUseBrowsers, openBrowsers } from '../run/open-browsers.ts'
import { browserSpecOf } from '../run/worker-spec.ts'
import { Chains } from './chains.ts'
import { Instance, type InstanceOptions, type StopWord } from './instance.ts'

/** Plain data: it is sent to a thread or another process. */
export interface InstanceSpec {
  /** The scraper's name or file; the type on the wire is always its name. */
  scraper: string
  /** The parent's configuration. */
  config: Config
  redisUrl: string
  prefix: string
  workerId: string
  /** Maximum number of concurrent tasks. */
  tasksMax: number
  healthMs: number
  retryMs: number
}

type Listeners = Pick<InstanceOptions, 'onLog' | 'onTask' | 'onAnswer'>

/** The type on the wire, and its streams. Throws if there is no such scraper, or if it is disabled. */
export async function workerType({ scraper: word, config }: Pick<InstanceSpec, 'scraper' | 'config'>) {
  const { scraper, file } = await loadScraper(word)
  assertTurnedOn(scraper, config)
  return { type: scraper.name, compiled: compileScraper(scraper, config.limits, file) }
}

export async function runInstance(spec: InstanceSpec, listeners: Listeners, stop: AbortSignal): Promise<StopWord> {
  const { values } = spec.config
  const { type, compiled } = await workerType(spec)
  const names = streamNames(spec.prefix)
  const { concurrency } = compiled.limits
  const bus = createEventBus()
  bus.on((event) => {
    if (event.type === 'log' && (event.level === 'warn' || event.level === 'info'))
      listeners.onLog(event.level, event.message)
  })
  await using parts = new AsyncDisposableStack()
  const common = {
    userAgent: userAgent(values),
    allowPrivate: values.allowPrivate,
    // Only addresses configured here: whoever can write tasks must not gain access to the worker's network.
    allowAddresses: values.allowAddress,
    bus,
  }
  const ways = egressOf(values)
  const pool = await openPool({ ways, addresses: { ...common, connectTimeoutMs: compiled.limits.connectTimeout }, bus })
  if (pool !== undefined) parts.use(pool)
  await pool?.checkAll().catch(() => {}) // the pool has reported it; a worker outlives its proxies, and tasks wait for them
  const browsers = await openOwnBrowsers({ compiled, values, common }, parts)
  const sharing = await shareRates(spec, compiled.limits.perHost.perMinute, listeners, parts)
  const cacheStore = cacheStoreOf({ ...values, redis: spec.redisUrl })
  const chains = parts.use(new Chains({ ...common, compiled, concurrency, cacheStore, ways, pool, sharing, browsers }))
  const reader = parts.use(
    new GroupReader({
      url: spec.redisUrl,
      names,
      streams: names.tasks(type),
      group: WORKERS_GROUP,
      consumer: spec.workerId,
      leaseMs: values.lease,
      outageMs: values.outage,
      onOutage: ({ error, attempt }) =>
        listeners.onLog('warn', `Redis is away (${error.message}): waiting for it, try ${attempt}`),
    }),
  )
  const instance = new Instance({
    type,
    names,
    reader,
    parts: { compiled, chains, browsers, concurrency, workerId: spec.workerId, out: values.out },
    tasksMax: Math.min(spec.tasksMax, concurrency),
    leaseMs: values.lease,
    healthMs: spec.healthMs,
    drainMs: values.drainTimeout,
    retryMs: spec.retryMs,
    ...listeners,
  })
  return await instance.run(stop)
}

interface BrowserParts {
  compiled: CompiledScraper
  values: ConfigValues
  common: Pick<BrowsersOptions, 'userAgent' | 'allowPrivate' | 'allowAddresses' | 'bus'>
}

/** Undefined if the scraper does not need browsers. Each page uses the egress of its identity. */
async function openOwnBrowsers({ compiled, values, common }: BrowserParts, parts: AsyncDisposableStack) {
  const { pages, executable } = browserSpecOf(values)
  if (!(await canUseBrowsers(compiled, executable, common.bus))) return undefined
  const spool = mkdtempSync(join(tmpdir(), 'sluice-worker-'))
  parts.defer(() => rmSync(spool, { recursive: true, force: true }))
  const { limits } = compiled
  return parts.use(
    await openBrowsers({ ...common, limits, pages, executable, spool, downloadBytesMax: values.fileMax }),
  )
}

/** Rate limits per host, shared by all instances on this Redis. */
async function shareRates(
  { redisUrl }: InstanceSpec,
  perMinute: number,
  { onLog }: Listeners,
  parts: AsyncDisposableStack,
): Promise<RateSharing> {
  const { openRedisSlots } = await import('../../fetch/rate/redis-slots.ts')
  const onAway = (error: Error) => onLog('warn', error.message)
  const onBack = () => onLog('info', 'rates are shared with the other workers again')
  return { fleet: parts.use(await openRedisSlots({ url: redisUrl, perMinute, onAway, onBack })) }
}
