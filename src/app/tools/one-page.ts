/** Fetches a single page through the whole fetch chain: shared by the commands that inspect a page without crawling. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { userAgent } from '../../config/user-agent.ts'
import { ScrapeError, toScrapeError } from '../../core/errors.ts'
import { createEventBus, type EventBus } from '../../core/events.ts'
import { pageOf } from '../../core/failed-page.ts'
import { type Limits, limitsSchema, type ResolvedLimits } from '../../core/options.ts'
import type { Page } from '../../core/page.ts'
import { hostOf, normaliseUrl } from '../../core/url.ts'
import type { BrowserPool } from '../../fetch/browser/pool.ts'
import type { FetchRequest } from '../../fetch/contract.ts'
import type { ChainFetcher } from '../../fetch/fetcher.ts'
import { identityOf } from '../../fetch/identity/with-identity.ts'
import { typedAddresses } from '../../fetch/net/address.ts'
import { egressOf } from '../run/egress-options.ts'
import { openFetching } from '../run/fetching.ts'
import { openBrowsers } from '../run/open-browsers.ts'

/** The result of a visit. A page with an error status is included alongside the error. */
export interface Visit {
  readonly url: string
  readonly page: Page | undefined
  readonly error: ScrapeError | undefined
  /** The identity and proxy used; undefined: our own identity, directly. */
  readonly as: VisitedAs | undefined
  /** Total time: waiting for the rate limit, robots.txt, redirects, the page. */
  readonly chainMs: number
}

interface VisitedAs {
  identity: string
  /** The browser whose headers were sent. */
  profile: string | undefined
  /** `host:port`. */
  proxy: string | undefined
}

export interface OnePage extends AsyncDisposable {
  readonly fetcher: ChainFetcher
  readonly limits: ResolvedLimits
  readonly userAgent: string
  /** Throws only if the request or the options are invalid; failures of the site are in the visit. */
  visit(request: FetchRequest, signal?: AbortSignal): Promise<Visit>
}

interface OnePageOptions {
  config: Config
  /** Used instead of the defaults combined with the configured limits. */
  limits?: ResolvedLimits
  /** URLs that the user typed: private addresses among them are allowed (`typedAddresses`). */
  typed?: readonly string[]
  concurrency?: number
  /** Pages may be fetched with a browser. Default false. */
  withBrowser?: boolean
}

