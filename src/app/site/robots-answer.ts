/** What a site's robots.txt says about one URL. */

import type { Config } from '../../config/config.ts'
import { type ScrapeError, toScrapeError } from '../../core/errors.ts'
import { productToken } from '../../fetch/robots/rules.ts'
import { errorJson, limitsOf, openOnePage, unhurriedLimits, withFlag } from '../tools/one-page.ts'

export interface RobotsAnswer {
  json: {
    url: string
    isAllowed: boolean
    /** The product token we match in robots.txt. */
    agent: string
    userAgent: string
    robotsUrl: string
    /** The rest is missing if the file could not be read. */
    group?: string | null
    /** The line that decided; null if none matches, which allows the URL. */
    rule?: { line: number; text: string; isAllowed: boolean } | null
    crawlDelayMs?: number | null
    sitemaps?: readonly string[]
    error: ReturnType<typeof errorJson> | null
  }
  error: ScrapeError | undefined
}

/** Reads robots.txt even if the configuration ignores it: that is the question. */
export async function askRobots(url: string, config: Config): Promise<RobotsAnswer> {
  const limits = limitsOf({ ...config.limits, robots: 'respect' })
  await using chain = await openOnePage({ config, limits: unhurriedLimits(limits, config.limits), typed: [url] })
  const { userAgent } = chain
  const about = { url, agent: productToken(userAgent), userAgent, robotsUrl: new URL('/robots.txt', url).href }
  try {
    const found = await chain.fetcher.robots!.explain(url, new AbortController().signal)
    const { rule } = found
    return {
      json: {
        ...about,
        isAllowed: found.isAllowed,
        group: found.group ?? null,
        rule: rule === undefined ? null : { line: rule.line, text: rule.text, isAllowed: rule.isAllowed },
        crawlDelayMs: found.crawlDelayMs ?? null,
        sitemaps: found.sitemaps,
        error: null,
      },
      error: undefined,
    }
  } catch (thrown) {
    const failure = toScrapeError(thrown, 'E_ROBOTS_UNREACHABLE', { url })
    if (failure.verdict === 'halt') throw failure
    const error = failure.code === 'E_PRIVATE_ADDRESS' ? withFlag(failure) : failure
    return { json: { ...about, isAllowed: false, error: errorJson(error) }, error }
  }
}
