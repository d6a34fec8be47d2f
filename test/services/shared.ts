/** What the test files need, found and started once before they run, each in its own process. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { CADDY } from './caddy.ts'
import { CHROMIUM } from './chromium.ts'
import { findProgram, type Service, ServiceMissing } from './find-program.ts'
import { NGINX } from './nginx.ts'
import { PGBOUNCER } from './pgbouncer.ts'
import { POSTGRES, startPostgres } from './postgres.ts'
import { PROMETHEUS } from './prometheus.ts'
import { RABBITMQ, startRabbit } from './rabbitmq.ts'
import { REDIS } from './redis.ts'
import { MICROSOCKS } from './socks.ts'
import { TINYPROXY } from './tinyproxy.ts'
import { TOR } from './tor.ts'

interface Needed {
  service: Service
  /** One server for all files. The others start in milliseconds, one per test; only their program is found here. */
  startForAll?: () => Promise<AsyncDisposable & { url: string }>
}

/** By the module that a test file imports. */
const SERVICES: Readonly<Record<string, Needed>> = {
  'caddy.ts': { service: CADDY },
  'chromium.ts': { service: CHROMIUM },
  'postgres.ts': { service: POSTGRES, startForAll: startPostgres },
  'nginx.ts': { service: NGINX },
  'pgbouncer.ts': { service: PGBOUNCER },
  'prometheus.ts': { service: PROMETHEUS },
  'rabbitmq.ts': { service: RABBITMQ, startForAll: startRabbit },
  'redis.ts': { service: REDIS },
  'socks.ts': { service: MICROSOCKS },
  'tinyproxy.ts': { service: TINYPROXY },
  'tor.ts': { service: TOR },
}

export interface SharedServices extends AsyncDisposable {
  /** Environment of the test processes: where the servers are. */
  readonly env: NodeJS.ProcessEnv
  /** Services that are not available: why, and the files that need them. Empty unless asked to continue without. */
  readonly missing: readonly { why: string; files: readonly string[] }[]
}

/** Throws `ServiceMissing` unless `mayMiss`. Reports on stderr where each service came from. */
export async function startShared(
  files: readonly string[],
  { mayMiss, services = SERVICES }: { mayMiss: boolean; services?: Readonly<Record<string, Needed>> },
): Promise<SharedServices> {
  await using started = new AsyncDisposableStack()
  const env: NodeJS.ProcessEnv = {}
  const missing: { why: string; files: readonly string[] }[] = []
  for (const [module, { service, startForAll }] of Object.entries(services)) {
    const users = files.filter((file) => isImported(module, file))
    if (users.length === 0) continue
    const given = service.urlVariable === undefined ? undefined : process.env[service.urlVariable]
    if (given !== undefined && given !== '') {
      say(service, `${service.urlVariable} names one`)
      continue
    }
    try {
      const startedAtMs = performance.now()
      const { path, from } = await findProgram(service)
      if (startForAll !== undefined) env[service.urlVariable!] = started.use(await startForAll()).url
      say(service, `${path}, ${from} (${Math.round(performance.now() - startedAtMs)} ms)`)
    } catch (error) {
      if (!mayMiss || !(error instanceof ServiceMissing)) throw error
      missing.push({ why: error.message, files: users })
    }
  }
  const held = started.move()
  return { env, missing, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

/** The services a test file needs, by their modules. */
export function servicesOf(file: string): string[] {
  return Object.keys(SERVICES).filter((module) => isImported(module, file))
}

function isImported(module: string, file: string): boolean {
  return [...modulesOf(resolve(file))].some((path) => path.endsWith(`/services/${module}`))
}

const TESTS = dirname(import.meta.dirname)
const known = new Map<string, ReadonlySet<string>>()

/** Every module that a test file imports, directly or through other test modules. */
function modulesOf(path: string): ReadonlySet<string> {
  const before = known.get(path)
  if (before !== undefined) return before
  const modules = new Set<string>()
  known.set(path, modules) // set early, in case of a cycle
  for (const [, specifier] of readFileSync(path, 'utf8').matchAll(/(?:from |import\()'(\.[^']+\.ts)'/g)) {
    const module = join(dirname(path), specifier!)
    modules.add(module)
    if (module.startsWith(TESTS) && existsSync(module)) for (const deeper of modulesOf(module)) modules.add(deeper)
  }
  return modules
}

function say(service: Service, text: string): void {
  console.error(`services: ${service.name}: ${text}`)
}
