/** Unused ports. */
import { connect, createServer } from 'node:net'

/**
 * Below the range for outgoing connections (32768 and up): a server that is stopped and restarted must find its port free, and a
 * client that connects in the meantime must not be connected to itself.
 */
const PORT_MIN = 18_000
const PORT_MAX = 31_999

export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = PORT_MIN + Math.floor(Math.random() * (PORT_MAX - PORT_MIN + 1))
    if (await isFree(port)) return port
  }
  throw new Error(`no free port between ${PORT_MIN} and ${PORT_MAX} on 127.0.0.1`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** Tries `start` with another port if it fails: another process may have taken the port in between. */
export async function withFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    const port = await freePort()
    try {
      return await start(port)
    } catch (error) {
      if (tries === 3 || !/in use|EADDRINUSE/i.test(String(error))) throw error
    }
  }
}

/** Whether something listens there. */
export function isAnswered(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
