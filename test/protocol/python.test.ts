/** A worker in another language takes part: its results are collected, and tasks it leaves behind are taken over. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { errorSchema, resultSchema } from '../../src/protocol/messages.ts'
import { until } from '../fleet.ts'
import { findProgram, type Service } from '../services/find-program.ts'
import { startRedis } from '../services/redis.ts'
import { ProtocolRig } from './rig.ts'

const PYTHON: Service = { name: 'Python 3', program: 'usr/bin/python3', package: 'python3' }
const SCRIPT = fileURLToPath(new URL('worker.py', import.meta.url))

async function startPython(rig: ProtocolRig, ...more: string[]): Promise<ChildProcess & AsyncDisposable> {
  const { path, env } = await findProgram(PYTHON)
  const { port } = new URL(rig.server.url)
  const child = spawn(path, [SCRIPT, '--port', port, ...more], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = once(child, 'close')
  return Object.assign(child, {
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) child.kill('SIGKILL')
      await ended
    },
  })
}

test('collects and prints the answer of a worker in Python', async () => {
  await using rig = await ProtocolRig.open()
  await using _ = await startPython(rig)
  await rig.redis.xadd(rig.names.tasks('echo')[1], '*', 'message', '{"version": 9}')
  const submitted = await rig.run('submit', 'echo', '--param', 'search_term=welder', '--wait', '20', '--json')
  assert.equal(submitted.code, 0, submitted.stderr)
  const result = resultSchema.parse(JSON.parse(submitted.stdout))
  assert.deepEqual(result.items, [{ echo: { search_term: 'welder' } }])
  assert.match(result.metadata.worker_id!, /_python$/)
  const collected = await rig.run('collect', '--once', '--json')
  assert.equal(JSON.parse(collected.stdout).stored, 1, collected.stderr)
  const [refused] = await rig.errors()
  assert.match(errorSchema.parse(refused).error_message, /another version/)
})

test('loses nothing when a worker in Python is killed with a task: another one takes it over', async () => {
  await using rig = await ProtocolRig.open()
  const { task_id } = await rig.put({}, { scraper_type: 'echo' })
  await using stalled = await startPython(rig, '--stall')
  await once(stalled.stdout!, 'data') // it prints that it has claimed
  stalled.kill('SIGKILL')
  await using _ = await startPython(rig, '--lease-ms', '300', '--tasks', '1')
  const results = await rig.resultsWhen(1)
  assert.equal(results.get(task_id)?.status, 'success')
  const pending = async () => ((await rig.redis.xpending(rig.names.tasks('echo')[1], 'workers')) as [number])[0]
  await until('nothing is held', async () => (await pending()) === 0)
})

test('takes over with one of our workers what a worker in Python left behind', async () => {
  await using rig = await ProtocolRig.open()
  const { task_id } = await rig.put({})
  await using stalled = await startPython(rig, '--stall', '--type', 'things')
  await once(stalled.stdout!, 'data')
  stalled.kill('SIGKILL')
  await rig.instance({ lease: '500ms' })
  assert.equal((await rig.resultsWhen(1)).get(task_id)?.status, 'success')
})

test('survives a restart of Redis in a worker in Python, even if Redis forgot everything', async () => {
  await using server = await startRedis()
  await using rig = await ProtocolRig.open(server)
  await using _ = await startPython(rig, '--lease-ms', '300')
  const first = await rig.put({ proxy: 'proxy.test:9:bob:geheim' }, { scraper_type: 'echo' })
  assert.equal((await rig.resultsWhen(1)).get(first.task_id)?.status, 'success')
  assert.doesNotMatch(await rig.said(), /geheim/)
  await server.stop('SIGKILL')
  await server.start()
  const second = await rig.put({}, { scraper_type: 'echo' })
  assert.equal((await rig.resultsWhen(2)).get(second.task_id)?.status, 'success')
  await rig.redis.flushall()
  const third = await rig.put({}, { scraper_type: 'echo' })
  assert.equal((await rig.resultsWhen(1)).get(third.task_id)?.status, 'success')
})
