/** A real Caddy for tests, with the test's Caddyfile. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, type Service } from './find-program.ts'
import { isAnswered, withFreePort } from './free-port.ts'
import { OwnedServer } from './owned-server.ts'

export const CADDY: Service = { name: 'Caddy', program: 'usr/bin/caddy', package: 'caddy' }

/** No admin port, no certificates fetched or installed, no second port for redirects to https. */
const GLOBAL = `{
  admin off
  auto_https disable_redirects
}
`

export interface CaddyServer extends AsyncDisposable {
  readonly port: number
}

/** `siteFor`: the site that listens on this port. */
export async function caddyForTests(siteFor: (port: number) => string): Promise<CaddyServer> {
  const { path, env } = await findProgram(CADDY)
  const server = new OwnedServer('caddy', { stopSignal: 'SIGTERM' })
  try {
    const port = await withFreePort(async (free) => {
      const file = join(server.folder, 'Caddyfile')
      writeFileSync(file, GLOBAL + siteFor(free))
      await server.start({
        file: path,
        args: ['run', '--config', file, '--adapter', 'caddyfile'],
        env: { ...env, HOME: server.folder, XDG_DATA_HOME: server.folder, XDG_CONFIG_HOME: server.folder },
        isReady: () => isAnswered(free),
      })
      return free
    })
    return { port, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}
