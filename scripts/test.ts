/** Runs every test file of the project and says so when there is none. */
import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'

const FOLDERS = ['src', 'test', 'scrapers', 'scripts', 'docs', 'bench']
const files = FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.test.ts`)).sort()
if (files.length === 0) {
  console.error('no test file found')
  process.exit(1)
}
const args = [
  '--test',
  '--test-timeout=300000',
  '--disable-warning=ExperimentalWarning',
  ...process.argv.slice(2),
  ...files,
]
const child = spawn(process.execPath, args, { stdio: 'inherit' })
child.on('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 1))
