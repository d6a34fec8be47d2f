/** How a worker reaches the web: its browsers, its fetch chain, and the egress of the processes that download files. */
import type { EventBus } from '../../core/events.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { BrowserPool } from '../../fetch/browser/pool.ts'
import { typedAddresses } from '../../fetch/net/address.ts'
import { checkProxy } from '../../fetch/net/proxy-check.ts'
import type { Frontier } from '../../frontier/contract.ts'
import { type Fetching, openFetching, type RateSharing } from './fetching.ts'
import type { FileOrders } from './file-process.ts'
import { canUseBrowsers, openBrowsers } from './open-browsers.ts'
import type { WorkerSpec } from './worker-spec.ts'

interface WorkerFetchingParts {
  compiled: CompiledScraper
  frontier: Pick<Frontier, 'getMeta'>
  bus: EventBus
  place: { shareRates(parts: AsyncDisposableStack): Promise<RateSharing> }
}

interface WorkerFetching {
  fetching: Fetching
  /** Undefined if no route needs one. */
  browsers: BrowserPool | undefined
  /** How files are downloaded. */
  fileHttp: Pick<FileOrders['http'], 'userAgent' | 'allowPrivate' | 'allowAddresses' | 'proxy'>
}

const PROXY_MS_MAX = 5_000

/** Everything opened is added to `parts` and closed with the worker. */
export async function openWorkerFetching(
  spec: WorkerSpec,
  { compiled, frontier, bus, place }: WorkerFetchingParts,
  parts: AsyncDisposableStack,
): Promise<WorkerFetching> {
  const { userAgent, allowPrivate, proxy } = spec
  if (proxy !== undefined) await checkProxy(proxy, PROXY_MS_MAX)
  // Use only one kind of egress: traffic for Tor must not leave through another proxy.
  const ways = spec.ways === undefined || proxy === undefined ? spec.ways : { ...spec.ways, proxies: [] }
  const namedHosts = JSON.parse((await frontier.getMeta('namedHosts')) ?? '[]') as string[]
  const allowAddresses = [...spec.allowAddresses, ...typedAddresses(namedHosts)]
  const browsers =
    spec.only !== 'files' && (await canUseBrowsers(compiled, spec.browsers.executable, bus))
      ? parts.use(
          await openBrowsers({
            limits: compiled.limits,
            pages: spec.browsers.pages,
            executable: spec.browsers.executable,
            spool: spec.files.spool,
            downloadBytesMax: spec.files.bytesMax,
            ...{ userAgent, allowPrivate, allowAddresses, proxy, bus },
          }),
        )
      : undefined
  const fetching = parts.use(
    await openFetching({
      limits: compiled.limits,
      concurrency: spec.concurrency,
      perHostConcurrency: spec.perHostConcurrency,
      userAgent,
      allowPrivate,
      allowAddresses,
      cacheStore: spec.cacheStore,
      sharing: await place.shareRates(parts),
      proxy,
      ways,
      waitsForProxies: true,
      browsers,
      bus,
    }),
  )
  const fileProxy = proxy ?? (await openFileProxy(fetching, parts))
  return { fetching, browsers, fileHttp: { userAgent, allowPrivate, allowAddresses, proxy: fileProxy } }
}

/** Files are fetched by other processes: if there are proxies, they use a local proxy that forwards to a working one. */
async function openFileProxy({ proxies }: Fetching, parts: AsyncDisposableStack): Promise<string | undefined> {
  if (proxies === undefined) return undefined
  const { openEgressProxy } = await import('../../fetch/net/egress.ts')
  const options = { guard: proxies.guard, bytesMax: Number.POSITIVE_INFINITY, onFlood: () => {} }
  return parts.use(await openEgressProxy(options)).proxyServer
}
