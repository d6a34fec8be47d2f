/** Starts the demo site in a separate process, on core 0 if the machine can pin it. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface SiteProcess extends AsyncDisposable {
  readonly url: string
  readonly isPinned: boolean
}

/** Whether this machine can pin processes to cores. */
export const canPin = spawnSync('taskset', ['-c', '0', 'true']).status === 0

export async function startSite(options: { products: number; delayMs?: number }): Promise<SiteProcess> {
  const script = fileURLToPath(new URL('../test/site/serve.ts', import.meta.url))
  const args = [script, '--port', '0', '--products', String(options.products), '--delay', String(options.delayMs ?? 0)]
  const node = [process.execPath, ...args, '--exit-with-parent']
  const [command, ...rest] = canPin ? ['taskset', '-c', '0', ...node] : node
  const child = spawn(command!, rest, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const [url] = (await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    exited.then(() => Promise.reject(new Error('the demo site did not start'))),
  ])) as [string]
  return {
    url,
    isPinned: canPin,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await exited
    },
  }
}
