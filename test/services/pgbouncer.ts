/** PgBouncer for tests, in transaction mode: session state (SET, LISTEN, advisory locks, named statements) is lost here. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, type Service } from './find-program.ts'
import { withFreePort } from './free-port.ts'
import { OwnedServer } from './owned-server.ts'

export const PGBOUNCER: Service = {
  name: 'PgBouncer',
  program: 'usr/sbin/pgbouncer',
  package: 'pgbouncer',
  isRunAsPlainUser: true, // it refuses root
}

export interface PgbouncerOptions {
  /** Connections to PostgreSQL. Few, so that a client's transactions really change connections. Default 3. */
  poolSize?: number
}

export interface Pgbouncer extends AsyncDisposable {
  /** The database of the given URL, through the pooler. */
  readonly url: string
  readonly port: number
  readonly log: string
}

/** In front of the PostgreSQL at `url`. */
export async function pgbouncerForTests(url: string, options: PgbouncerOptions = {}): Promise<Pgbouncer> {
  const { path, env } = await findProgram(PGBOUNCER)
  const server = new OwnedServer('pgbouncer', { asPlainUser: true })
  const settings = join(server.folder, 'pgbouncer.ini')
  try {
    const port = await withFreePort(async (port) => {
      writeFileSync(settings, settingsOf(new URL(url), port, options))
      const from = server.log.length
      const isReady = () => server.log.slice(from).includes('process up')
      await server.start({ file: path, args: [settings], env, isReady })
      return port
    })
    const pooledUrl = new URL(url)
    pooledUrl.port = String(port)
    pooledUrl.hostname = '127.0.0.1'
    return {
      url: pooledUrl.href,
      port,
      get log() {
        return server.log
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

function settingsOf(url: URL, port: number, { poolSize = 3 }: PgbouncerOptions): string {
  const password = url.password === '' ? '' : ` password=${decodeURIComponent(url.password)}`
  return `[databases]
* = host=${url.hostname} port=${url.port || 5432} user=${decodeURIComponent(url.username) || 'postgres'}${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
`
}
