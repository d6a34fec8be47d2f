/**
 * The way to a socket through a proxy, the counterpart of `address.ts`. Names are resolved at the proxy (a lookup here would
 * tell our resolver what Tor is meant to hide), so only the URL itself can be checked: private literals and `localhost` are
 * refused as usual. What a name resolves to at the proxy is the proxy's responsibility.
 */
import { connect as connectSocket, isIP, type Socket } from 'node:net'
import { ScrapeError } from '../../core/errors.ts'
import { type AddressGuard, type AddressOptions, isPublicAddress, openAddressGuard } from './address.ts'
import { hostOf, type ProxyAddress, parseProxy } from './proxy-url.ts'
import { openConnectTunnel, openSocks5Tunnel, proxyError, type TunnelTarget } from './tunnel.ts'
import { buildConnector } from './undici.ts'

/** `localhost` is this machine by definition (RFC 6761), and the proxy may well run on it. */
const LOCAL_NAME = /(?:^|\.)localhost\.*$/i

export function openProxyGuard(options: AddressOptions, proxyUrl: string): AddressGuard {
  const proxy = parseProxy(proxyUrl)
  openAddressGuard(options) // throws if an entry is not HOST:PORT
  const allowed = new Set(options.allowAddresses.flatMap(authoritiesOf))
  const isRefused = (hostname: string, port: number): boolean => {
    if (options.allowPrivate || allowed.has(hostOf(hostname, port))) return false
    return isIP(hostname) === 0 ? LOCAL_NAME.test(hostname) : !isPublicAddress(hostname)
  }
  return (origin) => {
    const port = Number(origin.port) || (origin.protocol === 'https:' ? 443 : 80)
    const secure = buildConnector({
      timeout: options.connectTimeoutMs,
      allowH2: false,
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    })
    return (target, callback) => {
      if (isRefused(target.hostname, port)) {
        const message = `${hostOf(target.hostname, port)} is an address of the private network`
        callback(new ScrapeError('E_PRIVATE_ADDRESS', message), null)
        return
      }
      openTunnel(proxy, { hostname: target.hostname, port }, options.connectTimeoutMs).then(
        (socket) => {
          if (origin.protocol === 'https:') secure({ ...target, httpSocket: socket }, callback)
          else callback(null, socket)
        },
        (error: Error) => callback(error, null),
      )
    }
  }
}

function openTunnel(proxy: ProxyAddress, target: TunnelTarget, timeoutMs: number): Promise<Socket> {
  const where = hostOf(proxy.hostname, proxy.port)
  return new Promise((resolve, reject) => {
    const socket = connectSocket({ host: proxy.hostname, port: proxy.port, noDelay: true, keepAlive: true })
    let isConnected = false
    const timer = setTimeout(() => {
      if (!isConnected) fail(proxyError(`${where} does not answer within ${timeoutMs} ms`))
      else fail(new ScrapeError('E_TIMEOUT_CONNECT', `no way through the proxy ${where} within ${timeoutMs} ms`))
    }, timeoutMs)
    const fail = (error: Error) => {
      clearTimeout(timer)
      socket.destroy()
      reject(
        error instanceof ScrapeError
          ? named(error, where)
          : proxyError(`${where} cannot be reached: ${error.message}`, error),
      )
    }
    socket.once('error', fail)
    socket.once('connect', () => {
      isConnected = true
      const open = proxy.kind === 'socks5' ? openSocks5Tunnel : openConnectTunnel
      open(socket, target, proxy.login).then(() => {
        clearTimeout(timer)
        socket.off('error', fail)
        socket.on('error', () => {}) // undici handles errors from here on; this covers the time until it has its listener
        resolve(socket)
      }, fail)
    })
  })
}

/** Adds the proxy's address to the errors of a handshake, which does not know it. */
function named({ code, message, details }: ScrapeError, where: string): ScrapeError {
  const text = message.includes(where) ? message : message.replace(/^the proxy /, `the proxy ${where} `)
  return new ScrapeError(code, text, details)
}

/** As in `address.ts`: without a port, one entry for each default port. */
function authoritiesOf(entry: string): string[] {
  const { hostname, port } = new URL(`http://${entry}`)
  if (port !== '') return [`${hostname}:${port}`]
  return /:0*80$/.test(entry) ? [`${hostname}:80`] : [`${hostname}:80`, `${hostname}:443`]
}
