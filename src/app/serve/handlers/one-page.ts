/** Fetches one page for a remote caller: private addresses are rejected, and it may take a minute. */

import { loadScraper } from '../../../config/load-scraper.ts'
import { assertTurnedOn } from '../../../config/opt-in.ts'
import { checkArgs } from '../../../config/scraper-arguments.ts'
import type { ScrapeError } from '../../../core/errors.ts'
import { verbatim } from '../../../core/redact.ts'
import { compileScraper } from '../../../crawl/compile-scraper.ts'
import type { onePageEndpoints } from '../../../server/api/routes/one-page.ts'
import type { HandlersOf } from '../../../server/api/server.ts'
import { needsBrowsers } from '../../run/open-browsers.ts'
import { mapSite } from '../../site/site-map.ts'
import { limitsOf, openOnePage, unhurriedLimits, urlArgument } from '../../tools/one-page.ts'
import { tryPage } from '../../tools/try-page.ts'
import type { Server } from '../server/server.ts'

const MS_MAX = 60_000
const LINKS_MAX = 1000

export function onePageHandlers({ config }: Server): HandlersOf<typeof onePageEndpoints> {
  const inTime = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(MS_MAX)])
  return {
    async tryPage({ body: { scraper: name, url, route, args, data } }, caller) {
      const { scraper, file } = await loadScraper(name)
      assertTurnedOn(scraper, config)
      const compiled = compileScraper(scraper, config.limits, file)
      const checked = checkArgs(scraper, args)
      const limits = unhurriedLimits(compiled.limits, config.limits)
      await using chain = await openOnePage({ config, limits, withBrowser: needsBrowsers(compiled) })
      const signal = inTime(caller.signal)
      const tried = await tryPage({ compiled, args: checked, url: urlArgument(url), route, data, chain, signal })
      const { visit, error } = tried
      return {
        ok: error === undefined && tried.invalid.length === 0,
        route: tried.route,
        status: visit.page?.status ?? null,
        finalUrl: visit.page?.url ?? null,
        items: verbatim(tried.items.filter(({ isRepeated }) => !isRepeated).map(({ item }) => item)),
        invalid: tried.invalid,
        links: tried.links.slice(0, LINKS_MAX).map((link) => ({ route: link.route, url: link.url })),
        refused: tried.refused.slice(0, LINKS_MAX).map((link) => ({ url: link.url, why: link.why })),
        fetchMs: visit.chainMs,
        readMs: tried.readMs,
        error: error === undefined ? null : failureOf(error),
      }
    },
    async mapSite({ body: { url, max } }, caller) {
      await using chain = await openOnePage({ config, limits: limitsOf(config.limits) })
      const found = await mapSite({ chain, url: urlArgument(url), max, signal: inTime(caller.signal) })
      return {
        urls: verbatim(found.urls.map((page) => page.url)),
        sources: found.sources.map(({ url: from, kind, urls }) => ({ url: from, kind, urls })),
        isCut: found.isCut,
        error: found.error === undefined ? null : failureOf(found.error),
      }
    },
  }
}

const failureOf = ({ code, message, details }: ScrapeError) => ({ code, message, fix: details.fix ?? null })
