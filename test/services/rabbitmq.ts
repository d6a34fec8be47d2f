/** RabbitMQ for tests: a virtual host on a broker that all test files share, or a separate broker that a test can stop. */
import { randomBytes } from 'node:crypto'
import { chmodSync, globSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ServerTls } from './certificates.ts'
import { findProgram, type Program, type Service } from './find-program.ts'
import { freePort, isAnswered, withFreePort } from './free-port.ts'
import { OwnedServer } from './owned-server.ts'

export const RABBITMQ: Service = {
  name: 'RabbitMQ',
  program: 'usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server',
  package: 'rabbitmq-server',
  urlVariable: 'SLUICE_TEST_AMQP_URL',
}

/** As with RabbitMQ's own ports, 5672 and 15672. */
const API_PORT_OFFSET = 10_000

export interface TestRabbit extends AsyncDisposable {
  /** `amqp://guest:guest@127.0.0.1:PORT/VHOST`, with its own empty virtual host. */
  readonly url: string
  /** The management API: `await rabbit.api('GET', '/queues/VHOST')`. */
  api(method: string, path: string, body?: object): Promise<unknown>
  readonly vhost: string
}

export interface RabbitServer extends AsyncDisposable {
  /** URL of the virtual host `/`. The port stays the same across `stop` and `start`. */
  readonly url: string
  readonly port: number
  /** Pid of the Erlang VM; undefined while stopped. */
  readonly pid: number | undefined
  readonly log: string
  /** `SIGTERM` shuts down cleanly (1 s), `SIGKILL` is a crash. Durable queues are back after `start`. */
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
  start(): Promise<void>
  createVhost(): Promise<TestRabbit>
  /** `rabbitmqctl`, which takes one or two seconds. */
  ctl(...args: string[]): Promise<void>
}

let ownServer: Promise<RabbitServer> | undefined

/** On the broker of `SLUICE_TEST_AMQP_URL`; otherwise on one that this process starts once (5 s), and which dies with it. */
export async function rabbitForTests(): Promise<TestRabbit> {
  const given = process.env['SLUICE_TEST_AMQP_URL'] ?? ''
  if (given !== '') return await createVhost(given)
  ownServer ??= startRabbit()
  return await (await ownServer).createVhost()
}

