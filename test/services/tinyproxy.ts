/** A real HTTP proxy for tests: tinyproxy, which supports CONNECT, optionally with a password. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { findProgram, type Service } from './find-program.ts'
import { isAnswered, withFreePort } from './free-port.ts'
import { OwnedServer } from './owned-server.ts'

export const TINYPROXY: Service = { name: 'tinyproxy', program: 'usr/bin/tinyproxy', package: 'tinyproxy' }

/** The longest a server that lost the race for its port takes to report that and exit. */
const ALIVE_MS = 30

export interface HttpProxyServer extends AsyncDisposable {
  /** `http://user:password@127.0.0.1:PORT` */
  readonly url: string
  readonly port: number
  /** A line for each connection and request. */
  readonly log: string
  /** At once, with all its tunnels. */
  stop(): Promise<void>
  /** Restarts it on the same port. */
  start(): Promise<void>
}

export async function tinyproxyForTests(login?: { user: string; password: string }): Promise<HttpProxyServer> {
  const { path, env } = await findProgram(TINYPROXY)
  const server = new OwnedServer('tinyproxy', { asPlainUser: true })
  const start = async (port: number) => {
    const file = join(server.folder, 'tinyproxy.conf')
    writeFileSync(file, configOf(port, login))
    const isReady = async () => (await isAnswered(port)) && (await delay(ALIVE_MS, server.pid !== undefined))
    await server.start({ file: path, args: ['-d', '-c', file], env, isReady })
    return port
  }
  try {
    const port = await withFreePort(start)
    const credentials = login && `${encodeURIComponent(login.user)}:${encodeURIComponent(login.password)}@`
    return {
      url: `http://${credentials ?? ''}127.0.0.1:${port}`,
      port,
      get log() {
        return server.log
      },
      stop: () => server.stop('SIGKILL'),
      start: async () => void (await start(port)),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

/** Without a list of ports, CONNECT may lead to any. */
function configOf(port: number, login: { user: string; password: string } | undefined): string {
  return [
    `Port ${port}`,
    'Listen 127.0.0.1',
    'Allow 127.0.0.1',
    'Timeout 60',
    'MaxClients 200',
    'LogLevel Connect',
    ...(login === undefined ? [] : [`BasicAuth ${login.user} ${login.password}`]),
    '',
  ].join('\n')
}
