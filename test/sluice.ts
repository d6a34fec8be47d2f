/** Runs the real `bin/sluice` for tests. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const BIN = fileURLToPath(new URL('../bin/sluice', import.meta.url))

export interface SluiceResult {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

export interface SluiceProcess {
  child: ChildProcess
  result: Promise<SluiceResult>
}

export function startSluice(
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string; keepsInputOpen?: boolean } = {},
): SluiceProcess {
  const env = { ...process.env, NO_COLOR: '1', NODE_TEST_CONTEXT: undefined, ...options.env }
  const child = spawn(BIN, args, { stdio: 'pipe', env, ...(options.cwd === undefined ? {} : { cwd: options.cwd }) })
  if (options.keepsInputOpen !== true) child.stdin.end(options.input)
  const result = new Promise<SluiceResult>((resolve, reject) => {
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr += text
    })
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
  return { child, result }
}

export async function sluice(
  args: readonly string[],
  options: Parameters<typeof startSluice>[1] = {},
): Promise<SluiceResult> {
  return await startSluice(args, options).result
}

/** A temporary folder, deleted on disposal. */
export function temporaryFolder(): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
