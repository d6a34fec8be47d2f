/** `sluice serve`: the API, and runs started through it, in one process. */
import type { Command } from 'commander'
import type { ServerRole } from '../app/serve/server/server-role.ts'
import type { Config } from '../config/config.ts'
import { addOptions, configOf, RUN_OPTIONS } from './flags.ts'
import { note, print } from './output.ts'

interface ServeFlags {
  host: string
  port: string
  workers: string
  role: string
  apiRps: string
  keyOnLoopback: boolean
  trustProxy?: string
  keepLogs: string
  keepHistory: string
  keepRuns: string
  quiet?: boolean
}

const HELP = `
Needs no other software: runs go to --out, everything else to .sluice/sluice.db. With --frontier postgres://… runs are queued there
for the --workers of this server, of other servers on the same database, and for every \`sluice worker\`. Requests from
this machine need no key until you create the first one (\`sluice key create\`, SLUICE_API_KEY); any other --host needs a key to start.

Use --role to split the server of a fleet: any number of \`api\`, two \`scheduler\` (one active, one standby), and \`sluice worker\`.

Examples:
  sluice serve
  SLUICE_FRONTIER=postgres://sluice@db/sluice sluice serve --role api --host 0.0.0.0
  SLUICE_FRONTIER=postgres://sluice@db/sluice sluice serve --role scheduler --port 7701
  curl -s localhost:7700/v1/scrapers
  curl -s localhost:7700/v1/runs -H 'content-type: application/json' -d '{"scraper":"books","args":{"pages":2}}'`

/** Options of a single run, which a server does not set. */
const NOT_OURS = new Set(['processes', 'failAt', 'time', 'metrics'])

export function defineServe(program: Command): void {
  const command = program
    .command('serve')
    .description('start the server: API, dashboard, scheduler and workers')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <N>', 'port to listen on; 0 = any free port', '7700')
    .option('--workers <N>', 'with the queue of a fleet: worker processes to start; 0 = none', '2')
    .option(
      '--role <all|api|scheduler>',
      'api: only answer requests; scheduler: only schedules, webhooks, history and retention (and health checks)',
      'all',
    )
    .option('--api-rps <N>', 'maximum requests per second per caller', '1000')
    .option('--no-key-on-loopback', 'accept requests from this machine without a key, even if keys exist')
    .option(
      '--trust-proxy <ADDRESS,…>',
      'proxies to trust X-Forwarded-For and Forwarded from, e.g. 127.0.0.1 or 10.0.0.0/24: the audit log and the limits then use each caller’s address',
    )
    .option('--keep-logs <time>', 'retention of logs, events and deliveries of stored runs, or forever', '30d')
    .option('--keep-history <time>', 'retention of item changes and of the audit log, or forever', '2y')
    .option('--keep-runs <time>', 'retention of stored runs, or forever; run folders are never deleted', '180d')
    .option('--quiet', 'print only errors')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async (flags: ServeFlags) => {
      process.exitCode = await serveHere(flags)
    })
  addOptions(
    command,
    RUN_OPTIONS.filter((name) => !NOT_OURS.has(name)),
  )
}

async function serveHere(flags: ServeFlags): Promise<number> {
  const { assertInstalled } = await import('../core/optional-package.ts')
  assertInstalled('sluice serve needs', ['fastify', 'prom-client'])
  const [{ serve }, { TrustedProxies }, { ScrapeError }, { VERSION }] = await Promise.all([
    import('../app/serve/serve.ts'),
    import('../app/serve/access/trusted-proxies.ts'),
    import('../core/errors.ts'),
    import('../config/user-agent.ts'),
  ])
  const port = Number(flags.port)
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new ScrapeError('E_USAGE', `--port takes a number from 0 to 65535, got ${JSON.stringify(flags.port)}`)
  const { host, port: _, workers: wanted, role, apiRps, quiet, ...more } = flags as ServeFlags & Record<string, unknown>
  const workers = Number(wanted)
  if (!Number.isInteger(workers) || workers < 0 || workers > 256)
    throw new ScrapeError('E_USAGE', `--workers takes a number from 0 to 256, got ${JSON.stringify(wanted)}`)
  const requestsPerSecond = Number(apiRps)
  if (!(requestsPerSecond >= 1 && requestsPerSecond <= 1e6))
    throw new ScrapeError('E_USAGE', `--api-rps takes a number from 1 to 1000000, got ${JSON.stringify(apiRps)}`)
  const { keepLogs, keepHistory, keepRuns, keyOnLoopback, trustProxy, ...runFlags } = more
  const keep = await keepOf({ keepLogs, keepHistory, keepRuns })
  const config = await configOf(runFlags)
  await refuseRole(role, config)
  const say = (level: 'info' | 'warn', message: string) => {
    if (level === 'warn' || quiet !== true) note(message)
  }
  const stopped = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, resolve)
  })
  await using server = await serve({
    config,
    flags: runFlags,
    workers,
    role: role as ServerRole,
    requestsPerSecond,
    isLoopbackFree: !keyOnLoopback,
    proxies: new TrustedProxies(trustProxy),
    keep,
    host,
    port,
    version: VERSION,
    say,
  })
  const isApi = role !== 'scheduler'
  if (quiet !== true)
    print(
      isApi ? `serving ${server.url}/v1 · ${server.url}/openapi.json` : `scheduling; health at ${server.url}/healthz`,
    )
  await stopped
  if (role === 'all') say('info', 'stopping: runs hand back what they hold, and can be resumed')
  return 0
}

async function refuseRole(role: string, { values }: Config): Promise<void> {
  const [{ SERVER_ROLES }, { parseEngineUrl }, { ScrapeError }] = await Promise.all([
    import('../app/serve/server/server-role.ts'),
    import('../core/engine-url.ts'),
    import('../core/errors.ts'),
  ])
  if (!SERVER_ROLES.some((one) => one === role))
    throw new ScrapeError('E_USAGE', `--role takes ${SERVER_ROLES.join(', ')}, got ${JSON.stringify(role)}`)
  if (role === 'all' || parseEngineUrl(values.frontier).isShared) return
  throw new ScrapeError(
    'E_USAGE',
    `--role ${role} is one part of a server; on ${values.frontier} there is no other process for the rest`,
    {
      fix: 'Name a queue that several processes share with --frontier postgres://… (or redis://…, amqp://…), or omit --role.',
    },
  )
}

async function keepOf(flags: Pick<ServeFlags, 'keepLogs' | 'keepHistory' | 'keepRuns'>) {
  const [{ parseKeepMs }, { ScrapeError }] = await Promise.all([
    import('../store/retention.ts'),
    import('../core/errors.ts'),
  ])
  const [logs, history, runs] = [flags.keepLogs, flags.keepHistory, flags.keepRuns].map(parseKeepMs)
  const keep = { logs: logs!, history: history!, runs: runs! }
  const wrong = Object.entries(keep).find(([, ms]) => Number.isNaN(ms))
  if (wrong === undefined) return keep
  throw new ScrapeError('E_USAGE', `--keep-${wrong[0]} takes a time such as 30d or 2y, at least an hour, or forever`)
}