/** A separate broker, for tests that stop and restart it. */
export async function startRabbit({ tls }: { tls?: ServerTls } = {}): Promise<RabbitServer> {
  const program = await findProgram(RABBITMQ)
  const server = new OwnedServer('rabbitmq')
  // If the broker starts epmd, it outlives the broker, so we start our own first.
  const epmd = new OwnedServer('epmd')
  const dispose = async () => {
    await server[Symbol.asyncDispose]()
    await epmd[Symbol.asyncDispose]()
  }
  try {
    const bin = erlangOf(program, server.folder)
    const epmdPort = await withFreePort(async (port) => {
      const isReady = () => isAnswered(port)
      await epmd.start({ file: join(bin, 'epmd'), args: ['-port', String(port), '-address', '127.0.0.1'], isReady })
      return port
    })
    let env: NodeJS.ProcessEnv = {}
    const start = async (port: number) => {
      const from = server.log.length
      const isReady = () => server.log.slice(from).includes('Server startup complete')
      env = environment(program, { folder: server.folder, bin, port, epmdPort, distPort: await freePort(), tls })
      await server.start({ file: program.path, args: [], env, isReady })
      return port
    }
    const port = await withFreePort(start)
    const url = `${tls === undefined ? 'amqp' : 'amqps'}://guest:guest@127.0.0.1:${port}`
    return {
      url,
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
      createVhost: () => createVhost(url),
      ctl: (...args) => server.run(join(program.path, '../rabbitmqctl'), args, env),
      [Symbol.asyncDispose]: dispose,
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

interface Places {
  folder: string
  bin: string
  port: number
  epmdPort: number
  distPort: number
  /** If set, broker and management API only accept TLS. */
  tls: ServerTls | undefined
}

/** Redirects everything it would read or write elsewhere into its folder. */
function environment(program: Program, { folder, bin, port, epmdPort, distPort, tls }: Places): NodeJS.ProcessEnv {
  const home = join(folder, 'home')
  for (const name of ['home', 'mnesia', 'logs', 'schema', 'config']) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 }) // biome-ignore format: one line reads better
  writeFileSync(join(folder, 'enabled_plugins'), '[rabbitmq_management].')
  writeFileSync(
    join(folder, 'rabbitmq.conf'),
    [
      ...(tls === undefined ? plainListeners(port) : tlsListeners(port, tls)),
      'disk_free_limit.absolute = 50MB',
      'vm_memory_high_watermark.absolute = 2GB',
      'log.console = true',
      'log.console.level = info',
      'log.file = false',
      'collect_statistics_interval = 1000',
    ].join('\n'),
  )
  return {
    ...program.env,
    PATH: `${bin}:${process.env['PATH']}`,
    HOME: home,
    RUNNING_UNDER_SYSTEMD: 'true', // the script becomes the broker instead of starting it as a child
    RABBITMQ_NODENAME: `sluice-${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distPort),
    ERL_EPMD_PORT: String(epmdPort),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
    RABBITMQ_LOG_BASE: join(folder, 'logs'),
    RABBITMQ_SCHEMA_DIR: join(folder, 'schema'),
    RABBITMQ_GENERATED_CONFIG_DIR: join(folder, 'config'),
    RABBITMQ_PID_FILE: join(folder, 'rabbit.pid'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_CONF_ENV_FILE: join(folder, 'no-such-file'),
    ERL_CRASH_DUMP: join(folder, 'erl_crash.dump'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
  }
}

const plainListeners = (port: number) => [
  `listeners.tcp.1 = 127.0.0.1:${port}`,
  'management.tcp.ip = 127.0.0.1',
  `management.tcp.port = ${port + API_PORT_OFFSET}`,
]

const tlsListeners = (port: number, { ca, cert, key, wantsClient = false }: ServerTls) => [
  'listeners.tcp = none',
  `listeners.ssl.1 = 127.0.0.1:${port}`,
  `ssl_options.cacertfile = ${ca}`,
  `ssl_options.certfile = ${cert}`,
  `ssl_options.keyfile = ${key}`,
  `ssl_options.verify = ${wantsClient ? 'verify_peer' : 'verify_none'}`,
  `ssl_options.fail_if_no_peer_cert = ${wantsClient}`,
  'management.ssl.ip = 127.0.0.1',
  `management.ssl.port = ${port + API_PORT_OFFSET}`,
  `management.ssl.cacertfile = ${ca}`,
  `management.ssl.certfile = ${cert}`,
  `management.ssl.keyfile = ${key}`,
]

/** Where `erl` and `epmd` are. Debian's `erl` knows only /usr/lib, so an unpacked one is replaced by a wrapper. */
function erlangOf({ path }: Program, folder: string): string {
  const root = resolve(path, '../../../../../erlang')
  const [runtime] = globSync('erts-*/bin', { cwd: root })
  if (runtime === undefined) return '/usr/bin'
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  const lines = [
    '#!/bin/sh',
    `export ROOTDIR=${root} BINDIR=${join(root, runtime)} EMU=beam PROGNAME=erl`,
    'exec "$BINDIR/erlexec" "$@"',
  ]
  writeFileSync(join(bin, 'erl'), `${lines.join('\n')}\n`)
  for (const name of ['epmd', 'escript']) writeFileSync(join(bin, name), `#!/bin/sh\nexec ${join(root, runtime, name)} "$@"\n`) // biome-ignore format: one line reads better
  for (const name of ['erl', 'epmd', 'escript']) chmodSync(join(bin, name), 0o755)
  return bin
}

async function createVhost(serverUrl: string): Promise<TestRabbit> {
  const server = new URL(serverUrl)
  const vhost = `sluice-test-${randomBytes(6).toString('hex')}`
  const api = async (method: string, path: string, body?: object) => {
    const { hostname, port, username, password } = server
    const response = await fetch(`http://${hostname}:${Number(port || 5672) + API_PORT_OFFSET}/api${path}`, {
      method,
      headers: {
        authorization: `Basic ${btoa(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`)}`,
        'content-type': 'application/json',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    const text = await response.text()
    return text === '' ? undefined : (JSON.parse(text) as unknown)
  }
  await api('PUT', `/vhosts/${vhost}`, {})
  server.pathname = `/${vhost}`
  return {
    url: server.href,
    vhost,
    api,
    async [Symbol.asyncDispose]() {
      await api('DELETE', `/vhosts/${vhost}`).catch(() => {}) // gone with its broker if that was stopped
    },
  }
}
