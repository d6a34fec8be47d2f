/**
 * A real server that belongs to this process: it works in its own folder, and both are gone when their owner is, however it dies.
 *
 *   owner ──spawn──▶ server
 *     └─pipe──▶ watchdog: the pipe closes (exit, crash, kill -9) ──▶ kills the server, removes the folder
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * Reads the pids of the server, one per line, and acts when its input ends: first the stop signal, after 5 s SIGKILL. A zombie
 * (its parent is gone, too) counts as gone. A shell takes 1 MB, a Node 45.
 */
const WATCHDOG = `
folder=$1 signal=$2
runs() { kill -s 0 "$server" 2>/dev/null && ! grep -q "^State:.Z" "/proc/$server/status" 2>/dev/null; }
while read -r pid; do server=$pid; done
if [ -n "$server" ]; then
  kill -s "$signal" "$server" 2>/dev/null
  looks=0
  while runs && [ "$looks" -lt 200 ]; do
    looks=$((looks + 1))
    [ "$looks" -ne 100 ] || kill -s KILL "$server"
    sleep 0.05
  done
fi
rm -rf "$folder" || { sleep 1; rm -rf "$folder"; }
`

/** Accessible to everyone, including the user that a server switches to; a folder under /root is not. */
const RUN_FOLDER = '/var/tmp'
/** Guards against a hang. An exit is noticed at once; a broker on a busy machine takes a minute. */
const START_MS_MAX = 300_000
const STOP_MS_MAX = 60_000
const LOOK_AGAIN_MS = 15

/** Debian's `nobody`, for servers that refuse to run as root. */
const NOBODY = 65_534

/** The user of such a server: `nobody` if we are root, otherwise our own. */
export const plainUser: { uid?: number; gid?: number } = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}

export interface ServerCommand {
  file: string
  args: readonly string[]
  env?: NodeJS.ProcessEnv
  /** Polled every few milliseconds; the start is over when it is true. It must recognise *this* server: ports are guessed. */
  isReady: () => Promise<boolean> | boolean
}

export class OwnedServer implements AsyncDisposable {
  readonly name: string
  /** Data, configuration and `log` of the server. */
  readonly folder: string
  readonly #user: { uid?: number; gid?: number }
  readonly #stopSignal: NodeJS.Signals
  readonly #watchdog: ChildProcess
  #child: ChildProcess | undefined

  /** `stopSignal` ends the server at once, including its children. */
  constructor(name: string, options: { asPlainUser?: boolean; stopSignal?: NodeJS.Signals } = {}) {
    this.name = name
    this.#stopSignal = options.stopSignal ?? 'SIGKILL'
    this.#user = options.asPlainUser === true ? plainUser : {}
    this.folder = mkdtempSync(join(RUN_FOLDER, `sluice-${name}-`))
    if (this.#user.uid !== undefined) chownSync(this.folder, this.#user.uid, this.#user.gid!)
    // A separate session: Ctrl-C in the terminal is for the tests, and the watchdog has to outlive them.
    const args = ['-c', WATCHDOG, 'watchdog', this.folder, this.#stopSignal.replace(/^SIG/, '')]
    this.#watchdog = spawn('sh', args, { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
    this.#watchdog.on('error', () => {})
    this.#watchdog.stdin!.on('error', () => {})
    this.#watchdog.unref()
    ;(this.#watchdog.stdin as Socket).unref()
  }

  /** Undefined while it is not running. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  get log(): string {
    try {
      return readFileSync(join(this.folder, 'log'), 'utf8')
    } catch {
      return ''
    }
  }

  /** Runs a program to completion, as the server's user. */
  async run(file: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<void> {
    const child = this.#spawn(file, args, env)
    const [code, signal] = await once(child, 'exit')
    if (code !== 0) throw this.#failure(`${file} ended with ${signal ?? code}`)
  }

  async start(command: ServerCommand): Promise<void> {
    if (this.#child !== undefined) throw new Error(`${this.name} runs already`)
    const child = this.#spawn(command.file, command.args, command.env ?? process.env)
    let end: string | undefined
    child.once('exit', (code, signal) => {
      end = `it ended with ${signal ?? code}`
      if (this.#child === child) this.#child = undefined
    })
    child.once('error', (error) => {
      end = error.message
    })
    child.unref()
    this.#child = child
    this.#watchdog.stdin!.write(`${child.pid ?? ''}\n`)
    const givesUpAtMs = performance.now() + START_MS_MAX
    while (!(await command.isReady())) {
      if (end === undefined && performance.now() > givesUpAtMs) end = `not ready within ${START_MS_MAX} ms`
      if (end !== undefined) {
        await this.stop('SIGKILL')
        throw this.#failure(end)
      }
      await delay(LOOK_AGAIN_MS)
    }
  }

  /** When this returns, the server has ended; SIGKILL follows if the signal is not enough. The folder stays. */
  async stop(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    this.#child = undefined
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
      child.ref()
      const ended = once(child, 'exit')
      child.kill(signal)
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX)
      await ended
      clearTimeout(timer)
    }
    this.#watchdog.stdin!.write('\n') // its pid may soon belong to another process
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop(this.#stopSignal)
    if (this.#watchdog.exitCode === null && this.#watchdog.signalCode === null) {
      this.#watchdog.ref()
      this.#watchdog.stdin!.end()
      await once(this.#watchdog, 'exit')
    }
    rmSync(this.folder, { recursive: true, force: true })
  }

  #spawn(file: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
    const log = openSync(join(this.folder, 'log'), 'a')
    try {
      return spawn(file, args, { stdio: ['ignore', log, log], env, cwd: '/', detached: true, ...this.#user })
    } finally {
      closeSync(log)
    }
  }

  #failure(why: string): Error {
    const tail = this.log.trimEnd().split('\n').slice(-15).join('\n')
    return new Error(`${this.name} did not start: ${why}\n${tail}`)
  }
}
