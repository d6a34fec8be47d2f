/**
 * Runs every test file of the project, on real servers started once for all of them, and fails when there is no file or a
 * server cannot be had. `--fast` changes nothing on the machine and leaves out the files whose server is missing, loudly.
 * Names of test files choose those; other arguments go to Node's test runner.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { resolve } from 'node:path'
import { startShared } from '../test/services/shared.ts'

/** Some times what they take on two cores. A test that hangs keeps its file, and so the whole run, waiting for ever. */
const MINUTES_MAX = 30
const FOLDERS = ['src', 'test', 'scrapers', 'scripts', 'docs', 'bench', 'deploy']

async function main(args: readonly string[]): Promise<number> {
  const isFast = args.includes('--fast')
  if (isFast) process.env['SLUICE_TEST_NO_DOWNLOAD'] = '1'
  const chosen = args.filter(isTestFile)
  const files = chosen.length > 0 ? chosen : FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.test.ts`)).sort()
  if (files.length === 0) throw new Error('no test file found')
  await using services = await startShared(files, { mayMiss: isFast })
  const skipped = new Set(services.missing.flatMap((entry) => entry.files))
  const left = files.filter((file) => !skipped.has(file))
  const nodeArgs = args.filter((arg) => arg !== '--fast' && !isTestFile(arg))
  const code = left.length === 0 ? 0 : await run(nodeArgs, left, services.env)
  for (const { why, files } of services.missing) console.error(`\nNOT TESTED: ${files.join(', ')}\n${why}`)
  return code
}

const isTestFile = (arg: string) => arg.endsWith('.test.ts')

async function run(args: readonly string[], files: readonly string[], serviceEnv: NodeJS.ProcessEnv): Promise<number> {
  const nodeArgs = [
    '--test',
    '--test-timeout=300000',
    '--test-concurrency=3',
    '--disable-warning=ExperimentalWarning',
    ...args,
    ...files,
  ]
  // Every file is a process: without it each reads and strips the types of the same modules again, 0.7 s of it.
  const cache = { NODE_COMPILE_CACHE: resolve('.deps/compile-cache') }
  const env = { ...cache, ...process.env, ...serviceEnv }
  const child = spawn(process.execPath, nodeArgs, { stdio: 'inherit', env })
  const deadline = setTimeout(() => {
    console.error(
      `\nNOT FINISHED within ${MINUTES_MAX} minutes: a test hangs. What ran is above; its file is still there:`,
    )
    console.error(running(child.pid!).join('\n'))
    child.kill() // it reports what it has so far
    setTimeout(() => child.kill('SIGKILL'), 10_000).unref()
  }, MINUTES_MAX * 60_000)
  const [code, signal] = await once(child, 'exit')
  clearTimeout(deadline)
  return signal === null ? code : 1
}

function running(parent: number): string[] {
  const { stdout } = spawnSync('ps', ['--ppid', String(parent), '-o', 'args='], { encoding: 'utf8' })
  return (stdout ?? '').split('\n').flatMap((args) => args.match(/\S+\.test\.ts/) ?? [])
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
