/** Checks that a proxy is up, as far as possible without a target: a connection and, for SOCKS5, the greeting and our login. */
import { connect, type Socket } from 'node:net'
import { parseProxy } from './proxy-url.ts'
import { greetSocks5, proxyError } from './tunnel.ts'

/** Resolves with how long it took. Rejects with `E_PROXY`. The login appears in neither. */
export async function checkProxy(proxyUrl: string, timeoutMs: number): Promise<number> {
  const { kind, hostname, port, login } = parseProxy(proxyUrl)
  const startedMs = performance.now()
  const socket = connect({ host: hostname, port, noDelay: true })
  const timeout = Promise.withResolvers<never>()
  const timer = setTimeout(() => timeout.reject(proxyError(`does not answer within ${timeoutMs} ms`)), timeoutMs)
  try {
    await Promise.race([timeout.promise, greet(socket, kind === 'socks5', login)])
    return performance.now() - startedMs
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw code === 'E_PROXY' ? error : proxyError(`cannot be reached: ${message || code}`, error)
  } finally {
    clearTimeout(timer)
    socket.on('error', () => {}).destroy()
  }
}

async function greet(socket: Socket, isSocks: boolean, login: Parameters<typeof greetSocks5>[1]): Promise<void> {
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  if (isSocks) await greetSocks5(socket, login)
}
