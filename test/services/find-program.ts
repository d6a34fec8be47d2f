/**
 * Where a service's program comes from. The first way that works is used, and reported:
 *
 *   1. the machine                     2. `.deps/services/`, unpacked there before, or now (no root needed)
 *   3. `apt-get install`, as root      4. none: an error that says what to install
 */
import { execFile } from 'node:child_process'
import { accessSync, constants, globSync, mkdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const DEPS = fileURLToPath(new URL('../../.deps/', import.meta.url))
const UNPACK = fileURLToPath(new URL('unpack.sh', import.meta.url))
const DOWNLOAD_MS_MAX = 300_000

const run = promisify(execFile)

export interface Service {
  /** The name for display. */
  name: string
  /** The program, as a path below the root of a machine; `*` for a version, of which the highest is used. */
  program: string
  /** Debian's package name. */
  package: string
  /** The variable with the URL of a running server to use instead. */
  urlVariable?: string
  /** Run as `nobody` if we are root, so a folder that `nobody` cannot access will not do. */
  isRunAsPlainUser?: boolean
}

export interface Program {
  path: string
  /** Environment to run it with: programs outside the system's folders need to be told where their libraries are. */
  env: NodeJS.ProcessEnv
  /** Which way was used. */
  from: string
}

export class ServiceMissing extends Error {
  override readonly name = 'ServiceMissing'
}

const found = new Map<string, Promise<Program>>()

/** Throws `ServiceMissing`. `SLUICE_TEST_NO_DOWNLOAD` disables all ways that change anything. */
export function findProgram(service: Service): Promise<Program> {
  let program = found.get(service.program)
  if (program === undefined) {
    program = search(service)
    found.set(service.program, program)
  }
  return program
}

async function search(service: Service): Promise<Program> {
  const tried: string[] = []
  const onMachine = lookBelow('/', service) ?? lookOnPath(service)
  if (onMachine !== undefined) return { path: onMachine, env: process.env, from: 'on this machine' }
  tried.push(`not on this machine: no /${service.program}, not on PATH`)
  const mayDownload = (process.env['SLUICE_TEST_NO_DOWNLOAD'] ?? '') === ''
  for (const way of [unpacked, installed]) {
    const result = await way(service, mayDownload)
    if (typeof result !== 'string') return result
    tried.push(result)
  }
  throw new ServiceMissing(missingText(service, tried))
}

/** A program below `.deps/services/`; otherwise why there is none. */
async function unpacked(service: Service, mayDownload: boolean): Promise<Program | string> {
  const folder = join(DEPS, 'services', service.package)
  if (service.isRunAsPlainUser === true && process.getuid?.() === 0 && !isOpenToAll(dirname(DEPS))) {
    return `not unpacked into ${folder}: it is run by another user than root, who cannot get there`
  }
  let from = `unpacked before into ${folder}`
  if (lookBelow(folder, service) === undefined) {
    if (!mayDownload) return `not in ${folder}, and nothing is downloaded here (SLUICE_TEST_NO_DOWNLOAD)`
    const failure = await unpack(service.package, folder)
    if (failure !== undefined) return `could not be unpacked into ${folder}: ${failure}`
    from = `not on this machine, so Debian’s ${service.package} was unpacked into ${folder}`
  }
  const path = lookBelow(folder, service)
  if (path === undefined) return `Debian’s ${service.package} has no ${service.program}`
  const libraries = globSync(['lib/*-linux-gnu*', 'usr/lib/*-linux-gnu*', 'usr/lib'], { cwd: folder })
  if (libraries.length === 0) return { path, env: process.env, from }
  const libraryPath = [...libraries.map((name) => join(folder, name)), process.env['LD_LIBRARY_PATH'] ?? '']
  return { path, env: { ...process.env, LD_LIBRARY_PATH: libraryPath.filter(Boolean).join(':') }, from }
}

async function unpack(name: string, folder: string): Promise<string | undefined> {
  const work = join(DEPS, 'apt')
  mkdirSync(work, { recursive: true })
  mkdirSync(dirname(folder), { recursive: true })
  console.error(`services: bringing Debian’s ${name} into ${folder} (once)`)
  try {
    // One at a time: two test files started manually must not unpack over each other. The lock is released with its holder.
    const script = `[ -d "$3" ] || exec "$0" "$@"`
    const args = [join(work, 'lock'), 'sh', '-c', script, UNPACK, work, name, folder]
    await run('flock', args, { timeout: DOWNLOAD_MS_MAX })
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}

async function installed(service: Service, mayDownload: boolean): Promise<Program | string> {
  if (!mayDownload) return 'not installed: nothing is changed here'
  if (process.getuid?.() !== 0) return 'not installed: only root may'
  console.error(`services: installing Debian’s ${service.package} on this machine`)
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    await run('apt-get', ['-qq', 'update'], { timeout: DOWNLOAD_MS_MAX, env })
    const args = ['-qq', '-y', '--no-install-recommends', 'install', service.package]
    await run('apt-get', args, { timeout: DOWNLOAD_MS_MAX, env })
  } catch (error) {
    return `could not be installed: ${reasonOf(error)}`
  }
  const path = lookBelow('/', service)
  if (path === undefined) return `Debian’s ${service.package} has no ${service.program}`
  return { path, env: process.env, from: `installed with apt-get install ${service.package}` }
}

function lookBelow(root: string, { program }: Service): string | undefined {
  const paths = globSync(program, { cwd: root }).map((path) => join(root, path))
  return paths.filter(isProgram).sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1) // biome-ignore format: one chain
}

function lookOnPath({ program }: Service): string | undefined {
  const name = program.slice(program.lastIndexOf('/') + 1)
  const folders = (process.env['PATH'] ?? '').split(':').filter(Boolean)
  return folders.map((folder) => join(folder, name)).find(isProgram)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** Whether every user can access all folders on the path. */
function isOpenToAll(folder: string): boolean {
  if ((statSync(folder).mode & 0o001) === 0) return false
  return folder === dirname(folder) || isOpenToAll(dirname(folder))
}

function reasonOf(error: unknown): string {
  const { stderr, message, code } = error as { stderr?: string; message: string; code?: unknown }
  if (code === 'ENOENT') return `${message} (not a Debian machine?)`
  return (stderr || message).trim().split('\n').slice(-3).join(' | ')
}

function missingText(service: Service, tried: readonly string[]): string {
  const url = service.urlVariable === undefined ? '' : `, or name a running one in ${service.urlVariable}`
  return [
    `${service.name} is missing, and the tests need it.`,
    ...tried.map((line) => `  - ${line}`),
    `Install it (Debian, Ubuntu: apt-get install ${service.package})${url}.`,
  ].join('\n')
}
