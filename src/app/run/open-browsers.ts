/** Browsers, if a scraper or the user asks for them. None of it is loaded before. */
import type { EventBus } from '../../core/events.ts'
import { assertInstalled } from '../../core/optional-package.ts'
import type { ResolvedLimits } from '../../core/options.ts'
import type { Scraper } from '../../core/scraper.ts'
import type { CompiledScraper } from '../../crawl/compile-scraper.ts'
import type { BrowserPool } from '../../fetch/browser/pool.ts'

export interface BrowsersOptions {
  limits: ResolvedLimits
  /** Maximum number of open pages. */
  pages: number
  executable: string | undefined
  userAgent: string
  allowPrivate: boolean
  allowAddresses: readonly string[]
  proxy?: string | undefined
  /** A folder for temporary browser data. */
  spool: string
  downloadBytesMax: number
  bus: EventBus
}

export function needsBrowsers({ routes }: CompiledScraper): boolean {
  return [...routes.values()].some(({ definition }) => definition.fetch === 'browser')
}

/** Throws `E_BROWSER_MISSING` or `E_PACKAGE_MISSING` if the scraper needs a browser and there is none. */
export async function assertCanBrowse({ routes }: Scraper, executable: string | undefined): Promise<void> {
  if (!Object.values(routes).some(({ fetch }) => fetch === 'browser')) return
  await assertThereIsOne(executable)
}

async function assertThereIsOne(executable: string | undefined): Promise<void> {
  const { findChromium } = await import('../../fetch/browser/find-chromium.ts')
  findChromium(executable)
  assertInstalled('a browser needs', 'puppeteer-core')
}

/** True for scrapers that need browsers, and for those that fall back to one if this machine has one. */
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
    executable,
    proxy,
    events: bus,
  })
}
