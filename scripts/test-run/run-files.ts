/** Runs test files, each in its own process, and kills a file that hangs. */
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'

export interface FilesResult {
  isSuccess: boolean
  /** By file. */
  tookMs: ReadonlyMap<string, number>
}

export interface RunFilesOptions {
  env: NodeJS.ProcessEnv
  namePatterns?: readonly string[]
  concurrency?: number
  /** A guard against a hang, not a measure of speed: several times what the longest test takes on a busy machine. */
  testMsMax?: number
  /** The same for a file without any output. Longer, so that the time limit of a test is reported first. */
  silenceMsMax?: number
  output?: NodeJS.WritableStream
}

/** Most files wait for processes and servers half of the time: with 3 of them, two cores were 80 % busy. */
const CONCURRENCY = 4
const TEST_MS_MAX = 600_000
const SILENCE_MS_MAX = 720_000

export async function runFiles(files: readonly string[], options: RunFilesOptions): Promise<FilesResult> {
  const { testMsMax = TEST_MS_MAX, silenceMsMax = SILENCE_MS_MAX, output = process.stdout } = options
  const startedAtMs = new Map<string, number>()
  const tookMs = new Map<string, number>()
  const watched = new Map<string, NodeJS.Timeout>()
  let isSuccess = true
  const hear = (file: string) => {
    clearTimeout(watched.get(file))
    if (tookMs.has(file)) return // late output of a file that has ended
    const onSilence = () => {
      isSuccess = false
      console.error(`\nKILLED: ${file} hangs, no output for ${silenceMsMax / 1000} s`)
      killFile(file)
    }
    watched.set(file, setTimeout(onSilence, silenceMsMax))
  }
  const stream = run({
    files: files.map((file) => resolve(file)),
    concurrency: options.concurrency ?? CONCURRENCY,
    timeout: testMsMax,
    execArgv: ['--disable-warning=ExperimentalWarning'],
    env: options.env,
    ...(options.namePatterns === undefined ? {} : { testNamePatterns: [...options.namePatterns] }),
  })
  stream.on('test:dequeue', (event) => {
    const file = entryOf(event)
    const { name } = event
    if (file === undefined) return
    if (name === file) startedAtMs.set(file, performance.now())
    hear(file)
  })
  stream.on('test:complete', (event) => {
    const file = entryOf(event)
    const { name } = event
    if (file === undefined) return
    if (name !== file) return hear(file)
    tookMs.set(file, performance.now() - startedAtMs.get(file)!)
    hear(file)
  })
  stream.on('test:fail', ({ todo }) => {
    if (todo === undefined || todo === false) isSuccess = false
  })
  for await (const text of stream.compose(spec)) output.write(text)
  for (const timer of watched.values()) clearTimeout(timer)
  return { isSuccess, tookMs }
}

/** The test file that was run. The test itself may be in a suite that the file imports; the type lacks this field. */
function entryOf(event: { file?: string | undefined; entryFile?: string }): string | undefined {
  return event.entryFile ?? event.file
}

/** The runner spawned it, and does not tell us its pid. */
function killFile(file: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
      const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      if (Number(parent) === process.pid && args.includes(file)) process.kill(Number(pid), 'SIGKILL')
    } catch {
      // it has ended in the meantime
    }
  }
}
