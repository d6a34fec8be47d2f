/** Starts the real `sluice serve` for tests. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { until } from './fleet.ts'
import { type SluiceResult, startSluice } from './sluice.ts'

export interface Served extends AsyncDisposable {
  readonly url: string
  readonly pid: number
  kill(signal: NodeJS.Signals): void
  readonly result: Promise<SluiceResult>
}

/** On a free port. Disposing of it asks it to stop, which must succeed, unless it was killed before. */
export async function startServe(
  flags: readonly string[],
  options: Parameters<typeof startSluice>[1],
): Promise<Served> {
  const { child, result } = startSluice(['serve', '--port', '0', ...flags], options)
  let printed = ''
  let isEnded = false
  child.stdout!.on('data', (text) => {
    printed += text
  })
  void result.then(() => {
    isEnded = true
  })
  await until('it serves', () => isEnded || /serving (http:\S+)\/v1/.test(printed))
  if (isEnded) throw new Error((await result).stderr)
  return {
    url: /serving (http:\S+)\/v1/.exec(printed)![1]!,
    pid: child.pid!,
    kill: (signal) => void child.kill(signal),
    result,
    async [Symbol.asyncDispose]() {
      if (child.signalCode === null && child.exitCode === null && !child.killed) child.kill('SIGTERM')
      const { code, signal, stderr } = await result
      if (signal !== 'SIGKILL') assert.equal(code, 0, stderr)
    },
  }
}

/** Its child processes. */
export function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return (
          Number(
            readFileSync(`/proc/${pid}/stat`, 'utf8')
              .replace(/\(.*\)/, '()')
              .split(' ')[3],
          ) === parent
        )
      } catch {
        return false // it has just ended
      }
    })
    .map(Number)
}
