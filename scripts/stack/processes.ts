/** Our own processes of the stack: `sluice serve` and `sluice worker` as docker-compose.yml starts them. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { PORTS, ROOT } from '../../deploy/checks.ts'
import { freePort } from '../../test/services/free-port.ts'
import { OwnedServer } from '../../test/services/owned-server.ts'
import { type Place, WORK_FOLDER } from './compose.ts'
import type { Server } from './servers.ts'

export interface Running extends Server {
  readonly name: string
  readonly readyMs: number
}

/** Healthy when this returns: a server is ready, a worker is alive. */
export async function startOurs(
  name: string,
  { env, command, root }: Place,
  more: NodeJS.ProcessEnv,
): Promise<Running> {
  const startedAtMs = performance.now()
  const server = new OwnedServer(name, { stopSignal: 'SIGTERM' })
  try {
    const port = await freePort()
    const isServer = command[0] === 'serve'
    const url = `http://127.0.0.1:${port}/${isServer ? 'readyz' : 'healthz'}`
    await server.start({
      file: 'sh',
      args: [
        '-c',
        'cd "$0" && exec "$@"',
        join(root, WORK_FOLDER),
        join(ROOT, 'bin/sluice'),
        ...onLoopback(command, port),
      ],
      env: { PATH: process.env['PATH'], HOME: root, NO_COLOR: '1', ...environmentOn(env, port), ...more },
      isReady: async () => await isOk(url),
    })
    await checkHealth(port)
    let lastLog: string | undefined
    return {
      name,
      port,
      readyMs: performance.now() - startedAtMs,
      get pid() {
        return server.pid
      },
      get log() {
        return lastLog ?? server.log
      },
      async [Symbol.asyncDispose]() {
        await server.stop('SIGTERM')
        lastLog ??= server.log
        await server[Symbol.asyncDispose]()
      },
    }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

/** Also runs the HEALTHCHECK of the image. */
async function checkHealth(port: number): Promise<void> {
  const env = { HEALTH_PORT: String(port) }
  await promisify(execFile)(process.execPath, [join(ROOT, 'deploy/docker/health.mjs')], { env })
}

/** Replaces the address of a container by a free local port. */
function onLoopback(command: readonly string[], port: number): string[] {
  const words = command.map((word) => (word === '0.0.0.0' ? '127.0.0.1' : word))
  return words[0] === 'serve' ? [...words, '--port', String(port)] : words
}

function environmentOn(env: Record<string, string>, port: number): Record<string, string> {
  const local = (value: string) => value.replace(`0.0.0.0:${PORTS.worker}`, `127.0.0.1:${port}`)
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, local(value)]))
}

async function isOk(url: string): Promise<boolean> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)
  await answer?.body?.cancel()
  return answer?.ok === true
}
