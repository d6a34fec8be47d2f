/** Parses proxy URLs. Separate from `proxy.ts` because options are read at every start, and most commands need no HTTP client. */
import { isIP } from 'node:net'
import { ScrapeError } from '../../core/errors.ts'
import type { Login } from './tunnel.ts'

export interface ProxyAddress {
  kind: 'socks5' | 'http'
  hostname: string
  port: number
  login?: Login
}

const DEFAULT_PORTS = { socks5: 1080, http: 8080 } as const

/** `socks5://[user:password@]host:port` or `http://…`. Throws `E_OPTION`, with the password removed. */
export function parseProxy(proxyUrl: string): ProxyAddress {
  const url = URL.parse(proxyUrl)
  const kind = url === null ? undefined : KINDS[url.protocol]
  if (url === null || kind === undefined || url.hostname === '' || (url.pathname !== '' && url.pathname !== '/')) {
    // Everything up to the last `@` is the login: an unescaped `/` in its password is often the reason for the error.
    const shown = proxyUrl.replace(/^.*@/s, '…@').slice(0, 200)
    const message = `a proxy is socks5://[USER:PASSWORD@]HOST:PORT or http://…, not ${JSON.stringify(shown)}`
    throw new ScrapeError('E_OPTION', message, {
      fix: 'Escape special characters of a password in the URL: / is %2F, @ is %40, # is %23.',
    })
  }
  const port = Number(url.port) || (kind === 'http' && /:0*80\/?$/.test(proxyUrl) ? 80 : DEFAULT_PORTS[kind])
  const login = { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
  const hostname = url.hostname.replace(/^\[|\]$/g, '')
  return { kind, hostname, port, ...(login.user === '' ? {} : { login }) }
}

/** `socks5h` is what curl calls our `socks5`. */
const KINDS: Readonly<Record<string, ProxyAddress['kind']>> = {
  'socks5:': 'socks5',
  'socks5h:': 'socks5',
  'http:': 'http',
}

/** A proxy's name for display: where it is, never the login. */
export function proxyName(proxyUrl: string): string {
  const { hostname, port } = parseProxy(proxyUrl)
  return hostOf(hostname, port)
}

export function hostOf(hostname: string, port: number): string {
  return isIP(hostname) === 6 ? `[${hostname}]:${port}` : `${hostname}:${port}`
}
