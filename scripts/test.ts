/**
 * Runs every test file of the project, on real servers started once for all of them, and fails if there is no file or a server is
 * not available. `--unit`: only the files that need no server, no browser and no second process. `--fast` changes nothing on the
 * machine and skips the files whose server is missing, with a clear message. Names of test files select those;
 * `--test-name-pattern=TEXT` and `--test-concurrency=N` work as in Node's test runner.
 */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { startShared } from '../test/services/shared.ts'
import { allFiles, inOrder, isUnit, rememberTimes } from './test-run/choose-files.ts'
import { followTraces } from './test-run/leftovers.ts'
import { type RunFilesOptions, runFiles } from './test-run/run-files.ts'

async function main(): Promise<boolean> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      fast: { type: 'boolean', default: false },
      unit: { type: 'boolean', default: false },
      'test-name-pattern': { type: 'string', multiple: true },
      'test-concurrency': { type: 'string' },
    },
  })
  if (values.fast) process.env['SLUICE_TEST_NO_DOWNLOAD'] = '1'
  const chosen = positionals.length > 0 ? positionals : allFiles()
  const files = values.unit ? chosen.filter(isUnit) : chosen
  if (files.length === 0) throw new Error('no test file found')
  using traces = followTraces()
  const { isSuccess, missing } = await runWithServices(files, traces.env, {
    mayMiss: values.fast,
    ...(values['test-name-pattern'] === undefined ? {} : { namePatterns: values['test-name-pattern'] }),
    ...(values['test-concurrency'] === undefined ? {} : { concurrency: Number(values['test-concurrency']) }),
  })
  for (const { why, files } of missing) console.error(`\nNOT TESTED: ${files.join(', ')}\n${why}`)
  const leftovers = await traces.findLeftovers()
  for (const line of leftovers) console.error(`LEFT BEHIND: ${line}`)
  return isSuccess && leftovers.length === 0
}

async function runWithServices(
  files: readonly string[],
  traceEnv: NodeJS.ProcessEnv,
  { mayMiss, ...options }: { mayMiss: boolean } & Omit<RunFilesOptions, 'env'>,
) {
  await using services = await startShared(files, { mayMiss })
  const skipped = new Set(services.missing.flatMap((entry) => entry.files))
  const left = inOrder(files.filter((file) => !skipped.has(file)))
  if (left.length === 0) return { isSuccess: true, missing: services.missing }
  // Every file is a process: without the cache each reads and strips the types of the same modules again, 0.7 s of it.
  const cache = { NODE_COMPILE_CACHE: resolve('.deps/compile-cache') }
  const env = { ...cache, ...process.env, ...services.env, ...traceEnv }
  const { isSuccess, tookMs } = await runFiles(left, { ...options, env })
  if (options.namePatterns === undefined) rememberTimes(tookMs)
  return { isSuccess, missing: services.missing }
}

try {
  process.exitCode = (await main()) ? 0 : 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
