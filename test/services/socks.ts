/** A real SOCKS5 proxy for tests: microsocks, optionally with a password. */
import { setTimeout as delay } from 'node:timers/promises'
import { findProgram, type Service } from './find-program.ts'
import { isAnswered, withFreePort } from './free-port.ts'
import { OwnedServer } from './owned-server.ts'

export const MICROSOCKS: Service = { name: 'microsocks', program: 'usr/bin/microsocks', package: 'microsocks' }

/** The longest a server that lost the race for its port takes to report that and exit. */
const ALIVE_MS = 30

export interface SocksServer extends AsyncDisposable {
  /** `socks5://user:password@127.0.0.1:PORT` */
  readonly url: string
  readonly port: number
  readonly pid: number | undefined
  /** A line for each connection: its target, as the client named it. */
  readonly log: string
  stop(): Promise<void>
}

export async function socksForTests(login?: { user: string; password: string }): Promise<SocksServer> {
  const { path, env } = await findProgram(MICROSOCKS)
  const server = new OwnedServer('microsocks', { asPlainUser: true })
  try {
    const port = await withFreePort(async (port) => {
      const loginArgs = login === undefined ? [] : ['-u', login.user, '-P', login.password]
      const args = ['-i', '127.0.0.1', '-p', String(port), ...loginArgs]
      const isReady = async () => (await isAnswered(port)) && (await delay(ALIVE_MS, server.pid !== undefined))
      await server.start({ file: path, args, env, isReady })
      return port
    })
    const credentials = login && `${encodeURIComponent(login.user)}:${encodeURIComponent(login.password)}@`
    return {
      url: `socks5://${credentials ?? ''}127.0.0.1:${port}`,
      port,
      get pid() {
        return server.pid
      },
      get log() {
        return server.log
      },
      stop: () => server.stop('SIGKILL'),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}
