/** A proxy that a task names: checked, as whoever writes tasks must not open a way into the network of the worker. */
import { lookup } from 'node:dns/promises'
import { ScrapeError } from '../../core/errors.ts'
import { isPublicAddress } from '../../fetch/address.ts'

export interface OwnProxyRules {
  allowPrivate: boolean
  /** `host` or `host:port`. */
  allowAddresses: readonly string[]
}

/** Resolves with its URL. Neither error repeats the login. */
export async function checkOwnProxy(proxy: string, { allowPrivate, allowAddresses }: OwnProxyRules): Promise<string> {
  const url = /^(?:socks5h?|http):\/\/./.test(proxy) ? URL.parse(proxy) : null
  if (url === null || url.hostname === '')
    throw new ScrapeError('E_OPTION', 'the proxy of the task is neither user:password@host:port nor a URL of one')
  if (allowPrivate || allowAddresses.includes(url.hostname) || allowAddresses.includes(url.host)) return proxy
  const addresses = await lookup(url.hostname.replace(/^\[|\]$/g, ''), { all: true }).catch((error: Error) => {
    throw new ScrapeError('E_PROXY', `the proxy ${url.host} of the task has no address: ${error.message}`)
  })
  if (addresses.every(({ address }) => isPublicAddress(address))) return proxy
  throw new ScrapeError('E_PRIVATE_ADDRESS', `the proxy ${url.host} of the task is at a private address`)
}
