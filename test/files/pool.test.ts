/** The pool with real processes, a real server and real signals. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ScrapeError } from '../../src/core/errors.ts'
import { type FilePoolOptions, openFilePool } from '../../src/files/pool.ts'
import { temporaryFolder } from '../sluice.ts'
import { content, type FileServer, serveFile, startFileServer } from './file-server.ts'
import { downloadJob, ENTRY, filesIn, never, orders } from './rig.ts'

const codeOf = (error: unknown) => (error instanceof ScrapeError ? error.code : String(error))

function pool(folder: string, more: Partial<FilePoolOptions> = {}) {
  return openFilePool({ entry: ENTRY, orders: orders(folder), workers: 1, findStored: async () => undefined, ...more })
}

/** Sends the first half and then waits until it is released. */
function stalling(server: FileServer, path: string, file: Buffer): { begun: Promise<void>; release(): void } {
  const begun = Promise.withResolvers<void>()
  const let_ = Promise.withResolvers<void>()
  let times = 0
  server.paths.set(path, (request, response) => {
    if (times++ > 0) return serveFile(file, { etag: '"v1"' })(request, response)
    response.writeHead(200, { etag: '"v1"', 'content-length': file.length })
    response.write(file.subarray(0, file.length / 2), () => begun.resolve())
    void let_.promise.then(() => response.end(file.subarray(file.length / 2)))
  })
  return { begun: begun.promise, release: () => let_.resolve() }
}

