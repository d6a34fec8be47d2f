/**
 * Our own Tor daemon, with its own data folder and ports, which never outlives us.
 *
 *   open ──▶ SOCKS port listens ──▶ bootstrapped (needs the network; `bootstrapped()` waits for it)
 *     └── dispose, exit, crash, kill -9 ──▶ gone: the control connection ends, and Tor exits with it (TAKEOWNERSHIP);
 *         if that fails, Tor checks every 15 s that our process exists (`__OwningControllerProcess`)
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve as resolvePath } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { ScrapeError } from '../../core/errors.ts'
import { openTorControl, type TorControl } from './tor-control.ts'

interface TorOptions {
  /** Each daemon creates its own folder here and removes it at the end. Default: the system's folder for temporary files. */
  dataDir?: string
  /** Default: `tor` on PATH or in /usr/sbin. */
  binary?: string
  env?: NodeJS.ProcessEnv
  /** Additional torrc lines: `ExitNodes {de}`, `Socks5Proxy HOST:PORT` to connect through another proxy. */
  settings?: readonly string[]
  /** How long to wait for the SOCKS port. Default 15 s. */
  startMsMax?: number
}

export interface Tor extends AsyncDisposable {
  /** For `proxy`. All of its users share circuits. */
  readonly socksUrl: string
  readonly pid: number
  /**
   * For `proxy`, with separate circuits: Tor never mixes users (IsolateSOCKSAuth). A new name gets a new circuit at once, which
   * is the quickest way to another exit.
   */
  socksUrlFor(session: string): string
  /**
   * New connections use new circuits (SIGNAL NEWNYM). Open connections keep theirs. Tor does this at most once in 10 s and delays
   * requests that come sooner.
   */
  newCircuit(): Promise<void>
  /** Progress of connecting to the network, 0 to 100, with Tor's description. */
  bootstrapState(): Promise<{ percent: number; summary: string }>
  /** Waits until pages can be fetched. Throws `E_PROXY` after `timeoutMs`. */
  bootstrapped(options: { timeoutMs: number; signal?: AbortSignal }): Promise<void>
}

const START_MS_MAX = 15_000
const STOP_MS_MAX = 5000
const COOKIE_BYTES = 32
const LOOK_AGAIN_MS = 20
const BOOTSTRAP_LOOK_MS = 250

export async function openTor(options: TorOptions = {}): Promise<Tor> {
  const parent = resolvePath(options.dataDir ?? tmpdir())
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, 'tor-')) // mode 0700, as Tor requires
  const daemon = new Daemon(folder, options)
  try {
    const control = await daemon.ready(options.startMsMax ?? START_MS_MAX)
    const [listener] = /127\.0\.0\.1:\d+/.exec(await control.getInfo('net/listeners/socks')) ?? []
    if (listener === undefined) throw torError('does not say where it listens', daemon.log)
    return torOn(listener, daemon, control)
  } catch (error) {
    await daemon[Symbol.asyncDispose]()
    throw error
  }
}

function torOn(listener: string, daemon: Daemon, control: TorControl): Tor {
  const bootstrapState: Tor['bootstrapState'] = async () => {
    const phase = await control.getInfo('status/bootstrap-phase')
    return {
      percent: Number(/PROGRESS=(\d+)/.exec(phase)?.[1] ?? 0),
      summary: /SUMMARY="([^"]*)"/.exec(phase)?.[1] ?? phase,
    }
  }
  return {
    socksUrl: `socks5://${listener}`,
    pid: daemon.pid,
    socksUrlFor: (session) => `socks5://${encodeURIComponent(session)}:session@${listener}`,
    newCircuit: () => control.signal('NEWNYM'),
    bootstrapState,
    async bootstrapped({ timeoutMs, signal }) {
      const givesUpAtMs = performance.now() + timeoutMs
      for (;;) {
        const { percent, summary } = await bootstrapState()
        if (percent === 100) return
        if (performance.now() >= givesUpAtMs) {
          throw torError(`is not in the network after ${timeoutMs} ms: ${percent} %, ${summary}`, daemon.log)
        }
        await delay(BOOTSTRAP_LOOK_MS, undefined, signal === undefined ? {} : { signal })
      }
    },
    [Symbol.asyncDispose]: () => daemon[Symbol.asyncDispose](),
  }
}

