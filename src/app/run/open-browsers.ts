/** Browsers, where a scraper or a person asks for them. Nothing of it is loaded before. */
import type { EventBus } from '../../core/events.ts'
import { assertInstalled } from '../../core/optional-package.ts'
import type { ResolvedLimits } from '../../core/options.ts'
import type { Scraper } from '../../core/scraper.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { BrowserPool } from '../../fetch/browser/pool.ts'

export interface BrowsersOptions {
  limits: ResolvedLimits
  /** Open at once. */
  pages: number
  executable: string | undefined
  userAgent: string
  allowPrivate: boolean
  allowAddresses: readonly string[]
  proxy?: string | undefined
  /** A folder for what they keep while they run. */
  spool: string
  downloadBytesMax: number
  bus: EventBus
}

export function needsBrowsers({ routes }: CompiledScraper): boolean {
  return [...routes.values()].some(({ definition }) => definition.fetch === 'browser')
}

/** Throws `E_BROWSER_MISSING` or `E_PACKAGE_MISSING` for a scraper that needs browsers where there is none. */
export async function assertCanBrowse({ routes }: Scraper, executable: string | undefined): Promise<void> {
  if (!Object.values(routes).some(({ fetch }) => fetch === 'browser')) return
  await assertThereIsOne(executable)
}

async function assertThereIsOne(executable: string | undefined): Promise<void> {
  const { findChromium } = await import('../../fetch/browser/find-chromium.ts')
  findChromium(executable)
  assertInstalled('a browser needs', 'puppeteer-core')
}

/** Those that need them, and those that fall back to one, where this machine has it. */
export async function canUseBrowsers(
  compiled: CompiledScraper,
  executable: string | undefined,
  bus: EventBus,
): Promise<boolean> {
  if (needsBrowsers(compiled)) return true
  if (![...compiled.routes.values()].some(({ definition }) => definition.fallback === 'browser')) return false
  try {
    await assertThereIsOne(executable)
    return true
  } catch (error) {
    const message = `no browser to fall back to: ${(error as Error).message}`
    bus.emit({ type: 'log', level: 'warn', message })
    return false
  }
}

export async function openBrowsers({
  limits,
  pages,
  executable,
  proxy,
  bus,
  ...rest
}: BrowsersOptions): Promise<BrowserPool> {
  const { openBrowserPool } = await import('../../fetch/browser/pool.ts')
  return openBrowserPool({
    ...rest,
    slots: pages,
    timeoutMs: limits.timeout,
    connectTimeoutMs: limits.connectTimeout,
    bodyBytesMax: limits.bodyMax,
    redirectsMax: limits.redirects,
    retryAfterMsMax: limits.retryAfterMax,
    ...(executable === undefined ? {} : { executable }),
    ...(proxy === undefined ? {} : { proxy }),
    events: bus,
  })
}