/** Waits until a part in the spool has this many bytes: there is no event for another process's file. */
async function partOf(folder: string, bytes: number): Promise<void> {
  for (;;) {
    const parts = filesIn(join(folder, 'spool')).filter((name) => name.endsWith('.part'))
    if (parts.some((name) => readFileSync(join(folder, 'spool', name)).length >= bytes)) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** The same for a file that another process writes. */
async function appears(path: string, bytes = 0): Promise<void> {
  while (!existsSync(path) || statSync(path).size < bytes) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('stores what it downloads, and bytes that are already there only once', async () => {
  using folder = temporaryFolder()
  const file = content(100_000)
  await using server = await startFileServer({
    '/a.bin': serveFile(file),
    '/b.bin': serveFile(file),
    '/c.bin': serveFile(file),
  })
  await using files = pool(folder.path, { workers: 2 })
  const jobs = ['a', 'b', 'c'].map((name) => files.run(downloadJob(`${server.url}/${name}.bin`), never))
  const stored = await Promise.all(jobs)
  assert.deepEqual(stored.map(({ isSame }) => isSame).sort(), [false, true, true])
  assert.equal(new Set(stored.map(({ where }) => where)).size, 1)
  assert.equal(stored[0]!.sha256, createHash('sha256').update(file).digest('hex'))
  assert.equal(filesIn(join(folder.path, 'store')).length, 1)
  assert.deepEqual(filesIn(join(folder.path, 'spool')), [])
  assert.ok(readFileSync(fileURLToPath(stored[0]!.where)).equals(file))
})

test('asks before it follows a redirect and before it stores', async () => {
  using folder = temporaryFolder()
  await using server = await startFileServer({ '/b': serveFile(content(10)), '/c': serveFile(content(11)) })
  server.paths.set('/a', (_request, response) => void response.writeHead(302, { location: '/b' }).end())
  await using files = pool(folder.path)
  const asked: string[] = []
  const hooks = {
    onRedirect: async (url: string) => void asked.push(url),
    onReceived: () => void asked.push('received'),
    beforeStore: async () => void asked.push('store'),
  }
  await files.run(downloadJob(`${server.url}/a`), never, hooks)
  assert.deepEqual(asked, [`${server.url}/b`, 'received', 'store'])
  const refuse = async () => {
    throw new ScrapeError('E_FILE_WORKER', 'its lease is lost')
  }
  await assert.rejects(files.run(downloadJob(`${server.url}/c`), never, { beforeStore: refuse }), /its lease is lost/)
  assert.equal(filesIn(join(folder.path, 'store')).length, 1)
})

test('ends the job of a killed process, and another resumes it', async () => {
  using folder = temporaryFolder()
  const file = content(4_000_000)
  await using server = await startFileServer()
  const stall = stalling(server, '/large', file)
  const deaths: string[] = []
  await using files = pool(folder.path, { onDeath: (_pid, how) => deaths.push(how) })
  const job = downloadJob(`${server.url}/large`)
  const running = files.run(job, never)
  await stall.begun
  await partOf(folder.path, 1_000_000)
  process.kill(files.pids[0]!, 'SIGKILL')
  await assert.rejects(
    running,
    (error: ScrapeError) => error.code === 'E_FILE_WORKER' && error.details.retryAfterMs === undefined,
  )
  const stored = await files.run(job, never)
  assert.ok(stored.fetchedBytes <= file.length - 1_000_000, `${stored.fetchedBytes} came again`)
  assert.ok(readFileSync(fileURLToPath(stored.where)).equals(file))
  assert.deepEqual(deaths, ['SIGKILL'])
  assert.deepEqual(filesIn(join(folder.path, 'spool')), [])
})

test('costs no tries to die together with others', async () => {
  using folder = temporaryFolder()
  await using server = await startFileServer()
  const stalls = ['/a', '/b'].map((path) => stalling(server, path, content(1000)))
  await using files = pool(folder.path)
  const running = ['/a', '/b'].map((path) => files.run(downloadJob(server.url + path), never))
  await Promise.all(stalls.map(({ begun }) => begun))
  process.kill(files.pids[0]!, 'SIGKILL')
  for (const end of await Promise.allSettled(running)) {
    const { reason } = end as PromiseRejectedResult
    assert.deepEqual([reason.code, reason.verdict, reason.details.retryAfterMs], ['E_FILE_WORKER', 'later', 0])
  }
  const stored = await files.run(downloadJob(`${server.url}/a`), never, { isAlone: true })
  assert.equal(stored.bytes, 1000)
})

test('stops an aborted job in its process, and keeps its part', async () => {
  using folder = temporaryFolder()
  await using server = await startFileServer()
  const stall = stalling(server, '/a', content(4_000_000))
  await using files = pool(folder.path)
  const stop = new AbortController()
  const running = files.run(downloadJob(`${server.url}/a`), stop.signal)
  await stall.begun
  await partOf(folder.path, 1_000_000)
  stop.abort(new Error('drained'))
  await assert.rejects(running, /drained/)
  assert.equal(files.busy, 0)
  assert.equal(files.pids.length, 1, 'its process lives on')
  assert.ok(filesIn(join(folder.path, 'spool')).some((name) => name.endsWith('.part')))
})

test('kills a stuck process when its job is no longer wanted', async () => {
  using folder = temporaryFolder()
  await using server = await startFileServer()
  const stall = stalling(server, '/a', content(1000))
  await using files = pool(folder.path, { abortMsMax: 100 })
  const stop = new AbortController()
  const running = files.run(downloadJob(`${server.url}/a`), stop.signal)
  await stall.begun
  process.kill(files.pids[0]!, 'SIGSTOP')
  stop.abort(new Error('too late'))
  await assert.rejects(running, /too late/)
  assert.equal((await files.run(downloadJob(`${server.url}/a`), never)).bytes, 1000)
})

test('grows with the work, shrinks without losing any, and ends with its owner', async () => {
  using folder = temporaryFolder()
  await using server = await startFileServer()
  const paths = ['/a', '/b', '/c']
  const stalls = paths.map((path) => stalling(server, path, content(1000)))
  let pids: readonly number[]
  {
    await using files = pool(folder.path, { workers: 3 })
    assert.deepEqual([files.pids.length, files.capacity], [0, 12])
    const running = paths.map((path) => files.run(downloadJob(server.url + path), never))
    await Promise.all(stalls.map(({ begun }) => begun))
    assert.equal(files.pids.length, 3)
    pids = files.pids
    files.resize(1)
    for (const { release } of stalls) release()
    assert.equal((await Promise.all(running)).length, 3)
    while (files.pids.length > 1) await new Promise((resolve) => setTimeout(resolve, 5))
    await files.run(downloadJob(`${server.url}/a`), never)
  }
  for (const pid of pids) assert.throws(() => process.kill(pid, 0), /ESRCH/)
})

test('stores a thousand small files', async () => {
  using folder = temporaryFolder()
  await using server = await startFileServer({ '*': (request, response) => void response.end(`file ${request.url}`) })
  await using files = pool(folder.path, { workers: 2 })
  const names = Array.from({ length: 1000 }, (_, i) => `/${i}.txt`)
  const stored = await Promise.all(names.map((name) => files.run(downloadJob(server.url + name), never)))
  assert.equal(new Set(stored.map(({ where }) => where)).size, 1000)
  assert.equal(filesIn(join(folder.path, 'store')).length, 1000)
  for (const at of [0, 500, 999])
    assert.equal(readFileSync(fileURLToPath(stored[at]!.where), 'utf8'), `file ${names[at]}`)
})

test('keeps hostile names inside the folder', async () => {
  using folder = temporaryFolder()
  const names = [
    '../../../etc/passwd',
    '/etc/passwd',
    '..\\..\\boot.ini',
    'CON',
    'x\0.txt',
    `${'a'.repeat(5000)}.txt`,
    '.',
    '%2e%2e%2fx',
  ]
  await using server = await startFileServer()
  for (const [i, name] of names.entries()) {
    const headers = { 'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(name)}` }
    server.paths.set(`/${i}`, serveFile(content(10, i + 1), { headers }))
  }
  await using files = pool(folder.path)
  for (const i of names.keys()) await files.run(downloadJob(`${server.url}/${i}`), never)
  const stored = filesIn(folder.path)
  assert.equal(stored.length, names.length)
  for (const name of stored) assert.match(name, /^store\/shop\/run-1\/_\/[0-9a-f]{20}-[\w.-]{1,99}$/)
})

test('stores a kept file, which stays until it is settled', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'kept')
  writeFileSync(path, '%PDF-1.7 hello')
  await using files = pool(folder.path)
  const order = { type: 'upload' as const, path, name: 'in/voice' }
  const stored = await files.run(downloadJob('http://shop.example/cart', { order }), never)
  assert.match(stored.where, /-voice\.pdf$/)
  assert.equal(stored.contentType, 'application/pdf')
  assert.equal(readFileSync(path, 'utf8'), '%PDF-1.7 hello')
  const missing = files.run(downloadJob('http://shop.example/x', { order: { ...order, path: `${path}-gone` } }), never)
  assert.equal(await missing.catch(codeOf), 'E_FILE_MISSING')
})

test('reports a store that cannot be opened, once and for all', async () => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'a-file'), '')
  await using files = pool(folder.path, {
    orders: orders(folder.path, { store: join(folder.path, 'a-file', 'store') }),
  })
  assert.equal(await files.run(downloadJob('http://127.0.0.1:9/x'), never).catch(codeOf), 'E_OUTPUT')
})

