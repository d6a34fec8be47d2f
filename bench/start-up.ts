/**
 * How long a command takes to start, in wall time: until `sluice --version` has ended, and until the first request of `sluice
 * run` arrives at the site. Median of 10 after two rounds that fill the compile cache.
 *
 *   node bench/start-up.ts [--command FILE] [--rounds N]     FILE: node_modules/.bin/sluice of an installed package
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const WARM_UP_ROUNDS = 2
const { values } = parseArgs({
  options: {
    command: { type: 'string', default: join(import.meta.dirname, '../bin/sluice') },
    rounds: { type: 'string', default: '10' },
  },
})
const command = resolve(values.command)
const rounds = Number(values.rounds)
const folder = mkdtempSync(join(tmpdir(), 'sluice-start-up-'))

async function run(args: readonly string[]): Promise<number> {
  const startMs = performance.now()
  const child = spawn(command, args, { cwd: folder, stdio: 'ignore' })
  await once(child, 'exit')
  return performance.now() - startMs
}

async function firstRequestMs(): Promise<number> {
  const first = Promise.withResolvers<number>()
  const server = createServer((_request, response) => {
    first.resolve(performance.now())
    response.writeHead(404, { connection: 'close' }).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const startMs = performance.now()
  const site = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const ended = run(['run', 'books', '--site', site, '--pages', '1', '--quiet', '--out', folder])
  const atMs = await Promise.race([first.promise, ended.then(() => Number.NaN)])
  await ended
  server.close()
  return atMs - startMs
}

async function measured(once: () => Promise<number>): Promise<string> {
  const times: number[] = []
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    const ms = await once()
    if (Number.isNaN(ms)) throw new Error('the run ended without a request')
    if (round >= 0) times.push(ms)
  }
  times.sort((a, b) => a - b)
  const shown = [times[Math.floor((times.length - 1) / 2)], times[0], times.at(-1)].map((ms) => Math.round(ms!))
  return `${String(shown[0]).padStart(6)} ms   (${shown[1]}–${shown[2]} ms)`
}

try {
  console.log(`${command}, median of ${rounds} (fastest–slowest)`)
  console.log(`sluice --version                 ${await measured(() => run(['--version']))}`)
  console.log(`sluice run, to its first request ${await measured(firstRequestMs)}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
