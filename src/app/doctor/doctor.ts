/** Checks the machine a run would use: what is fine, what may cause trouble, what is missing, and how to fix it. */

import { spawn } from 'node:child_process'
import { lookup } from 'node:dns/promises'
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmdirSync, statfsSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { connect, createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Config, resolveConfig } from '../../config/config.ts'
import { listScrapers, loadScraper } from '../../config/load-scraper.ts'
import { ERRORS } from '../../core/error-table.ts'
import { ScrapeError } from '../../core/errors.ts'
import { assertInstalled } from '../../core/optional-package.ts'
import { findChromium } from '../../fetch/browser/find-chromium.ts'
import { measureResources, type ResourceSnapshot } from '../../fleet/resources.ts'
import { formatBytes } from '../../observe/format.ts'
import { type Finding, fail, ok, type Result, warn } from './finding.ts'
import { serviceChecks } from './services.ts'

interface Examination {
  /** A host name that must resolve. */
  host: string
  flags?: Record<string, unknown>
}

const CHECK_MS_MAX = 5_000

export async function examine({ host, flags = {} }: Examination): Promise<Finding[]> {
  const config = await resolveConfig({ flags }).catch((error: Error & { details?: { notes?: string[] } }) => error)
  const out = config instanceof Error ? 'runs' : config.values.out
  const measured = measureResources({ disk: out })
  measured.catch(() => {}) // reported by the checks that need it
  const checks: [string, () => Result | Promise<Result>][] = [
    ['node', nodeVersion],
    ['packages', packages],
    ['sqlite', sqlite],
    ['config', () => configuration(config)],
    ['contact', () => contact(config)],
    ['scrapers', scrapers],
    ['output', () => outputFolder(out)],
    ['disk', () => diskSpace(out)],
    ['cpu', async () => cpu(await measured)],
    ['memory', async () => memory(await measured)],
    ['browser', () => browser(config)],
    ['open files', openFiles],
    ['clock', clock],
    ['loopback', loopback],
    ['dns', () => dns(host)],
    ...(config instanceof Error ? [] : serviceChecks(config)),
  ]
  return await Promise.all(
    checks.map(async ([check, look]) => {
      try {
        return { check, ...(await look()) }
      } catch (error) {
        return { check, ...fail((error as Error).message, 'This check itself failed; run with what it says in mind.') }
      }
    }),
  )
}

const NODE_MAJOR_MIN = 24

function nodeVersion(): Result {
  const { node } = process.versions
  if (Number.parseInt(node, 10) >= NODE_MAJOR_MIN) return ok(`Node ${node}`)
  return fail(
    `Node ${node}`,
    `Node ${NODE_MAJOR_MIN} or later is needed: install it, or run make setup in a copy of the repository.`,
  )
}

const require = createRequire(import.meta.url)

