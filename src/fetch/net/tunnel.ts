/**
 * The two handshakes that turn a socket to a proxy into one to the target: SOCKS5 (RFC 1928, 1929) and HTTP CONNECT (RFC 9110).
 *
 * Our own implementation, because undici's SOCKS5 client leaves the socket flowing and its listeners attached once the tunnel is
 * up, and requires a password with every user name. This one reads exactly the handshake: no byte that follows it is lost.
 */
import { isIPv4, isIPv6, type Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { ScrapeError } from '../../core/errors.ts'

export interface TunnelTarget {
  /** Names are sent unresolved; the proxy resolves them. IPv6 without brackets. */
  hostname: string
  port: number
}

export interface Login {
  user: string
  password: string
}

const SOCKS_VERSION = 5
const LOGIN_VERSION = 1
const NO_LOGIN = 0
const USER_AND_PASSWORD = 2
const CONNECT = 1
const ADDRESS_BYTES: Readonly<Record<number, number>> = { 1: 4, 4: 16 }
const NAME_TYPE = 3
const HEAD_BYTES_MAX = 16_384

/** The errors a SOCKS5 proxy may reply with. Errors about the target are not the proxy's fault. */
const REPLIES: Readonly<Record<number, { code: 'E_PROXY' | 'E_CONNECTION' | 'E_TIMEOUT_CONNECT'; what: string }>> = {
  1: { code: 'E_PROXY', what: 'failed for a reason it does not name' },
  2: { code: 'E_PROXY', what: 'does not allow it' },
  3: { code: 'E_CONNECTION', what: 'cannot reach the network' },
  4: { code: 'E_CONNECTION', what: 'cannot reach the host' },
  5: { code: 'E_CONNECTION', what: 'was refused there' },
  6: { code: 'E_TIMEOUT_CONNECT', what: 'got no answer there' },
  7: { code: 'E_PROXY', what: 'does not know CONNECT' },
  8: { code: 'E_PROXY', what: 'does not know this kind of address' },
}

/** All that can be checked of a SOCKS5 proxy without a target: that it is one, and that it accepts our login. */
export async function greetSocks5(socket: Socket, login?: Login): Promise<void> {
  const methods = login === undefined ? [NO_LOGIN] : [NO_LOGIN, USER_AND_PASSWORD]
  socket.write(Buffer.from([SOCKS_VERSION, methods.length, ...methods]))
  const [version, method] = await readExactly(socket, 2)
  if (version !== SOCKS_VERSION) throw proxyError('is no SOCKS5 proxy')
  if (method === USER_AND_PASSWORD && login !== undefined) await logIn(socket, login)
  else if (method !== NO_LOGIN) {
    throw loginError(
      login === undefined ? 'requires a user name and a password' : 'supports none of our authentication methods',
    )
  }
}

export async function openSocks5Tunnel(socket: Socket, target: TunnelTarget, login?: Login): Promise<void> {
  await greetSocks5(socket, login)
  const port = Buffer.alloc(2)
  port.writeUInt16BE(target.port)
  socket.write(Buffer.concat([Buffer.from([SOCKS_VERSION, CONNECT, 0]), addressOf(target.hostname), port]))
  const answer = await readExactly(socket, 4)
  const reply = answer[1]!
  if (reply !== 0) {
    const { code, what } = REPLIES[reply] ?? { code: 'E_PROXY', what: `failed (${reply})` }
    throw new ScrapeError(code, `the proxy ${what}: ${target.hostname}:${target.port}`)
  }
  // The proxy's own outgoing address: not needed, but it has to be read.
  const addressBytes = ADDRESS_BYTES[answer[3]!] ?? (await readExactly(socket, 1))[0]!
  await readExactly(socket, addressBytes + 2)
}

async function logIn(socket: Socket, { user, password }: Login): Promise<void> {
  const words = [user, password].map((word) => Buffer.from(word))
  if (words.some((word) => word.length > 255)) throw proxyError('takes at most 255 bytes of user name or password')
  const fields = words.flatMap((word) => [Buffer.from([word.length]), word])
  socket.write(Buffer.concat([Buffer.from([LOGIN_VERSION]), ...fields]))
  const [, status] = await readExactly(socket, 2)
  if (status !== 0) throw loginError('rejects our user name or password')
}

function addressOf(hostname: string): Buffer {
  const type = isIPv4(hostname) ? 1 : isIPv6(hostname) ? 4 : NAME_TYPE
  if (type !== NAME_TYPE) return Buffer.from([type, ...ipaddr.parse(hostname).toByteArray()])
  const name = Buffer.from(hostname)
  if (name.length > 255) throw new ScrapeError('E_DNS', `a host name of ${name.length} bytes`)
  return Buffer.concat([Buffer.from([type, name.length]), name])
}

export async function openConnectTunnel(socket: Socket, target: TunnelTarget, login?: Login): Promise<void> {
  const host = isIPv6(target.hostname) ? `[${target.hostname}]` : target.hostname
  const authority = `${host}:${target.port}`
  const credentials = login && Buffer.from(`${login.user}:${login.password}`).toString('base64')
  const authorization = credentials === undefined ? '' : `Proxy-Authorization: Basic ${credentials}\r\n`
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`)
  const head = await readHead(socket)
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |\r)/.exec(head)?.[1])
  if (status >= 200 && status < 300) return
  // tinyproxy answers a wrong password with 401.
  if (status === 407 || status === 401)
    throw loginError(
      `${login === undefined ? 'requires a user name and a password' : 'rejects our user name or password'} (${status})`,
    )
  // 502 and 504 are about the target; anything else is between the proxy and us.
  if (status === 502) throw new ScrapeError('E_CONNECTION', `the proxy cannot reach ${authority} (502)`)
  if (status === 504) throw new ScrapeError('E_TIMEOUT_CONNECT', `the proxy got no answer from ${authority} (504)`)
  if (Number.isNaN(status)) throw proxyError('is not an HTTP proxy')
  throw new ScrapeError('E_PROXY', `the proxy answers CONNECT to ${authority} with ${status}`, { status })
}

async function readHead(socket: Socket): Promise<string> {
  let head = Buffer.alloc(0)
  for (;;) {
    head = Buffer.concat([head, await readExactly(socket, 1), (socket.read() as Buffer | null) ?? Buffer.alloc(0)])
    const end = head.indexOf('\r\n\r\n')
    if (end !== -1) {
      if (head.length > end + 4) socket.unshift(head.subarray(end + 4))
      return head.toString('latin1', 0, end + 4)
    }
    if (head.length > HEAD_BYTES_MAX) throw proxyError('answers without end')
  }
}

function readExactly(socket: Socket, bytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const look = () => {
      const chunk = socket.read(bytes) as Buffer | null
      if (chunk?.length === bytes) end(() => resolve(chunk))
      else if (chunk !== null || socket.readableEnded || socket.destroyed) end(() => reject(proxyError('hung up')))
    }
    const fail = (error: Error) => end(() => reject(error))
    const end = (settle: () => void) => {
      socket.off('readable', look).off('end', look).off('close', look).off('error', fail)
      settle()
    }
    socket.on('readable', look).on('end', look).on('close', look).on('error', fail)
    look()
  })
}

function loginError(what: string): ScrapeError {
  return new ScrapeError('E_PROXY', `the proxy ${what}`, { isLoginRefused: true })
}

export function proxyError(what: string, cause?: unknown): ScrapeError {
  return new ScrapeError('E_PROXY', `the proxy ${what}`, { cause })
}