test('gives up on processes that die again and again', async () => {
  using folder = temporaryFolder()
  const entry = join(folder.path, 'dies.ts')
  writeFileSync(entry, 'process.exit(7)')
  await using files = pool(folder.path, { entry, restartMsMin: 1 })
  const codes = new Set<string>()
  while (!codes.has('E_WORKERS_DIE'))
    codes.add(String(await files.run(downloadJob('http://127.0.0.1:9/x'), never).catch(codeOf)))
  assert.deepEqual([...codes], ['E_FILE_WORKER', 'E_WORKERS_DIE'])
})

/**
 * Acts as the path of the job says, without any file: `die`, `loop`, `wait` until a signal comes; anything else is done at once.
 * What a test waits for is written beside it: `looping`, and a byte in `answers` for each answered ping.
 */
const ACTOR = `
  import { appendFileSync, writeFileSync } from 'node:fs'
  const beside = (name) => new URL(name, import.meta.url)
  const done = (id, task) => process.send({ kind: 'done', id, stored: { name: 'a', bytes: 1, sha256: task.id, contentType: 'x', where: 'file:///x', isSame: false, extra: {}, fetchedBytes: 1 } })
  const waiting = []
  process.on('message', ({ kind, id, job }) => {
    if (kind === 'open') process.send({ kind: 'ready' })
    if (kind === 'ping') process.send({ kind: 'pong' }, () => appendFileSync(beside('answers'), '.'))
    if (kind !== 'job') return
    const { pathname } = new URL(job.task.url)
    if (pathname.startsWith('/die')) process.kill(process.pid, 'SIGKILL')
    if (pathname.startsWith('/loop')) {
      writeFileSync(beside('looping'), '')
      for (;;);
    }
    if (pathname.startsWith('/wait')) waiting.push(() => done(id, job.task))
    else done(id, job.task)
    if (pathname.startsWith('/go')) for (const one of waiting.splice(0)) one()
  })
  process.on('disconnect', () => process.exit(0))`

function actors(folder: string, more: Partial<FilePoolOptions> = {}) {
  const entry = join(folder, 'actor.mjs')
  writeFileSync(entry, ACTOR)
  return pool(folder, { entry, restartMsMin: 1, ...more })
}

