/** Checks the configured servers and proxies by logging in to each, as a run would. */
import type { Config } from '../../config/config.ts'
import { parseEngineUrl } from '../../core/engine-url.ts'
import { ScrapeError } from '../../core/errors.ts'
import { redactText } from '../../core/redact-text.ts'
import { checkProxy } from '../../fetch/net/proxy-check.ts'
import { proxyName } from '../../fetch/net/proxy-url.ts'
import { egressOf } from '../run/egress-options.ts'
import { missing, ok, type Result, warn } from './finding.ts'
import { logIn } from './log-in.ts'

const CHECK_MS_MAX = 5_000
const PROXIES_NAMED_MAX = 5

type Check = [name: string, look: () => Promise<Result>]

export function serviceChecks({ values }: Config): Check[] {
  const proxies = egressOf(values).proxies.flat()
  const servers: [string, string | undefined][] = [
    ['frontier', values.frontier],
    ['store', values.store],
    ['redis', values.redis],
  ]
  const checks = servers.flatMap(([name, url]): Check[] => {
    return url === undefined || !parseEngineUrl(url).isShared ? [] : [[name, () => answers(url)]]
  })
  return proxies.length === 0 ? checks : [['proxies', () => proxiesAnswer(proxies)], ...checks]
}

async function answers(url: string): Promise<Result> {
  const shown = redactText(url)
  try {
    await logIn(url)
    return ok(`${shown} answers`)
  } catch (error) {
    const fix = error instanceof ScrapeError ? error.details.fix : undefined
    return missing(`${shown} does not answer: ${(error as Error).message}`, fix ?? 'Start it, or correct its URL.')
  }
}

/** Proxies are named by address only, since their URLs may contain passwords. */
async function proxiesAnswer(urls: readonly string[]): Promise<Result> {
  const results = await Promise.allSettled(urls.map((url) => checkProxy(url, CHECK_MS_MAX)))
  const away = results.flatMap((result, i) =>
    result.status === 'rejected' ? [`${proxyName(urls[i]!)}: ${(result.reason as Error).message}`] : [],
  )
  const what = `${urls.length - away.length} of ${urls.length} answer`
  if (away.length === 0) return ok(what)
  const named = away.slice(0, PROXIES_NAMED_MAX).join('; ')
  if (away.length < urls.length)
    return warn(`${what}; ${named}`, 'Take those out of the list, or mend them; a run goes on with the others.')
  return missing(`${what}; ${named}`, 'Start one, or correct the list: nothing goes out directly.')
}
