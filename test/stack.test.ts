/**
 * `make stack`: docker-compose.yml as local processes. Its script runs a job to completion and checks it; this runs a small one.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until } from './fleet.ts'
import { isAnswered } from './services/free-port.ts'
// Imported here so that this file is skipped on a machine without these servers.
import type {} from './services/postgres.ts'
import type {} from './services/prometheus.ts'
import type {} from './services/rabbitmq.ts'
import type {} from './services/redis.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

function startStack(env: NodeJS.ProcessEnv = {}) {
  const small = { BOOKS: '300', RPS: '40', TURN_CLOCK: '1', QUEUE: '', KEEP: '', WORKERS: '' }
  const args = ['--disable-warning=ExperimentalWarning', 'scripts/stack.ts']
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, ...small, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    printed += chunk
  })
  const errors = text(child.stderr)
  const ended = once(child, 'close')
  return {
    child,
    printed: () => printed,
    /** Nothing it started is left: no port answers, its folder is gone. */
    async end() {
      const [code] = await ended
      const ports = [...printed.matchAll(/, port (\d+)$/gm)].map(({ 1: port }) => Number(port))
      for (const port of ports) assert.equal(await isAnswered(port), false, `port ${port} still answers`)
      assert.equal(existsSync(join(ROOT, '.deps/run/stack', String(child.pid))), false, 'its folder is still there')
      return { code, stderr: await errors, ports: ports.length }
    },
  }
}

test('the services of the compose file finish a job while workers come and go, and leave nothing behind', async () => {
  const stack = startStack()
  const { code, stderr, ports } = await stack.end()
  assert.equal(code, 0, `${stderr}\n${stack.printed()}`)
  assert.match(stack.printed(), /^items +300, each book once$/m)
  assert.match(stack.printed(), /^workers +2 from page 0 .*, 5 from page \d+ .*, 1 from page \d+/m)
  assert.match(stack.printed(), /^schedule +started run \d{8}_\S+, finished$/m)
  assert.match(stack.printed(), /^prometheus +\d+ targets up, \d+ rules, no alert fires/m)
  const started = [...stack.printed().matchAll(/ s {2}([a-z-]+): (?:ready|left out)/g)].map(({ 1: name }) => name)
  const services = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8').matchAll(/^ {2}([a-z-]+):\n(?: {4}.*\n)+/gm)
  const wanted = [...services].filter(({ 0: body }) => /profiles: \[(?:full|obs)\]|<<: \*worker/.test(body))
  assert.deepEqual([...new Set(started)].sort(), wanted.map(({ 1: name }) => name).sort())
  assert.ok(ports >= wanted.length)
})

test('a signal during the start stops what is already running', async () => {
  const stack = startStack()
  await until('a server runs', () => stack.printed().includes('redis: ready'))
  stack.child.kill('SIGTERM')
  const { code, stderr, ports } = await stack.end()
  assert.equal(code, 143, stderr)
  assert.match(stderr, /SIGTERM: stopping everything/)
  assert.ok(ports > 0)
})