export async function openOnePage(options: OnePageOptions): Promise<OnePage> {
  const { config, limits = limitsOf(config.limits), typed = [], concurrency = 1 } = options
  const { values } = config
  const agent = userAgent(values)
  const bus = createEventBus()
  await using opening = new AsyncDisposableStack()
  const allowed = [...values.allowAddress, ...typedAddresses(typed)]
  const browsers = options.withBrowser
    ? await openBrowserFor({ config, limits, agent, allowed, bus }, opening)
    : undefined
  const fetching = opening.use(
    await openFetching({
      cacheStore: 'memory:',
      limits,
      concurrency,
      perHostConcurrency: concurrency,
      userAgent: agent,
      allowPrivate: values.allowPrivate,
      allowAddresses: allowed,
      sharing: {},
      ways: egressOf(values),
      browsers,
      bus,
    }),
  )
  const { fetcher } = fetching
  const parts = opening.move()
  return {
    fetcher,
    limits,
    userAgent: agent,
    async visit(request, signal = new AbortController().signal) {
      const startedMs = performance.now()
      const chainMs = () => performance.now() - startedMs
      try {
        const page = await fetcher.fetch(request, signal)
        return { url: request.url, page, error: undefined, as: visitedAs(page), chainMs: chainMs() }
      } catch (thrown) {
        const error = toScrapeError(thrown, 'E_CONNECTION', { url: request.url })
        if (error.verdict === 'halt') throw error
        const as = visitedAs(error)
        return { url: request.url, page: pageOf(error), error: withFlag(error), as, chainMs: chainMs() }
      }
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}

function visitedAs(result: Page | ScrapeError): VisitedAs | undefined {
  const identity = identityOf(result)
  if (identity === undefined) return undefined
  return { identity: identity.id, profile: identity.profile?.name, proxy: identity.proxy?.name }
}

interface BrowserFor {
  config: Config
  limits: ResolvedLimits
  agent: string
  allowed: readonly string[]
  bus: EventBus
}

/** One page at a time; its data is deleted afterwards. */
async function openBrowserFor(
  { config: { values }, limits, agent, allowed, bus }: BrowserFor,
  parts: AsyncDisposableStack,
): Promise<BrowserPool> {
  const spool = mkdtempSync(join(tmpdir(), 'sluice-browser-'))
  parts.defer(() => rmSync(spool, { recursive: true, force: true }))
  return parts.use(
    await openBrowsers({
      limits,
      pages: 1,
      executable: values.chrome,
      userAgent: agent,
      allowPrivate: values.allowPrivate,
      allowAddresses: allowed,
      spool,
      downloadBytesMax: values.fileMax,
      bus,
    }),
  )
}

/** Someone who looks at one page makes two requests: there is no delay between robots.txt and the page, unless configured. */
export function unhurriedLimits(limits: ResolvedLimits, given: Limits): ResolvedLimits {
  const rps = given.perHost?.rps === undefined ? 0 : limits.perHost.rps
  return { ...limits, crawlDelayMax: 0, perHost: { ...limits.perHost, rps } }
}

export function limitsOf(given: Limits): ResolvedLimits {
  const parsed = limitsSchema.safeParse(given)
  if (parsed.success) return parsed.data
  throw new ScrapeError('E_OPTION', 'an option is not usable', {
    notes: parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`),
  })
}

/** Names the flag to type, where the table of errors, written for runs, can only give general advice. */
export function withFlag(error: ScrapeError): ScrapeError {
  const fix = flagFor(error)
  return fix === undefined ? error : new ScrapeError(error.code, error.message, { ...error.details, fix })
}

function flagFor({ code, details }: ScrapeError): string | undefined {
  if (code === 'E_PRIVATE_ADDRESS' && details.url !== undefined)
    return `If it is yours: --allow-address ${hostOf(details.url)}, or all private ones: --allow-private`
  if (code === 'E_ROBOTS') return 'Respect it, or get the owner’s permission and use --robots ignore'
  if (code === 'E_ROBOTS_UNREACHABLE')
    return 'Check that something listens there; --robots ignore asks for the page without asking for leave.'
  return undefined
}

/** Normalises a URL from the command line. Throws `E_USAGE` with a suggestion. */
export function urlArgument(text: string): string {
  try {
    return normaliseUrl(text)
  } catch (cause) {
    const guess = /^[\w.-]+(?::\d+)?(?:[/?#]|$)/.test(text) ? URL.parse(`https://${text}`)?.href : undefined
    throw new ScrapeError('E_USAGE', (cause as Error).message, {
      fix:
        guess === undefined ? 'Give an absolute http(s) URL of at most 8 KiB.' : `Name the scheme, perhaps: ${guess}`,
      cause,
    })
  }
}

/** Parses `name: value` … into request headers. Throws `E_USAGE`. */
export function headerArguments(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/.exec(line) ?? []
    if (name === undefined || value === undefined)
      throw new ScrapeError('E_USAGE', `--header takes 'name: value', got ${JSON.stringify(line)}`, {
        fix: "For example: --header 'accept-language: it'",
      })
    headers[name.toLowerCase()] = value.trimEnd()
  }
  return headers
}

/** An error in the JSON output of a command. */
export function errorJson(error: ScrapeError) {
  const { code, verdict, message, fix, details } = error
  const { status, retryAfterMs, at, notes } = details
  return { code, class: error.class, verdict, message, status, retryAfterMs, at, notes, fix }
}

/** A visit in the JSON output of a command. */
export function visitJson({ url, page, error, as, chainMs }: Visit) {
  return {
    ok: error === undefined,
    url,
    finalUrl: page?.url ?? null,
    status: page?.status ?? error?.details.status ?? null,
    redirects: page?.redirects ?? [],
    as: as === undefined ? null : { identity: as.identity, profile: as.profile ?? null, proxy: as.proxy ?? null },
    contentType: page?.contentType ?? null,
    charset: page?.charset ?? null,
    bytes: page?.bytes ?? null,
    /** Why it looks like a block page although none was recognised. */
    suspicion: page?.suspicion ?? null,
    timings: {
      firstByteMs: tenths(page?.timings.firstByteMs),
      totalMs: tenths(page?.timings.totalMs),
      chainMs: tenths(chainMs),
    },
    headers: page?.headers ?? null,
    error: error === undefined ? null : errorJson(error),
  }
}

const tenths = (ms: number | undefined) => (ms === undefined ? null : Math.round(ms * 10) / 10)
