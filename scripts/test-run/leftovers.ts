/** Finds what a test run leaves behind: processes, by an environment variable they inherit, and files in its folder. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const VARIABLE = 'SLUICE_TEST_RUN'
/** Where npm and tsc make Node store compiled code, in whatever environment a test starts them. */
const NODE_CACHE = 'node-compile-cache'
/** If the owner of a server was killed, its watchdog ends the server within this time. */
const GRACE_MS = 20_000

export interface Traces extends Disposable {
  /** For everything the run starts. */
  readonly env: NodeJS.ProcessEnv
  /** One line per leftover after a grace period; the processes are killed. */
  findLeftovers(graceMs?: number): Promise<string[]>
}

export function followTraces(): Traces {
  const folder = mkdtempSync(join(tmpdir(), 'slt-')) // short: names of sockets in it have at most 107 bytes
  const mark = `${VARIABLE}=${folder}`
  return {
    env: { [VARIABLE]: folder, TMPDIR: folder },
    async findLeftovers(graceMs = GRACE_MS) {
      const endMs = performance.now() + graceMs
      while (marked(mark).length > 0 && performance.now() < endMs) await delay(50)
      const processes = marked(mark)
      for (const { pid } of processes) kill(pid)
      const files = readdirSync(folder).filter((name) => name !== NODE_CACHE)
      return [
        ...processes.map(({ pid, command }) => `process ${pid}: ${command}`),
        ...files.map((name) => `${folder}/${name}`),
      ]
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function marked(mark: string): { pid: number; command: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      if (!read(`/proc/${name}/environ`).split('\0').includes(mark)) return []
      return { pid: Number(name), command: read(`/proc/${name}/cmdline`).replaceAll('\0', ' ').slice(0, 300) }
    })
}

/** Empty for a process that has ended or belongs to another user. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has ended in the meantime
  }
}
