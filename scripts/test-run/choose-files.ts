/** Which test files run, and in which order. */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { servicesOf } from '../../test/services/shared.ts'

const FOLDERS = ['src', 'test', 'scrapers', 'scripts', 'docs', 'bench', 'deploy']
const TIMES = '.deps/test-times.json'

export function allFiles(): string[] {
  return FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.test.ts`)).sort()
}

/** Test files beside the code that need nothing but Node: no server, no browser, no second process. */
export function isUnit(file: string): boolean {
  return (
    /^(?:src|scrapers)\//.test(file) && servicesOf(file).length === 0 && !startsProcesses(readFileSync(file, 'utf8'))
  )
}

/** `test/sluice.ts` also exports `temporaryFolder`, which starts nothing. */
function startsProcesses(text: string): boolean {
  return /'node:child_process'|\b(?:sluice|startSluice)\b.*'.*\/test\/sluice\.ts'/.test(text)
}

/** Slowest first, so that no slow file is left for the end. Files without a known time count as slow, except unit tests. */
export function inOrder(files: readonly string[]): string[] {
  const times = readTimes()
  const msOf = (file: string) => times[file] ?? (file.startsWith('src/') || file.startsWith('scrapers/') ? 0 : 60_000)
  return files.toSorted((a, b) => msOf(b) - msOf(a))
}

export function rememberTimes(tookMs: ReadonlyMap<string, number>): void {
  const times = readTimes()
  for (const [file, ms] of tookMs) times[relative('.', file)] = Math.round(ms)
  mkdirSync(dirname(TIMES), { recursive: true })
  writeFileSync(TIMES, `${JSON.stringify(times, undefined, 1)}\n`)
}

function readTimes(): Record<string, number> {
  try {
    return JSON.parse(readFileSync(TIMES, 'utf8'))
  } catch {
    return {} // a new checkout
  }
}
