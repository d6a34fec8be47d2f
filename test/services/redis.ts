/** Redis for tests: an empty database, on a separate server (22 ms) or the one of `SLUICE_TEST_REDIS_URL`. */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { ServerTls } from './certificates.ts'
import { findProgram, type Service } from './find-program.ts'
import { withFreePort } from './free-port.ts'
import { OwnedServer } from './owned-server.ts'

export const REDIS: Service = {
  name: 'Redis',
  program: 'usr/bin/redis-server',
  package: 'redis-server',
  urlVariable: 'SLUICE_TEST_REDIS_URL',
}

export interface TestRedis extends AsyncDisposable {
  /** `redis://127.0.0.1:PORT/NUMBER` */
  readonly url: string
}

export interface RedisServer extends TestRedis {
  readonly port: number
  readonly pid: number | undefined
  readonly log: string
  /** `SIGTERM` saves pending writes, `SIGKILL` is a crash. What was appended before is back after `start`. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
  start(): Promise<void>
}

/** An empty database that is cleared again afterwards. */
export async function redisForTests(): Promise<TestRedis> {
  const given = process.env['SLUICE_TEST_REDIS_URL'] ?? ''
  return given === '' ? await startRedis() : await claimDatabase(given)
}

export interface RedisOptions {
  /** If set, it has no plain-text port. */
  tls?: ServerTls
  /** Additional server arguments. */
  settings?: readonly string[]
}

/** A separate server, every write appended to its file, for tests that stop and restart it. */
export async function startRedis({ tls, settings = [] }: RedisOptions = {}): Promise<RedisServer> {
  const { path, env } = await findProgram(REDIS)
  const server = new OwnedServer('redis')
  const start = async (port: number) => {
    const from = server.log.length
    const isReady = () => server.log.slice(from).includes('Ready to accept connections')
    const own = ['--bind', '127.0.0.1', '--dir', server.folder, '--save', '', '--appendonly', 'yes']
    const ports = tls === undefined ? ['--port', String(port)] : tlsArgs(port, tls)
    await server.start({ file: path, args: [...ports, ...own, ...settings], env, isReady })
    return port
  }
  try {
    const port = await withFreePort(start)
    return {
      url: `${tls === undefined ? 'redis' : 'rediss'}://127.0.0.1:${port}/0`,
      port,
      get pid() {
        return server.pid
      },
      get log() {
        return server.log
      },
      stop: (signal) => server.stop(signal),
      async start() {
        await start(port)
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

function tlsArgs(port: number, { ca, cert, key, wantsClient = false }: ServerTls): string[] {
  const files = ['--tls-ca-cert-file', ca, '--tls-cert-file', cert, '--tls-key-file', key]
  return ['--port', '0', '--tls-port', String(port), ...files, '--tls-auth-clients', wantsClient ? 'yes' : 'no']
}

/** One of the numbered databases 1 to 15 of a shared server. Claims are recorded in database 0. */
async function claimDatabase(given: string): Promise<TestRedis> {
  for (let number = 1; number <= 15; number++) {
    const url = new URL(given)
    url.pathname = `/${number}`
    const key = `sluice-test:database:${number}`
    const [claimed] = await ask(given, [['SET', key, String(process.pid), 'NX', 'EX', '3600']])
    if (claimed !== '+OK') continue
    const [, size] = await ask(given, [['SELECT', String(number)], ['DBSIZE']]) // biome-ignore format: one line reads better
    if (size !== ':0') continue // contains other data; the claim stays, so that no other test looks again
    return {
      url: url.href,
      async [Symbol.asyncDispose]() {
        await ask(given, [['SELECT', String(number)], ['FLUSHDB'], ['SELECT', '0'], ['DEL', key]])
      },
    }
  }
  throw new Error(`SLUICE_TEST_REDIS_URL (${given}) has no empty database left among 1 to 15`)
}

/** The first line of each reply. The protocol is so small that using a client would be more code. */
async function ask(given: string, commands: string[][]): Promise<string[]> {
  const url = new URL(given)
  const socket = connect(Number(url.port || 6379), url.hostname)
  await once(socket, 'connect')
  try {
    const login = url.password === '' ? [] : [['AUTH', decodeURIComponent(url.password)]]
    const all = [...login, ...commands]
    const encode = (words: string[]) => words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')
    socket.write(all.map((words) => `*${words.length}\r\n${encode(words)}`).join(''))
    let text = ''
    while (text.split('\r\n').length <= all.length) text += String((await once(socket, 'data'))[0])
    return text.split('\r\n').slice(login.length)
  } finally {
    socket.destroy()
  }
}
