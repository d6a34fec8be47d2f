/** Is the proxy there? */
import { ScrapeError } from '../../core/errors.ts'

const PROXY_MS_MAX = 5_000

/** A proxy that is not there would cost every page its tries: better to say so before the first one is claimed. */
export async function reachProxy(proxy: string): Promise<void> {
  const { hostname, port, protocol } = new URL(proxy)
  const { connect } = process.getBuiltinModule('node:net')
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port) || (protocol === 'http:' ? 80 : 1080),
  })
  socket.setTimeout(PROXY_MS_MAX, () => socket.destroy(new Error(`no answer in ${PROXY_MS_MAX} ms`)))
  try {
    await process.getBuiltinModule('node:events').once(socket, 'connect')
  } catch (cause) {
    throw new ScrapeError('E_PROXY', `the proxy ${hostname}:${port} cannot be reached: ${(cause as Error).message}`, {
      cause,
    })
  } finally {
    socket.destroy()
  }
}