/** The process, its folder, and the connection that keeps it alive. */
class Daemon implements AsyncDisposable {
  readonly #folder: string
  readonly #child: ChildProcess
  #end: string | undefined
  #control: TorControl | undefined

  constructor(folder: string, options: TorOptions) {
    this.#folder = folder
    writeFileSync(join(folder, 'torrc'), settingsIn(folder, options.settings ?? []))
    const env = options.env ?? process.env
    // Debian installs it where only root's PATH leads.
    const path = `${env['PATH'] ?? ''}:/usr/sbin:/usr/local/sbin`
    const args = [
      '--defaults-torrc',
      join(folder, 'no-defaults'),
      '-f',
      join(folder, 'torrc'),
      '--ignore-missing-torrc',
    ]
    const log = openSync(join(folder, 'log'), 'a')
    const stdio = ['ignore', log, log] as const
    this.#child = spawn(options.binary ?? 'tor', args, { stdio: [...stdio], cwd: folder, env: { ...env, PATH: path } })
    closeSync(log)
    this.#child.once('error', (error: NodeJS.ErrnoException) => {
      this.#end = error.code === 'ENOENT' ? 'ENOENT' : error.message
    })
    this.#child.once('exit', (code, signal) => {
      this.#end ??= `ended with ${signal ?? code}`
    })
    this.#child.unref()
  }

  get pid(): number {
    return this.#child.pid!
  }

  get log(): string {
    try {
      return readFileSync(join(this.#folder, 'log'), 'utf8')
    } catch {
      return ''
    }
  }

  async ready(startMsMax: number): Promise<TorControl> {
    const givesUpAtMs = performance.now() + startMsMax
    for (;;) {
      if (this.#end === 'ENOENT') throw missing()
      if (this.#end !== undefined) throw torError(`did not start: it ${this.#end}`, this.log)
      if (performance.now() >= givesUpAtMs) throw torError(`is not ready after ${startMsMax} ms`, this.log)
      const port = this.#controlPort()
      const cookie = join(this.#folder, 'control_auth_cookie')
      // Tor may listen before it has written its cookie file.
      if (port !== undefined && existsSync(cookie) && statSync(cookie).size === COOKIE_BYTES) {
        this.#control = await openTorControl(port, cookie)
        return this.#control
      }
      await delay(LOOK_AGAIN_MS)
    }
  }

  /** Tor writes the file once all its ports listen, including the SOCKS port. */
  #controlPort(): number | undefined {
    try {
      const text = readFileSync(join(this.#folder, 'control-port'), 'utf8')
      return Number(/^PORT=127\.0\.0\.1:(\d+)$/m.exec(text)?.[1]) || undefined
    } catch {
      return undefined
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#control?.close()
    if (this.#end === undefined) {
      this.#child.ref()
      const ended = once(this.#child, 'exit')
      this.#child.kill('SIGTERM')
      const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS_MAX)
      await ended
      clearTimeout(timer)
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function settingsIn(folder: string, more: readonly string[]): string {
  const quoted = (name: string) => JSON.stringify(join(folder, name))
  return `DataDirectory ${JSON.stringify(folder)}
SocksPort 127.0.0.1:auto IsolateSOCKSAuth
ControlPort 127.0.0.1:auto
ControlPortWriteToFile ${quoted('control-port')}
CookieAuthentication 1
CookieAuthFile ${quoted('control_auth_cookie')}
__OwningControllerProcess ${process.pid}
ClientOnly 1
AvoidDiskWrites 1
Log notice stdout
${more.map((line) => `${line}\n`).join('')}`
}

function missing(): ScrapeError {
  return new ScrapeError('E_SERVICE', 'the program `tor` is not on this machine', {
    fix: 'Install it (Debian, Ubuntu: apt-get install tor), or name its path.',
  })
}

function torError(what: string, log: string): ScrapeError {
  const notes = log.trimEnd().split('\n').slice(-5).filter(Boolean)
  return new ScrapeError('E_PROXY', `Tor ${what}`, { notes })
}