const SILENCE_MS_MAX = 60_000
const PINGS_IN_SILENCE = 4

/** The clock of the pings is mocked: how soon a process starts or gets a core does not matter. */
test('kills a process in an endless loop, and finds the file that caused it', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const pass = () => t.mock.timers.tick(SILENCE_MS_MAX / PINGS_IN_SILENCE)
  using folder = temporaryFolder()
  await using files = actors(folder.path, { silenceMsMax: SILENCE_MS_MAX })
  const isLooping = async () => {
    await appears(join(folder.path, 'looping'))
    rmSync(join(folder.path, 'looping'))
  }
  const together = ['/wait', '/loop'].map((path) => files.run(downloadJob(`http://x.example${path}`), never))
  const ends = Promise.allSettled(together)
  await isLooping()
  for (let pings = 0; pings <= PINGS_IN_SILENCE; pings++) pass()
  for (const end of await ends)
    assert.equal(((end as PromiseRejectedResult).reason as ScrapeError).details.retryAfterMs, 0)
  const alone = files.run(downloadJob('http://x.example/loop'), never, { isAlone: true }).catch((error) => error)
  await isLooping()
  for (let pings = 0; pings <= PINGS_IN_SILENCE; pings++) pass()
  const { code, details } = (await alone) as ScrapeError
  assert.deepEqual([code, details.retryAfterMs], ['E_FILE_WORKER', undefined])
})

test('keeps a process that answers, however long its job takes', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  using folder = temporaryFolder()
  await using files = actors(folder.path, { silenceMsMax: SILENCE_MS_MAX })
  const waiting = files.run(downloadJob('http://x.example/wait'), never)
  for (let answers = 1; answers <= 3 * PINGS_IN_SILENCE; answers++) {
    t.mock.timers.tick(SILENCE_MS_MAX / PINGS_IN_SILENCE)
    await appears(join(folder.path, 'answers'), answers)
  }
  await files.run(downloadJob('http://x.example/go'), never)
  assert.equal((await waiting).bytes, 1)
})

test('continues the run when files kill their process one after the other', async () => {
  using folder = temporaryFolder()
  await using files = actors(folder.path)
  for (let tries = 0; tries < 12; tries++) {
    const dying = files.run(downloadJob(`http://x.example/die-${tries}`), never, { isAlone: true })
    assert.equal(await dying.catch(codeOf), 'E_FILE_WORKER')
  }
  // Nor do those not suspected yet, as long as others get done in between.
  for (let tries = 0; tries < 12; tries++) {
    assert.equal(await files.run(downloadJob('http://x.example/die'), never).catch(codeOf), 'E_FILE_WORKER')
    await files.run(downloadJob('http://x.example/ok'), never)
  }
})

test('does not let a job that must run alone wait for others, nor others for it', async () => {
  using folder = temporaryFolder()
  await using files = actors(folder.path)
  const long = files.run(downloadJob('http://x.example/wait'), never)
  const alone = { isAlone: true }
  const suspects = [1, 2].map((n) => files.run(downloadJob(`http://x.example/wait-${n}`), never, alone))
  await files.run(downloadJob('http://x.example/ok'), never)
  assert.equal(files.pids.length, 2)
  // A job that is alone cannot be told to continue: it ends with its process, and the next takes its turn.
  process.kill(files.pids[1]!, 'SIGKILL')
  await assert.rejects(suspects[0]!)
  const last = files.run(downloadJob('http://x.example/ok-2'), never, alone)
  while (files.pids.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  process.kill(files.pids[1]!, 'SIGKILL')
  await assert.rejects(suspects[1]!)
  assert.equal((await last).bytes, 1)
  while (files.pids.length > 1) await new Promise((resolve) => setTimeout(resolve, 5))
  await files.run(downloadJob('http://x.example/go'), never)
  assert.equal((await long).bytes, 1)
})

test('ends its processes when their owner was killed', async () => {
  const { fork } = await import('node:child_process')
  using folder = temporaryFolder()
  await using server = await startFileServer()
  const stall = stalling(server, '/a', content(1000))
  const owner = fork(fileURLToPath(new URL('./pool-owner-child.test-kit.ts', import.meta.url)), [
    folder.path,
    `${server.url}/a`,
  ])
  const [pid] = (await once(owner, 'message')) as [number]
  await stall.begun
  owner.kill('SIGKILL')
  const isAlive = () => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  while (isAlive()) await new Promise((resolve) => setTimeout(resolve, 10))
})