function packages(): Result {
  const { dependencies } = require('../../../package.json') as { dependencies: Record<string, string> }
  const wrong: string[] = []
  for (const [name, wanted] of Object.entries(dependencies)) {
    const file = manifestOf(name)
    const found =
      file === undefined ? 'missing' : (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
    if (found !== wanted) wrong.push(`${name} is ${found}, wanted ${wanted}`)
  }
  if (wrong.length > 0)
    return fail(wrong.join('; '), 'Run npm ci (in a copy of the repository: make setup) in the project’s folder.')
  return ok(`${Object.keys(dependencies).length} packages at their locked versions`)
}

/** The dependencies of an installed package may be hoisted, so every `node_modules` above it is searched. */
function manifestOf(name: string): string | undefined {
  const folders = require.resolve.paths(name) ?? []
  return folders.map((folder) => join(folder, name, 'package.json')).find((file) => existsSync(file))
}

function sqlite(): Result {
  using db = new DatabaseSync(':memory:')
  const { version } = db.prepare('select sqlite_version() as version').get() as { version: string }
  return ok(`SQLite ${version} for queues and locks`)
}

function configuration(config: Config | (Error & { details?: { notes?: readonly string[] } })): Result {
  if (config instanceof Error)
    return fail(
      [config.message, ...(config.details?.notes ?? [])].join('; '),
      'Mend it; sluice config --explain has the bounds.',
    )
  const set = Object.entries(config.origins).filter(([, origin]) => !/default$/.test(origin))
  return ok(set.length === 0 ? 'defaults only' : `${set.map(([name, origin]) => `${name} from ${origin}`).join(', ')}`)
}

function contact(config: Config | Error): Result {
  const { contact, userAgent } = config instanceof Error ? {} : config.values
  if (contact !== undefined) return ok(`site owners reach you at ${contact}`)
  if (userAgent !== undefined) return ok(`user agent ${JSON.stringify(userAgent)}`)
  return warn(
    'no contact in the user agent',
    'Set SLUICE_CONTACT or --contact to an e-mail or URL: owners then write before they block.',
  )
}

async function scrapers(): Promise<Result> {
  const found = listScrapers()
  const broken: string[] = []
  for (const { name, file } of found)
    await loadScraper(file).catch((error: Error) => broken.push(`${name}: ${error.message}`))
  if (broken.length > 0) return fail(broken.join('; '), 'Mend the file; sluice run FILE --dry-run shows where.')
  return found.length > 0
    ? ok(found.map(({ name }) => name).join(', '))
    : warn('none found', 'Make one: sluice new NAME URL.')
}

function outputFolder(out: string): Result {
  const existing = nearestFolder(out)
  try {
    accessSync(existing, constants.W_OK | constants.X_OK)
    rmdirSync(mkdtempSync(join(existing, '.sluice-doctor-'))) // root and read-only mounts pass the access check
    return ok(`${resolve(out)} can be written`)
  } catch (error) {
    return fail(
      `${existing} cannot be written: ${(error as Error).message}`,
      'Give this user the right, or choose another folder with --out.',
    )
  }
}

function nearestFolder(path: string): string {
  let folder = resolve(path)
  while (!existsSync(folder) || !statSync(folder).isDirectory()) folder = dirname(folder)
  return folder
}

const DISK_BYTES_MIN = 100e6
const DISK_BYTES_LOW = 1e9

function diskSpace(out: string): Result {
  const folder = nearestFolder(out)
  const { bavail, bsize } = statfsSync(folder)
  const what = `${formatBytes(bavail * bsize)} free at ${folder}`
  if (bavail * bsize < DISK_BYTES_MIN) return fail(what, 'Make room, or choose another disk with --out.')
  return bavail * bsize < DISK_BYTES_LOW
    ? warn(what, 'A million items take about 2 GB: make room before a large run.')
    : ok(what)
}

const MEMORY_BYTES_LOW = 512e6
const CPU_BUSY = 0.8

/** A container may have less memory than the machine. */
function memory({ memory: { freeBytes, limitBytes, of } }: ResourceSnapshot): Result {
  const what = `${formatBytes(freeBytes)} free of ${formatBytes(limitBytes)}${of === 'group' ? ' (limit of this container)' : ''}`
  return freeBytes < MEMORY_BYTES_LOW
    ? warn(
        what,
        'Keep --processes at 1 and --concurrency low: a worker takes about 150 MB, a browser page about 80 MB.',
      )
    : ok(what)
}

function cpu({ cpu: { usage, limitCores } }: ResourceSnapshot): Result {
  const what = `${Math.round(usage * 100)} % of ${Number(limitCores.toFixed(2))} cores in use`
  return usage > CPU_BUSY
    ? warn(what, 'Above 80 % no browser page and no file worker is added; stop what else runs here.')
    : ok(what)
}

const BROWSER = /\b(?:chrom\w*|headless\w*|edge|brave|vivaldi|opera)\b.*?\d+\.\d+/i

async function browser(config: Config | Error): Promise<Result> {
  try {
    const { path, isShell } = findChromium(config instanceof Error ? undefined : config.values.chrome)
    assertInstalled('a browser needs', 'puppeteer-core')
    const version = await versionOf(path)
    if (!BROWSER.test(version))
      return warn(
        `${path} does not look like a Chromium: --version says ${version === '' ? 'nothing' : JSON.stringify(version)}`,
        ERRORS.E_BROWSER_MISSING.fix,
      )
    const what = `${version} at ${path}${isShell ? '' : ' (chromium-headless-shell needs half the memory)'}`
    return process.getuid?.() === 0
      ? warn(
          `${what}; its sandbox is off, because we are root`,
          'Run as another user: a page that breaks out of its process is root here.',
        )
      : ok(what)
  } catch (error) {
    return warn((error as Error).message, error instanceof ScrapeError ? error.fix : ERRORS.E_BROWSER_MISSING.fix)
  }
}

const VERSION_CHARS_MAX = 200

/** The first line of `FILE --version`. Debian's browser is a wrapper script, so its child processes must end with it. */
async function versionOf(path: string): Promise<string> {
  const { PATH, HOME, LD_LIBRARY_PATH } = process.env
  const child = spawn(path, ['--version'], {
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { PATH, HOME, LD_LIBRARY_PATH },
    detached: true,
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(0, VERSION_CHARS_MAX)
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  child.once('error', (error) => reject(new Error(`${path} does not start: ${error.message}`)))
  child.once('close', () => resolve())
  const timer = setTimeout(
    () => reject(new Error(`${path} --version gives no answer within ${CHECK_MS_MAX / 1000} s`)),
    CHECK_MS_MAX,
  )
  try {
    await promise
    return text.split('\n', 1)[0]!.trim()
  } finally {
    clearTimeout(timer)
    endGroup(child.pid)
    child.stdout.destroy()
  }
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // the process group is already empty
  }
}

const FILES_LOW = 1024

function openFiles(): Result {
  const limits = existsSync('/proc/self/limits') ? readFileSync('/proc/self/limits', 'utf8') : ''
  const [, soft, hard] = /^Max open files\s+(\d+|unlimited)\s+(\d+|unlimited)/m.exec(limits) ?? []
  if (soft === undefined) return ok('this system does not tell its limit')
  const what = `${soft} allowed${hard === soft ? '' : `, at most ${hard}`}`
  return soft !== 'unlimited' && Number(soft) < FILES_LOW
    ? warn(what, 'Raise it with ulimit -n 4096, or keep --concurrency below a third of it.')
    : ok(what)
}

function clock(): Result {
  const now = new Date()
  const builtMs = statSync(require.resolve('../../../package.json')).mtimeMs
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  if (now.getTime() < builtMs - 86_400_000)
    return fail(
      `${now.toISOString()} is before this program was installed`,
      'Set the clock: certificates and caches depend on it.',
    )
  return ok(`${now.toISOString()} (${zone})`)
}

async function loopback(): Promise<Result> {
  const server = createServer((socket) => socket.end())
  try {
    const port = await new Promise<number>((done, failed) => {
      server.once('error', failed).listen(0, '127.0.0.1', () => done((server.address() as { port: number }).port))
    })
    await reach('127.0.0.1', port)
    return ok(`127.0.0.1:${port} answers`)
  } catch (error) {
    return fail(
      `no port on 127.0.0.1: ${(error as Error).message}`,
      'A firewall or sandbox is in the way; --metrics and the demo need a local port.',
    )
  } finally {
    server.close()
  }
}

async function dns(host: string): Promise<Result> {
  const tooLate = new Promise<never>((_, failed) =>
    setTimeout(() => failed(new Error('no answer')), CHECK_MS_MAX).unref(),
  )
  try {
    const { address } = await Promise.race([lookup(host), tooLate])
    return ok(`${host} is ${address}`)
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? (error as Error).message
    return warn(
      `${host} does not resolve (${why})`,
      'Without a resolver only addresses and local sites work: check the network and /etc/resolv.conf.',
    )
  }
}

async function reach(host: string, port: number): Promise<void> {
  await new Promise<void>((done, failed) => {
    const socket = connect({ host, port })
    socket.setTimeout(CHECK_MS_MAX, () => socket.destroy(new Error('no answer')))
    socket.once('connect', () => {
      socket.destroy()
      done()
    })
    socket.once('error', failed)
  })
}
