/**
 * Known vulnerabilities in our packages, including tools, as reported by the registry. Exit code 0: none · 1: some · 3: the
 * registry does not answer.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ASK_MS_MAX = 60_000

interface Report {
  /** Set if the registry itself rejected the request. */
  message?: string
  vulnerabilities?: Record<string, { name: string; severity: string; range: string; fixAvailable: unknown }>
}

const { stdout } = spawnSync('npm', ['audit', '--json'], {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  encoding: 'utf8',
  timeout: ASK_MS_MAX,
  stdio: ['ignore', 'pipe', 'ignore'],
})
process.exitCode = say(readReport(stdout))

function readReport(text: string | null): Report {
  try {
    return JSON.parse(text ?? '') as Report
  } catch {
    return { message: 'no answer' }
  }
}

function say({ vulnerabilities, message }: Report): number {
  if (vulnerabilities === undefined) {
    process.stdout.write(`the registry at hand does not answer audits: ${message ?? 'no reason given'}\n`)
    return 3
  }
  const found = Object.values(vulnerabilities)
  for (const { name, severity, range, fixAvailable } of found)
    process.stdout.write(`${severity}  ${name} ${range}${fixAvailable === false ? '' : '  (there is a fix)'}\n`)
  if (found.length === 0) process.stdout.write('clean: no known weakness in any package\n')
  return found.length === 0 ? 0 : 1
}
