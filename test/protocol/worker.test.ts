/** Workers of the task protocol as a user starts them: tasks in, results out, commands obeyed. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { workerType } from '../../src/app/protocol/open-instance.ts'
import { resolveConfig } from '../../src/config/config.ts'
import { postingSchema } from '../../src/jobs/read/posting.ts'
import { storeResult } from '../../src/protocol/collect.ts'
import { healthSchema, resultSchema } from '../../src/protocol/messages.ts'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { until } from '../fleet.ts'
import { chromiumForTests } from '../services/chromium.ts'
import { startRedis } from '../services/redis.ts'
import { startGreenhouseMock } from '../site/boards/greenhouse.ts'
import { ProtocolRig } from './rig.ts'

test('does a submitted task, prints, collects and exports it', async () => {
  await using rig = await ProtocolRig.open()
  const worker = rig.worker()
  const base = `base=${rig.site.url}`
  const { code, stdout, stderr } = await rig.run('submit', 'things', '--arg', base, '--wait', '20', '--json')
  assert.equal(code, 0, stderr)
  const result = resultSchema.parse(JSON.parse(stdout))
  const { status, jobs_found, attempt, metadata } = result
  assert.deepEqual(
    [status, jobs_found, attempt, metadata.requests_made, metadata.pages_scraped],
    ['success', 3, 1, 4, 4],
  )
  assert.deepEqual(
    result.items.map(({ id }) => id),
    result.item_keys,
  )
  worker.child.kill('SIGTERM')
  const ended = await worker.result
  assert.equal(ended.code, 4, ended.stderr)
  assert.match(ended.stdout, /1 tasks, 0 failed, 0 retried, 3 items/)
  assert.equal(await rig.held(), 0)
  const collected = await rig.run('collect', '--once', '--json')
  assert.deepEqual(JSON.parse(collected.stdout), { stored: 1, known: 0, refused: 0, items: 3 }, collected.stderr)
  const exported = await rig.run('export', result.task_id, '--frontier', rig.server.url)
  assert.equal(exported.stdout.split('\n').filter(Boolean).length, 3, exported.stderr)
  const listed = await rig.run('ps', '--all', '--json', '--frontier', rig.server.url)
  assert.match(listed.stdout, new RegExp(result.task_id), listed.stderr)
})

test('sends job postings under the names of the wire, and restores them in the store', async () => {
  await using rig = await ProtocolRig.open()
  await using board = await startGreenhouseMock({ jobs: 5 })
  await using store = openSqliteStore(join(rig.folder.path, 'store.db'))
  const params = {
    search_term: 'engineer',
    results_wanted: 4,
    args: { base: undefined, board: 'acme', site: board.url },
  }
  const { task_id } = await rig.put(params, { scraper_type: 'greenhouse' })
  await rig.instance({}, { scraper: 'greenhouse' })
  const result = (await rig.resultsWhen(1)).get(task_id)!
  const { jobs_data, items } = result
  assert.deepEqual([jobs_data.length, items.length], [4, 0])
  const { title, company, posted_date, job_url, external_job_id } = jobs_data[0]!
  assert.deepEqual([title, company, external_job_id], ['Backend Engineer 0', 'Acme & Sons', '4000000'])
  assert.ok(posted_date!.startsWith('2026-11-10') && job_url.endsWith('/4000000'))
  await storeResult(store, result, 'redis://here')
  const rows = await store.readItems(task_id, { afterSeq: 0, max: 100 })
  const stored = rows.map(({ json }) => postingSchema.parse(JSON.parse(json)))
  assert.deepEqual(stored.map(({ job_hash }) => job_hash).sort(), jobs_data.map(({ job_hash }) => job_hash).sort())
})

test('does urgent tasks before ordinary ones', async () => {
  await using rig = await ProtocolRig.open()
  const tasks = [await rig.put({}), await rig.put({}), await rig.put({}, { priority: 5 })]
  await rig.instance({}, { tasksMax: 1 })
  await rig.resultsWhen(3)
  const order = (await rig.results()).map(({ task_id }) => task_id)
  assert.deepEqual(order, [tasks[2]!.task_id, tasks[0]!.task_id, tasks[1]!.task_id])
})

test('retries a failed task later, and its result says which try it was', async () => {
  await using rig = await ProtocolRig.open()
  let refusals = 2
  rig.site.answer = (_, response) => {
    if (refusals-- <= 0) return false
    response.writeHead(503).end()
    return true
  }
  const { task_id } = await rig.put({})
  await rig.instance()
  const result = (await rig.resultsWhen(1)).get(task_id)!
  assert.deepEqual([result.status, result.attempt, result.jobs_found], ['success', 3, 3])
  const told = (await rig.errors()).map((error) => [error.task_id, error.error_code, error.will_retry])
  assert.deepEqual(told, [
    [task_id, 'E_SERVER', true],
    [task_id, 'E_SERVER', true],
  ])
})

test('ends a task with as many results or pages as it asks for, and reports what it cannot do', async () => {
  await using rig = await ProtocolRig.open()
  const few = await rig.put({ results_wanted: 2, args: { n: 50 } })
  const short = await rig.put({ page_limit: 1, args: { n: 50 }, search_term: 'x' })
  const wrong = await rig.put({ args: { nonsense: 1 } })
  await rig.instance()
  const results = await rig.resultsWhen(3)
  assert.deepEqual([results.get(few.task_id)!.status, results.get(few.task_id)!.items.length], ['success', 2])
  const one = results.get(short.task_id)!
  assert.deepEqual([one.jobs_found, one.metadata.pages_scraped, one.metadata.ignored_params], [0, 1, ['search_term']])
  const failed = results.get(wrong.task_id)!
  assert.deepEqual([failed.status, failed.error_code, failed.attempt], ['failed', 'E_OPTION', 1])
})

test('keeps a task that takes longer than a lease with its worker', async () => {
  await using rig = await ProtocolRig.open()
  rig.site.answer = (path, response) => {
    if (path !== '/list') return false
    setTimeout(() => response.end('<a href="/thing/1">1</a>'), 1200)
    return true
  }
  for (let i = 0; i < 2; i++) await rig.instance({ lease: '400ms' })
  const { task_id } = await rig.put({})
  const result = (await rig.resultsWhen(1)).get(task_id)!
  assert.deepEqual([result.status, rig.site.asked], ['success', ['/list', '/thing/1']])
})

test('obeys commands, and reports its health', async () => {
  await using rig = await ProtocolRig.open()
  const workers = [await rig.instance(), await rig.instance()]
  await until('both tell', async () => new Set((await rig.health()).map(({ worker_id }) => worker_id)).size === 2)
  for (const message of await rig.health()) assert.equal(healthSchema.parse(message).scraper_type, 'things')
  await rig.command({ command: 'pause', scraper_type: 'things' })
  await until('both are paused', async () => {
    const last = new Map((await rig.health()).map((message) => [message.worker_id, message.is_paused]))
    return [...last.values()].every(Boolean)
  })
  await rig.put({})
  await rig.command({ command: 'resume' })
  await rig.resultsWhen(1)
  await rig.command({ command: 'drain', worker_id: 'somebody-else' })
  await rig.command({ command: 'drain' })
  assert.deepEqual(await Promise.all(workers.map(({ ended }) => ended)), ['drain', 'drain'])
})

test('refuses an unreadable command once, however many workers read it', async () => {
  await using rig = await ProtocolRig.open()
  const workers = [await rig.instance(), await rig.instance(), await rig.instance()]
  await until('all tell', async () => new Set((await rig.health()).map(({ worker_id }) => worker_id)).size === 3)
  for (const text of ['{"command":"explode","password":"geheim"}', 'pause!'])
    await rig.redis.xadd(rig.names.commands, '*', 'message', text)
  await rig.command({ command: 'drain' }) // received after them
  await Promise.all(workers.map(({ ended }) => ended))
  const told = (await rig.errors()).map(({ stream, error_code, refused }) => [stream, error_code, refused])
  assert.deepEqual(told, [
    [rig.names.commands, 'E_MESSAGE_FOREIGN', '{"command":"explode","password":"***"}'],
    [rig.names.commands, 'E_MESSAGE_FOREIGN', 'pause!'],
  ])
  assert.equal(workers.flatMap(({ log }) => log.filter((line) => /is refused/.test(line))).length, 2)
})

test('keeps a proxy’s login off the error stream, whatever the form of the refused task', async () => {
  await using rig = await ProtocolRig.open()
  await rig.instance()
  const task = { task_id: crypto.randomUUID(), scraper_type: 'lever', created_at: new Date().toISOString() }
  const bad = [
    { params: { proxy: '127.0.0.1:9:bob:geheim' } },
    { ...task, params: { proxy: '127.0.0.1:9:bob:geheim' } },
    { ...task, params: { proxy: { password: 'geheim' } } },
  ]
  for (const message of bad) await rig.redis.xadd(rig.names.tasks('things')[1], '*', 'message', JSON.stringify(message))
  await until('all are refused', async () => (await rig.errors()).length === bad.length)
  assert.doesNotMatch(await rig.said(), /geheim/)
})

for (const as of ['threads', 'processes'])
  test(`ends a worker within its drain time on SIGTERM while Redis is down (${as})`, async () => {
    await using server = await startRedis()
    await using rig = await ProtocolRig.open(server)
    rig.site.answer = () => true // never answered
    await rig.put({})
    const worker = rig.worker('--as', as, '--drain-timeout', '500ms')
    await until('it is at work', () => rig.site.asked.length > 0)
    await server.stop('SIGKILL')
    worker.child.kill('SIGTERM')
    const { code, stderr } = await worker.result
    assert.equal(code, 4, stderr)
    assert.match(stderr, /left to its lease/)
    await server.start()
    rig.site.answer = () => false
    await rig.instance()
    assert.equal([...(await rig.resultsWhen(1)).values()][0]!.status, 'success')
  })

test('ends a worker at once on a second SIGTERM', async () => {
  await using rig = await ProtocolRig.open()
  rig.site.answer = () => true
  await rig.put({})
  const worker = rig.worker('--drain-timeout', '1h')
  await until('it is at work', () => rig.site.asked.length > 0)
  let said = ''
  worker.child.stderr!.on('data', (text) => (said += text))
  worker.child.kill('SIGTERM')
  await until('it drains', () => said.includes('finishing started tasks'))
  worker.child.kill('SIGTERM')
  const { code, stderr } = await worker.result
  assert.equal(code, 143, stderr)
  const place = rig.server.url.replaceAll('.', '\\.')
  assert.match(stderr, new RegExp(`^1 instance \\(threads\\) take tasks of type things from ${place}`, 'm'))
})

test('rejects an unknown type, a disabled scraper, or an unavailable egress at once', async () => {
  await using rig = await ProtocolRig.open()
  const config = await resolveConfig({ cwd: rig.folder.path })
  await assert.rejects(workerType({ scraper: 'nothing', config }), { code: 'E_SCRAPER_NOT_FOUND' })
  await assert.rejects(workerType({ scraper: 'linkedin', config }), { code: 'E_OPT_IN' })
  const { code, stderr } = await rig.run('worker', '--type', 'things', '--tor')
  assert.deepEqual([code, /--tor is for the runs of a fleet/.test(stderr)], [2, true], stderr)
  const both = await rig.run('worker', '--type', 'things', '--scraper', 'things')
  assert.deepEqual([both.code, /--type.*--scraper.*choose one/.test(both.stderr)], [2, true], both.stderr)
})

test('retries a blocked task in a browser, if its route says so', async () => {
  await using rig = await ProtocolRig.open()
  rig.site.answer = (path, response, { headers }) => {
    if (path !== '/list' || headers['sec-fetch-mode'] !== undefined) return false
    response.writeHead(403).end()
    return true
  }
  rig.scraper('shy', (things) => things.replace("{ match: '/list' }", "{ match: '/list', fallback: 'browser' }"))
  await rig.instance({ chrome: await chromiumForTests(), retries: 0 }, { scraper: rig.scraperFile('shy') })
  const { task_id } = await rig.put({}, { scraper_type: 'shy' })
  const { status, attempt, error } = (await rig.resultsWhen(1)).get(task_id)!
  assert.deepEqual([status, attempt], ['success', 2], error ?? '')
})
