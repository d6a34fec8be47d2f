/** Checks a proxy named by a task, since whoever can write tasks must not gain access to the worker's network. */
import { lookup } from 'node:dns/promises'
import { proxiesSchema } from '../../config/proxy-list.ts'
import { ScrapeError } from '../../core/errors.ts'
import { isPublicAddress } from '../../fetch/net/address.ts'

interface OwnProxyRules {
  allowPrivate: boolean
  /** `host` or `host:port`. */
  allowAddresses: readonly string[]
}

/** Resolves to the proxy's URL. Errors never repeat the login. */
export async function checkOwnProxy(proxy: string, { allowPrivate, allowAddresses }: OwnProxyRules): Promise<string> {
  const spelled = spelledOnce(proxy)
  const url = new URL(spelled)
  if (allowPrivate || allowAddresses.includes(url.hostname) || allowAddresses.includes(url.host)) return spelled
  const addresses = await lookup(url.hostname.replace(/^\[|\]$/g, ''), { all: true }).catch((error: Error) => {
    throw new ScrapeError('E_PROXY', `the proxy ${url.host} of the task has no address: ${error.message}`)
  })
  if (addresses.every(({ address }) => isPublicAddress(address))) return spelled
  throw new ScrapeError('E_PRIVATE_ADDRESS', `the proxy ${url.host} of the task is at a private address`)
}

/** Any form that `--proxies` takes, or `user:password@host:port`. Passed as a list, because a plain string could name a file. */
function spelledOnce(proxy: string): string {
  for (const spelling of [proxy, `http://${proxy}`]) {
    const { data } = proxiesSchema.safeParse([spelling])
    if (data !== undefined) return data[0]![0]!
  }
  const forms = 'host:port, host:port:user:password, user:password@host:port or a URL (socks5://…, http://…)'
  throw new ScrapeError('E_OPTION', `the proxy of the task is none of ${forms}`)
}
