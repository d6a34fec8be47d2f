/** The file loop on real frontiers, with real processes and a real server. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ScrapeError } from '../../src/core/errors.ts'
import { taskId } from '../../src/core/url.ts'
import { pinnedLane } from '../../src/files/orders.ts'
import { temporaryFolder } from '../sluice.ts'
import { content, serveFile, startFileServer } from './file-server.ts'
import { fileTask, startLoop } from './loop-rig.ts'
import { filesIn } from './rig.ts'

for (const frontier of ['memory:', 'sqlite:'])
  describe(`the loop of files on ${frontier}`, () => {
    const place = (folder: string) => (frontier === 'memory:' ? frontier : `sqlite:${folder}/frontier.db`)

    test('stores a file, then records it', async () => {
      using folder = temporaryFolder()
      const file = content(50_000)
      await using server = await startFileServer({ '/a.bin': serveFile(file) })
      await using rig = await startLoop({ folder: folder.path, frontier: place(folder.path) })
      const url = `${server.url}/a.bin`
      await rig.frontier.add([fileTask(url, { type: 'download', meta: { page: 7 } }, { session: 'anna' })])
      await rig.finished()
      const [record, ...more] = await rig.records.list('run-1')
      assert.deepEqual(more, [])
      assert.equal(record!.sha256, createHash('sha256').update(file).digest('hex'))
      assert.deepEqual(
        [record!.taskId, record!.url, record!.user, record!.meta],
        [taskId({ url }), url, 'anna', { page: 7 }],
      )
      assert.ok(readFileSync(fileURLToPath(record!.where)).equals(file))
      assert.match(record!.where, /\/shop\/run-1\/anna\//)
      assert.deepEqual(
        rig.events.map(({ order, outcome }) => `${order} ${outcome}`),
        ['download stored', 'db_update recorded'],
      )
      const { completed, failed } = await rig.frontier.stats()
      assert.deepEqual({ completed, failed }, { completed: 2, failed: 0 })
      assert.deepEqual(await rig.stop(), { how: 'stopped' })
    })

    test('stores a hundred files from several tasks, and equal bytes once', async () => {
      using folder = temporaryFolder()
      await using server = await startFileServer({ '*': (request, response) => void response.end(`same ${Number(request.url!.slice(1)) % 10}`) }) // biome-ignore format: one line reads better
      await using rig = await startLoop({ folder: folder.path, frontier: place(folder.path), workers: 2 })
      await rig.frontier.add(Array.from({ length: 100 }, (_, i) => fileTask(`${server.url}/${i}`)))
      await rig.finished()
      const records = await rig.records.list('run-1')
      assert.equal(records.length, 100)
      assert.equal(records.filter(({ isSame }) => !isSame).length, 10)
      assert.equal(filesIn(join(folder.path, 'store')).length, 10)
    })
  })

test('removes a kept file once its task is settled', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'kept')
  writeFileSync(path, 'hello')
  const lane = pinnedLane('here')
  await using rig = await startLoop({ folder: folder.path, parts: { pinnedLanes: () => [lane] } })
  const url = 'http://shop.example/cart'
  const order = { type: 'upload' as const, path, name: 'cart.txt' }
  await rig.frontier.add([fileTask(url, order, { lane, key: 'cart' })])
  await rig.finished()
  const [record] = await rig.records.list('run-1')
  assert.equal(readFileSync(fileURLToPath(record!.where), 'utf8'), 'hello')
  assert.equal(existsSync(path), false)
})

test('retries, postpones or buries failures according to their verdict', async () => {
  using folder = temporaryFolder()
  let fails = 0
  await using server = await startFileServer({
    '/flaky': (_request, response) => void (fails++ < 2 ? response.writeHead(500).end() : response.end('ok')),
    '/huge': (_request, response) => void response.writeHead(200, { 'content-length': 1e12 }).write('x'),
    '/broken': (_request, response) => void response.writeHead(500).end(),
  })
  await using rig = await startLoop({ folder: folder.path, retries: 2 })
  await rig.frontier.add(['/flaky', '/gone', '/huge', '/broken'].map((path) => fileTask(server.url + path)))
  await rig.frontier.add([fileTask(`${server.url}/x`, { type: 'nonsense' } as never)])
  await rig.finished()
  assert.equal((await rig.records.list('run-1')).length, 1)
  const dead = await rig.frontier.dead.list()
  assert.deepEqual(dead.map(({ error }) => error.code).sort(), [
    'E_FILE_TOO_LARGE',
    'E_NOT_FOUND',
    'E_ROUTE_DATA',
    'E_SERVER',
  ])
  assert.equal(dead.find(({ error }) => error.code === 'E_SERVER')!.attempts, 3)
  assert.deepEqual(filesIn(join(folder.path, 'store')).length, 1)
})

test('does not request what robots.txt forbids, even behind a redirect', async () => {
  using folder = temporaryFolder()
  await using server = await startFileServer()
  server.paths.set('/a', (_request, response) => void response.writeHead(302, { location: '/secret' }).end())
  const mayFetch = async (url: string) => {
    if (url.endsWith('/secret')) throw new ScrapeError('E_ROBOTS', 'robots.txt forbids it')
  }
  await using rig = await startLoop({ folder: folder.path, parts: { mayFetch } })
  await rig.frontier.add(['/secret', '/a'].map((path) => fileTask(server.url + path)))
  await rig.finished()
  const { failed, completed, counts } = await rig.frontier.stats()
  assert.deepEqual([failed, completed, counts['notFetched.robots']], [0, 2, 2])
  assert.deepEqual(
    server.asked.map(({ path }) => path),
    ['/a'],
  )
})

test('sends no host more concurrent requests than allowed', async () => {
  using folder = temporaryFolder()
  let inFlight = 0
  let most = 0
  await using server = await startFileServer({
    '*': (_request, response) => {
      most = Math.max(most, ++inFlight)
      setTimeout(() => {
        inFlight--
        response.end('x')
      }, 5)
    },
  })
  await using rig = await startLoop({ folder: folder.path, perHost: 2, workers: 2 })
  await rig.frontier.add(Array.from({ length: 40 }, (_, i) => fileTask(`${server.url}/${i}`)))
  await rig.finished()
  assert.equal((await rig.records.list('run-1')).length, 40)
  assert.ok(most <= 2, `${most} at once`)
})

test('lets records wait for a database that is down, without another download', async () => {
  using folder = temporaryFolder()
  await using server = await startFileServer({ '*': (request, response) => void response.end(request.url) })
  let isAway = true
  let refused = 0
  await using rig = await startLoop({ folder: folder.path })
  const put = rig.records.put
  rig.records.put = async (records) => {
    if (!isAway) return await put(records)
    refused++
    throw new Error('connection refused')
  }
  await rig.frontier.add([1, 2, 3].map((i) => fileTask(`${server.url}/${i}`)))
  await rig.event(({ order, outcome }) => order === 'db_update' && outcome === 'postponed')
  isAway = false
  await rig.finished()
  assert.ok(refused > 0)
  assert.equal((await rig.records.list('run-1')).length, 3)
  assert.equal(server.asked.length, 3)
  assert.equal((await rig.frontier.stats()).failed, 0)
})

test('writes the other records if one cannot be written', async () => {
  using folder = temporaryFolder()
  await using server = await startFileServer({ '*': (request, response) => void response.end(request.url) })
  const parts = { patience: { waitMsMin: 1, waitMsMax: 1, awayMsMax: -1 } }
  await using rig = await startLoop({ folder: folder.path, parts, retries: 1 })
  const put = rig.records.put
  rig.records.put = async (records) => {
    if (records.some(({ url }) => url.endsWith('/13'))) throw new Error('invalid byte sequence')
    await put(records)
  }
  await rig.frontier.add(Array.from({ length: 20 }, (_, i) => fileTask(`${server.url}/${i}`)))
  await rig.finished()
  assert.equal((await rig.records.list('run-1')).length, 19)
  assert.deepEqual(
    (await rig.frontier.dead.list()).map(({ error }) => error.code),
    ['E_FILE_RECORD'],
  )
})

test('costs no tries when a process dies with several files', async () => {
  using folder = temporaryFolder()
  const waiting: (() => void)[] = []
  const arrived = Promise.withResolvers<void>()
  await using server = await startFileServer({
    '*': (request, response) => {
      if (waiting.length >= 3) return void response.end(request.url)
      if (waiting.push(() => response.end(request.url)) === 3) arrived.resolve()
    },
  })
  await using rig = await startLoop({ folder: folder.path, retries: 0 })
  await rig.frontier.add([1, 2, 3].map((i) => fileTask(`${server.url}/${i}`)))
  await arrived.promise
  process.kill(rig.pool.pids[0]!, 'SIGKILL')
  await rig.finished()
  assert.equal((await rig.records.list('run-1')).length, 3)
  assert.equal((await rig.frontier.stats()).failed, 0)
})

test('hands running jobs back when stopped, and resumes them where they were', async () => {
  using folder = temporaryFolder()
  const file = content(3_000_000)
  const frontier = `sqlite:${folder.path}/frontier.db`
  await using server = await startFileServer()
  const begun = Promise.withResolvers<void>()
  server.paths.set('/a', (_request, response) => {
    response.writeHead(200, { etag: '"1"', 'content-length': file.length })
    response.write(file.subarray(0, 2_000_000), () => begun.resolve())
  })
  const url = `${server.url}/a`
  {
    await using rig = await startLoop({ folder: folder.path, frontier })
    await rig.frontier.add([fileTask(url)])
    await begun.promise
    assert.deepEqual(await rig.stop(), { how: 'stopped' })
    const { pending, claimed } = await rig.frontier.stats()
    assert.deepEqual({ pending, claimed }, { pending: 1, claimed: 0 })
  }
  server.paths.set('/a', serveFile(file, { etag: '"1"' }))
  await using rig = await startLoop({ folder: folder.path, frontier })
  await rig.finished()
  const from = Number(/^bytes=(\d+)-$/.exec(server.asked.at(-1)!.headers.range ?? '')?.[1])
  assert.ok(from > 0 && from <= 2_000_000, `asked for what comes after ${from}`)
  const stored = rig.events.find(({ outcome }) => outcome === 'stored')
  assert.equal(stored!.attempt, 1, 'being handed back cost no try')
  assert.equal((await rig.records.list('run-1'))[0]!.bytes, file.length)
})

test('stores nothing and changes nothing under a lost lease', async () => {
  using folder = temporaryFolder()
  const release = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  await using server = await startFileServer({
    '/a': (_request, response) => {
      begun.resolve()
      void release.promise.then(() => response.end('late'))
    },
  })
  await using rig = await startLoop({ folder: folder.path })
  await rig.frontier.add([fileTask(`${server.url}/a`)])
  await begun.promise
  await rig.frontier.sweep({ lossesMax: 3, workerIds: ['w1/files'] }) // as if it had slept past its lease
  await rig.frontier.pause('so that nobody claims it again')
  release.resolve()
  await rig.event(({ outcome }) => outcome === 'stale')
  assert.deepEqual(filesIn(join(folder.path, 'store')), [])
  assert.equal((await rig.frontier.stats()).pending, 1)
})

test('hands everything back before an error ends the run', async () => {
  using folder = temporaryFolder()
  await using server = await startFileServer({ '*': (request, response) => void response.end(request.url) })
  writeFileSync(join(folder.path, 'a-file'), '')
  const orders = { store: join(folder.path, 'a-file', 'store') }
  await using rig = await startLoop({ folder: folder.path, orders })
  await rig.frontier.add([1, 2, 3].map((i) => fileTask(`${server.url}/${i}`)))
  const end = await rig.loop.ended
  assert.equal(end.how === 'halted' && end.error.code, 'E_OUTPUT')
  const { pending, claimed } = await rig.frontier.stats()
  assert.deepEqual({ pending, claimed }, { pending: 3, claimed: 0 })
})

test('does not query an empty lane in a tight loop', async () => {
  using folder = temporaryFolder()
  await using rig = await startLoop({ folder: folder.path })
  const atMs: number[] = []
  const asked = Promise.withResolvers<void>()
  const { claim } = rig.frontier
  rig.frontier.claim = (request) => {
    if (atMs.push(performance.now()) === 6) asked.resolve()
    return claim.call(rig.frontier, request)
  }
  await asked.promise
  const lastGapMs = atMs[5]! - atMs[4]!
  assert.ok(lastGapMs > 300, `the sixth claim came ${lastGapMs} ms after the fifth`)
})
