/**
 * PostgreSQL, Redis and RabbitMQ as docker-compose.yml configures them: the same users, with the passwords its first service
 * generated.
 */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { ROOT } from '../../deploy/checks.ts'
import { startPostgres } from '../../test/services/postgres.ts'
import { startRabbit } from '../../test/services/rabbitmq.ts'
import { startRedis } from '../../test/services/redis.ts'
import type { Compose } from './compose.ts'

export interface Server extends AsyncDisposable {
  readonly port: number
  /** Undefined if it has ended. */
  readonly pid: number | undefined
  /** Its output; for our own processes also after their end. */
  readonly log: string
}

const SCRIPT = join(ROOT, 'deploy/docker/make-secrets.mjs')

/** Runs the actual script of the service `secrets`. */
export async function makeSecrets(compose: Compose): Promise<void> {
  const [, , ...args] = compose.place('secrets').command
  await promisify(execFile)(process.execPath, [SCRIPT, ...args])
}

/** The URLs written by that script name services of a network; here they are replaced by ports. */
export function linkTo(servers: ReadonlyMap<string, Server>, compose: Compose): void {
  const folder = compose.volume('secrets-links')
  for (const file of readdirSync(folder)) {
    const path = join(folder, file)
    const url = new URL(readFileSync(path, 'utf8'))
    const server = servers.get(url.hostname)
    if (server === undefined) throw new Error(`links/${file} names ${url.hostname}, which is no server of the stack`)
    url.hostname = '127.0.0.1'
    url.port = String(server.port)
    rmSync(path) // read-only, as in a container
    writeFileSync(path, url.href, { mode: 0o400 })
  }
}

export const SERVERS: Readonly<Record<string, (compose: Compose) => Promise<Server>>> = {
  postgres: startDatabase,
  redis: startCache,
  rabbitmq: startBroker,
}

async function startDatabase(compose: Compose): Promise<Server> {
  const { env, command } = compose.place('postgres')
  const settings = command.filter((_, i) => command[i - 1] === '-c')
  const server = await startPostgres({ settings })
  try {
    const password = readFileSync(env['POSTGRES_PASSWORD_FILE']!, 'utf8')
    const { POSTGRES_USER: user, POSTGRES_DB: database } = env
    await using administrator = await connected(server.url)
    const { rows } = await administrator.client.query('show hba_file')
    await administrator.client.query(`create role ${user} superuser login password '${password}'`)
    await administrator.client.query(`create database ${database} owner ${user}`)
    // From here on a password is required: the file with its access rules is replaced by one line.
    await administrator.client.query(`copy (select 'host all all 127.0.0.1/32 scram-sha-256') to '${rows[0].hba_file}'`)
    await administrator.client.query('select pg_reload_conf()')
    return server
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

async function connected(url: string): Promise<AsyncDisposable & { client: Client }> {
  const client = new Client({ connectionString: url })
  await client.connect()
  return { client, [Symbol.asyncDispose]: () => client.end() }
}

/** Folder and address are those of this machine. */
const NOT_HERE = new Set(['dir', 'bind'])

async function startCache(compose: Compose): Promise<Server> {
  const path = compose.place('redis').command[1]!
  const lines = readFileSync(path, 'utf8').trim().split('\n').map((line) => line.split(' ')) // biome-ignore format: one chain
  const settings = lines.filter(([name]) => !NOT_HERE.has(name!)).flatMap(([name, ...rest]) => [`--${name}`, ...rest])
  return await startRedis({ settings })
}

async function startBroker(compose: Compose): Promise<Server> {
  const folder = compose.place('rabbitmq').locate('/etc/rabbitmq/conf.d')
  const text = readFileSync(join(folder, '10-sluice.conf'), 'utf8')
  const [user, password] = ['default_user', 'default_pass'].map((name) => new RegExp(`${name} = (\\S+)`).exec(text)![1])
  const server = await startRabbit()
  try {
    const { api } = await server.createVhost()
    await api('PUT', `/users/${user}`, { password, tags: 'administrator' })
    await api('PUT', `/permissions/%2F/${user}`, { configure: '.*', write: '.*', read: '.*' })
    await api('DELETE', '/users/guest') // as in the container: the only user is ours
    return server
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}
