/** PostgreSQL for tests: an empty database on a server that all test files share, or a separate server that a test can stop. */
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Client } from 'pg'
import type { ServerTls } from './certificates.ts'
import { findProgram, type Service } from './find-program.ts'
import { withFreePort } from './free-port.ts'
import { OwnedServer, plainUser } from './owned-server.ts'

export const POSTGRES: Service = {
  name: 'PostgreSQL',
  program: 'usr/lib/postgresql/*/bin/postgres',
  package: 'postgresql',
  urlVariable: 'SLUICE_TEST_PG_URL',
  isRunAsPlainUser: true, // it refuses root
}

export interface PostgresOptions {
  /** Every commit reaches the disk. For tests that kill the server; all others are faster without. Default false. */
  fsync?: boolean
  /** More settings, as `name=value`. */
  settings?: readonly string[]
  /** Accept only TLS connections. */
  tls?: ServerTls
}

export interface TestDatabase extends AsyncDisposable {
  /** `postgres://postgres@127.0.0.1:PORT/NAME` */
  url: string
  name: string
}

export interface PostgresServer extends AsyncDisposable {
  /**
   * URL of its database `postgres`, with all rights; over TLS with the server's own certificate as the client's. The port stays
   * the same across `stop` and `start`.
   */
  readonly url: string
  readonly port: number
  /** Pid of the postmaster; undefined while stopped. */
  readonly pid: number | undefined
  /** Its output so far. */
  readonly log: string
  /** `fast` rolls back and closes its connections; `immediate` drops everything, like a crash. */
  stop(how: 'fast' | 'immediate'): Promise<void>
  /** Ready for connections when this returns. */
  start(): Promise<void>
  /** Stops, by default `fast`, and starts. */
  restart(how?: 'fast' | 'immediate'): Promise<void>
  /** A fresh empty database on this server. */
  createDatabase(): Promise<TestDatabase>
}

/**
 * A fresh empty database. On the server of `SLUICE_TEST_PG_URL`, which `make test` starts; otherwise on one that this process
 * starts once for all its tests, and which dies with it.
 */
export async function postgresForTests(options: PostgresOptions = {}): Promise<TestDatabase> {
  const isSpecial = options.settings !== undefined && options.settings.length > 0
  const given = isSpecial ? undefined : process.env['SLUICE_TEST_PG_URL']
  if (given !== undefined && given !== '') {
    if (options.fsync !== true || (await hasFsync(given))) return await createDatabase(given)
  }
  const key = JSON.stringify([options.fsync === true, options.settings])
  let server = ownServers.get(key)
  if (server === undefined) {
    server = startPostgres(options)
    ownServers.set(key, server)
  }
  return await (await server).createDatabase()
}

const ownServers = new Map<string, Promise<PostgresServer>>()

/** A separate server, for tests that stop and restart it. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const { path, env } = await findProgram(POSTGRES)
  const server = new OwnedServer('postgres', { asPlainUser: true, stopSignal: 'SIGQUIT' })
  const data = join(server.folder, 'data')
  try {
    const initArgs = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
    await server.run(join(dirname(path), 'initdb'), initArgs, env)
    const all = options.tls === undefined ? options : { ...options, settings: tlsSettings(server.folder, options.tls) }
    const start = async (port: number) => {
      await server.start({
        file: path,
        args: argsOf(data, port, all),
        env,
        isReady: () => isReady(data, server.pid),
      })
      return port
    }
    const port = await withFreePort(start)
    return serverOn(port, server, start, options.tls)
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

/** It only reads a key that other users cannot access. */
function tlsSettings(folder: string, { ca, cert, key, wantsClient = false }: ServerTls): string[] {
  const own = (from: string, name: string) => {
    const path = join(folder, name)
    copyFileSync(from, path)
    chmodSync(path, 0o600)
    if (plainUser.uid !== undefined) chownSync(path, plainUser.uid, plainUser.gid!)
    return path
  }
  const rights = join(folder, 'hba.conf')
  writeFileSync(rights, `hostssl all all 127.0.0.1/32 trust${wantsClient ? ' clientcert=verify-ca' : ''}\n`)
  return [
    'ssl=on',
    `ssl_ca_file=${own(ca, 'ca.pem')}`,
    `ssl_cert_file=${own(cert, 'server.pem')}`,
    `ssl_key_file=${own(key, 'server.key')}`,
    `hba_file=${rights}`,
  ]
}

function serverOn(
  port: number,
  server: OwnedServer,
  start: (port: number) => Promise<unknown>,
  tls: ServerTls | undefined,
): PostgresServer {
  const secure = tls && `?sslmode=verify-full&sslrootcert=${tls.ca}&sslcert=${tls.cert}&sslkey=${tls.key}`
  const url = `postgres://postgres@127.0.0.1:${port}/postgres${secure ?? ''}`
  const stop = (how: 'fast' | 'immediate') => server.stop(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
  return {
    url,
    port,
    get pid() {
      return server.pid
    },
    get log() {
      return server.log
    },
    stop,
    async start() {
      await start(port)
    },
    async restart(how = 'fast') {
      await stop(how)
      await start(port)
    },
    createDatabase: () => createDatabase(url),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function argsOf(data: string, port: number, { fsync = false, settings = [] }: PostgresOptions): string[] {
  const all = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'unix_socket_directories=',
    'max_connections=200',
    ...(fsync ? ['fsync=on'] : ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']),
    ...settings,
  ]
  return ['-D', data, ...all.flatMap((setting) => ['-c', setting])]
}

/** The postmaster writes its state to the eighth line of this file; `pg_ctl` reads it there, too. */
function isReady(data: string, pid: number | undefined): boolean {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
    return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
  } catch {
    return false
  }
}

async function createDatabase(serverUrl: string): Promise<TestDatabase> {
  const name = `sluice_test_${randomBytes(6).toString('hex')}`
  await execute(serverUrl, `create database ${name} template template0`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return {
    url: url.href,
    name,
    async [Symbol.asyncDispose]() {
      await execute(serverUrl, `drop database if exists ${name} with (force)`)
    },
  }
}

async function hasFsync(url: string): Promise<boolean> {
  return (await execute(url, 'show fsync'))[0]?.['fsync'] === 'on'
}

async function execute(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
  client.on('error', () => {}) // a server that goes down while we close
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}
