/** What workers of the task protocol must survive: kill -9, a Redis that restarts, unreadable messages, tasks that kill. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../fleet.ts'
import { ProtocolRig } from '../protocol/rig.ts'
import { startRedis } from '../services/redis.ts'

test('has another worker do the tasks of a killed one, each once', async () => {
  await using rig = await ProtocolRig.open()
  rig.site.answer = (path) => path !== '/list' // things are never answered
  const tasks = [await rig.put({}), await rig.put({}), await rig.put({})]
  const killed = rig.worker()
  await until('it holds all of them', async () => (await rig.held()) === 3 && rig.site.asked.length >= 6)
  killed.child.kill('SIGKILL')
  await killed.result
  rig.site.answer = () => false
  await rig.instance()
  const results = await rig.resultsWhen(3)
  assert.deepEqual(
    tasks.map(({ task_id }) => [results.get(task_id)?.status, results.get(task_id)?.jobs_found]),
    tasks.map(() => ['success', 3]),
  )
  await until('nothing is held', async () => (await rig.held()) === 0)
})

test('hands back the tasks of a worker that is asked to end, without waiting for a lease', async () => {
  await using rig = await ProtocolRig.open()
  rig.site.answer = () => true
  await rig.put({})
  const first = rig.worker('--lease', '10m', '--drain-timeout', '0')
  await until('it is at work', () => rig.site.asked.length > 0)
  first.child.kill('SIGTERM')
  assert.equal((await first.result).code, 4)
  rig.site.answer = () => false
  await rig.instance({ lease: '10m' })
  const [result] = [...(await rig.resultsWhen(1)).values()]
  assert.equal(result!.status, 'success')
})

test('keeps the workers and all tasks when Redis is killed and comes back', async () => {
  await using server = await startRedis()
  await using rig = await ProtocolRig.open(server)
  rig.site.answer = (path, response) => {
    setTimeout(() => !response.destroyed && response.end('<h1>slow</h1>'), 400)
    return path !== '/list'
  }
  const worker = await rig.instance({ lease: '5s' })
  for (let i = 0; i < 6; i++) await rig.put({})
  await until('some are being done', () => rig.site.asked.length > 3)
  await server.stop('SIGKILL')
  await server.start()
  for (let i = 0; i < 2; i++) await rig.put({})
  const results = await rig.resultsWhen(8)
  assert.ok([...results.values()].every(({ status, jobs_found }) => status === 'success' && jobs_found === 3))
  assert.match(worker.log.join('\n'), /Redis is away/)
})

test('sets aside unreadable messages with the reason, without affecting others', async () => {
  await using rig = await ProtocolRig.open()
  const stream = rig.names.tasks('things')[1]
  const other = { task_id: crypto.randomUUID(), scraper_type: 'things', created_at: new Date().toISOString() }
  const bad: [string, string][] = [
    ['message', '{"task_id": '],
    ['message', JSON.stringify({ ...other, version: 2 })],
    ['message', JSON.stringify({ ...other, task_id: 'x' })],
    ['message', JSON.stringify({ ...other, scraper_type: 'else' })],
    ['message', JSON.stringify({ ...other, params: { args: { text: 'x'.repeat(100_000) } } })],
    ['message', 'null'],
    ['massage', '{}'],
  ]
  for (const [field, text] of bad) await rig.redis.xadd(stream, '*', field, text)
  const good = await rig.put({})
  await rig.instance()
  assert.equal((await rig.resultsWhen(1)).get(good.task_id)?.status, 'success')
  await until('all are put aside', async () => (await rig.errors()).length === bad.length)
  const reasons = (await rig.errors()).map(({ error_message }) => error_message)
  const wanted = [
    /no JSON/,
    /version 2/,
    /task_id/,
    /"else"/,
    /over the limit of 65536/,
    /message/,
    /no field "message"/,
  ]
  for (const [i, pattern] of wanted.entries()) assert.match(reasons[i]!, pattern)
  assert.equal(await rig.held(), 0)
})

test('answers with partial results when a task times out', async () => {
  await using rig = await ProtocolRig.open()
  rig.site.answer = (path) => path === '/thing/2'
  const { task_id } = await rig.put({}, { timeout: 1 })
  await rig.instance()
  const result = (await rig.resultsWhen(1)).get(task_id)!
  assert.deepEqual([result.status, result.items.map(({ id }) => id).sort()], ['timeout', ['1', '3']])
})

test('fails a task that ends three threads, which are replaced, and does other tasks', async () => {
  await using rig = await ProtocolRig.open()
  const deadly = await rig.put({ args: { how: 'deadly', n: 1 } })
  const worker = rig.worker('--lease', '10m')
  const failed = (await rig.resultsWhen(1)).get(deadly.task_id)!
  assert.deepEqual([failed.status, failed.error_code], ['failed', 'E_LEASE_LOST'])
  const fine = await rig.put({})
  assert.equal((await rig.resultsWhen(2)).get(fine.task_id)?.status, 'success')
  worker.child.kill('SIGTERM')
  assert.equal((await worker.result).stderr.match(/ died: /g)?.length, 3)
})

test('replaces a killed process, and the next one gets its task at once', async () => {
  await using rig = await ProtocolRig.open()
  let hasKilled = false
  rig.site.answer = (path, response) => {
    if (path === '/list' || hasKilled) return false
    hasKilled = true
    response.setHeader('content-type', 'text/html').end('<h1>poison</h1>')
    return true
  }
  const { task_id } = await rig.put({ args: { n: 1 } })
  const worker = rig.worker('--lease', '10m', '--as', 'processes')
  assert.equal((await rig.resultsWhen(1)).get(task_id)!.status, 'success')
  worker.child.kill('SIGTERM')
  assert.match((await worker.result).stderr, / died: SIGKILL/)
})
