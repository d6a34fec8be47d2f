/** A shell for one page: its own folder, persistent variables, and background processes until the page ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from '../fleet.ts'
import { temporaryFolder } from '../sluice.ts'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const COMMAND_MS_MAX = 240_000
/** These run until they are stopped. */
const ENDLESS =
  /&\s*$|\bcurl -sN |redis-server --|\bsluice (?:serve|collect(?! --once)|autoscale|watch|logs\b.* -f|worker\b.*--(?:forever|type))\b/

/** These may print nothing. */
const IS_SILENT = /\bsluice (?:logs|watch|autoscale|worker|collect)\b|\bcurl |worker\.py/

/** A server that has just been started may need a moment; an error response is a failure. */
const CURL = 'retry-connrefused\nretry = 20\nretry-delay = 1\nretry-max-time = 20\nfail-with-body\n'

interface Ended {
  code: number | null
  output: string
}

interface Running {
  script: string
  child: ChildProcess
  printed: () => string
}

export class Shell implements AsyncDisposable {
  readonly #folder = temporaryFolder()
  readonly #running: Running[] = []
  readonly #env: NodeJS.ProcessEnv
  cwd = join(this.#folder.path, 'here')

  constructor(env: NodeJS.ProcessEnv) {
    const { path } = this.#folder
    const places = [join(ROOT, 'bin'), dirname(process.execPath), process.env['PATH']]
    this.#env = { ...process.env, PATH: places.join(delimiter), CURL_HOME: path, ...env }
    mkdirSync(this.cwd)
    mkdirSync(join(path, 'node_modules'))
    symlinkSync(ROOT, join(path, 'node_modules/sluice')) // as `npm install` would put it there
    symlinkSync(join(ROOT, 'node_modules/zod'), join(path, 'node_modules/zod'))
    writeFileSync(join(path, '.curlrc'), CURL)
    writeFileSync(join(path, 'package.json'), '{"type":"module"}')
    writeFileSync(this.#state, '')
  }

  get #state() {
    return join(this.#folder.path, 'variables')
  }

  write(path: string, text: string): void {
    const file = join(this.cwd, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }

  read(path: string): string {
    return readFileSync(join(this.cwd, path), 'utf8')
  }

  /**
   * Ends at the first command that fails. The next call continues with its working directory and exported variables. A background
   * process is left running as soon as it has printed enough.
   */
  async run(script: string, hasSaidEnough = (printed: string) => printed !== ''): Promise<Ended> {
    const isEndless = ENDLESS.test(script)
    const text = isEndless ? `exec env ${script.replace(/&\s*$/, '')}` : script
    const keep = isEndless ? '' : `\nexport -p > '${this.#state}'; pwd >&3`
    const child = spawn('bash', ['-e', '-o', 'pipefail', '-c', `. '${this.#state}'\n${text}${keep}`], {
      cwd: this.cwd,
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      detached: true,
    })
    const texts = ['', '', '']
    for (const [i, stream] of [child.stdout, child.stderr, child.stdio[3]!].entries()) {
      ;(stream as NodeJS.ReadableStream).setEncoding('utf8').on('data', (part: string) => {
        texts[i] += part
      })
    }
    const printed = () => texts[0]! + texts[1]!
    const closed = once(child, 'close') as Promise<[number | null]>
    if (isEndless) {
      this.#running.push({ script, child, printed })
      if (!IS_SILENT.test(script))
        await until('it says something, or ends', () => hasSaidEnough(printed()) || child.exitCode !== null)
      if (child.exitCode !== null) await closed
      return { code: child.exitCode ?? 0, output: printed() }
    }
    const deadline = setTimeout(() => stop(child, 'SIGKILL'), COMMAND_MS_MAX)
    const [code] = await closed
    clearTimeout(deadline)
    this.cwd = texts[2]!.trim() || this.cwd
    return { code, output: printed() }
  }

  /** Background processes that ended on their own with an error. */
  died(): string[] {
    const dead = this.#running.filter(({ child }) => hasEnded(child) && child.exitCode !== 0)
    return dead.map(({ script, child, printed }) => `ended early with ${child.exitCode}: ${script}\n${printed()}`)
  }

  async [Symbol.asyncDispose]() {
    const left = this.#running.map(({ child }) => child).filter((child) => !hasEnded(child))
    await Promise.all(left.map(end))
    this.#folder[Symbol.dispose]()
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null

async function end(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close')
  stop(child, 'SIGTERM')
  const hard = setTimeout(() => stop(child, 'SIGKILL'), 5_000)
  await closed
  clearTimeout(hard)
}

/** Including its child processes. */
function stop(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-child.pid!, signal)
  } catch {
    // it has just ended
  }
}
