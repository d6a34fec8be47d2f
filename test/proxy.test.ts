/** `--proxy` as a user uses it, through a real microsocks, and how rotation affects connections. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import * as z from 'zod'
import { rotateWhenRefused } from '../src/app/run/rotation.ts'
import { seed } from '../src/app/run/seed.ts'
import { placeIn, work } from '../src/app/run/worker.ts'
import type { ErrorCode } from '../src/core/error-table.ts'
import { createEventBus, type EventBus } from '../src/core/events.ts'
import { compileScraper } from '../src/crawl/compile-scraper.ts'
import { type HttpClient, openHttp } from '../src/fetch/http/http.ts'
import { openMemoryFrontier } from '../src/frontier/memory/engine.ts'
import { defineScraper } from '../src/index.ts'
import { RunFolder } from '../src/runs/run-folder.ts'
import { Fleet, until } from './fleet.ts'
import { postgresForTests } from './services/postgres.ts'
import { type SocksServer, socksForTests } from './services/socks.ts'
import { startBooksSite, truth } from './site/books.ts'
import { type HostileSite, openHostileSite, respond } from './site/hostile.ts'
import { sluice, temporaryFolder } from './sluice.ts'

const login = { user: 'sluice', password: 'p@ss:wörd/1' }
const never = new AbortController().signal

/** How many connections microsocks made to this site. */
function tunnelsTo({ port }: { port: number }, socks: SocksServer): number {
  return socks.log.split('\n').filter((line) => line.endsWith(`connected to 127.0.0.1:${port}`)).length
}

const booksOf = (count: number, site: string) => new Set([...truth(count)].map(({ path }) => new URL(path, site).href))
const jsonLines = (text: string) => text.split('\n').filter(Boolean).map((line) => JSON.parse(line)) // biome-ignore format: one line reads better

describe('a run with --proxy', () => {
  it('fetches every page through it', async () => {
    await using site = await startBooksSite({ products: 200 })
    await using socks = await socksForTests(login)
    using folder = temporaryFolder()
    const args = ['run', 'books', '--site', site.url, '--rps', '0', '--out', folder.path, '--proxy', socks.url]
    const { code, stdout, stderr } = await sluice(args)
    assert.equal(code, 0, stderr)
    const items = jsonLines(readFileSync(join(folder.path, 'books/latest/items.jsonl'), 'utf8'))
    assert.deepEqual(new Set(items.map(({ url }) => url)), booksOf(200, site.url))
    assert.ok(tunnelsTo(site, socks) > 0, socks.log)
    assert.doesNotMatch(stdout + stderr, /p@ss|p%40ss/)
  })

  it('never bypasses it: a run whose proxy is dead waits, then stops before it costs a page its tries', async () => {
    await using site = await startBooksSite({ products: 200 })
    await using socks = await socksForTests(login)
    await socks.stop()
    using folder = temporaryFolder()
    const out = ['--out', folder.path]
    const limits = ['--rps', '0', '--retries', '0', '--wait', '1s']
    const { code, stdout, stderr } = await sluice([
      'run',
      'books',
      '--site',
      site.url,
      ...limits,
      '--proxy',
      socks.url,
      ...out,
    ])
    assert.equal(code, 4, stderr)
    assert.match(stdout, /no proxy has worked for \d+ s: the proxy 127\.0\.0\.1:\d+ cannot be reached/)
    assert.doesNotMatch(stdout + stderr, /p@ss|p%40ss/)
    const { dead, pending } = JSON.parse((await sluice(['stats', '--json', ...out])).stdout)
    assert.deepEqual({ dead, pending }, { dead: 0, pending: 1 })
    assert.equal(site.stats().requests, 0)
  })
})

describe('a worker of a fleet with --proxy', () => {
  it('fetches every page through it, and none once it is dead', async () => {
    await using database = await postgresForTests()
    await using site = await startBooksSite({ products: 100 })
    await using socks = await socksForTests(login)
    using folder = temporaryFolder()
    const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
    const { run_id: runId } = await fleet.start('--site', site.url)
    const end = await fleet.worker(runId, '--proxy', socks.url).result
    assert.equal(end.code, 0, end.stderr)
    assert.deepEqual(new Set((await fleet.items(runId)).map(({ url }) => url)), booksOf(100, site.url))
    assert.ok(tunnelsTo(site, socks) > 0, socks.log)

    const asked = site.stats().requests
    await socks.stop()
    const { run_id: deadId } = await fleet.start('--site', site.url)
    const dead = await fleet.worker(deadId, '--proxy', socks.url, '--retries', '0', '--wait', '1s').result
    assert.equal(dead.code, 4, dead.stderr)
    const { state, pending, dead: letters } = await fleet.stats(deadId)
    assert.deepEqual({ state, pending, letters }, { state: 'running', pending: 1, letters: 0 }, 'others can work on it')
    assert.equal(site.stats().requests, asked)
  })
})

interface NamingSocks extends AsyncDisposable {
  urlFor(user: string): string
  /** The user of each tunnel, in order. */
  readonly users: string[]
  /** Currently open tunnels, by user. */
  readonly open: string[]
}

/** A SOCKS5 proxy that admits everyone and remembers the users, which microsocks does not. */
async function openNamingSocks(): Promise<NamingSocks> {
  const users: string[] = []
  const open = new Map<Socket, string>()
  const sockets = new Set<Socket>()
  const serve = async (client: Socket) => {
    const next = async () => ((await once(client, 'data')) as [Buffer])[0]
    await next()
    client.write(Buffer.from([5, 2]))
    const words = await next()
    client.write(Buffer.from([1, 0]))
    const request = await next() // version, CONNECT, 0, IPv4, address, port
    const target = connect(request.readUInt16BE(8), [...request.subarray(4, 8)].join('.'))
    sockets.add(target.on('error', () => client.destroy()))
    await once(target, 'connect')
    const user = words.toString('utf8', 2, 2 + words[1]!)
    users.push(user)
    open.set(client, user)
    client.on('close', () => open.delete(client) && target.destroy())
    client.pipe(target).pipe(client)
    client.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
  }
  const server = createServer((client) => {
    sockets.add(client.on('error', () => {}))
    serve(client).catch(() => client.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    urlFor: (user) => `socks5://${user}:x@127.0.0.1:${(server.address() as AddressInfo).port}`,
    users,
    get open() {
      return [...open.values()]
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const httpAs = (proxy: string) =>
  openHttp({
    userAgent: 'SluiceTest/1.0',
    timeoutMs: 5000,
    connectTimeoutMs: 1000,
    bodyBytesMax: 100_000,
    redirectsMax: 5,
    connectionsPerHost: 1,
    retryAfterMsMax: 1000,
    allowPrivate: true,
    allowAddresses: [],
    proxy,
  })

const refused = (http: HttpClient, site: HostileSite) =>
  assert.rejects(http.exchange({ url: site.url('no') }, never), { code: 'E_FORBIDDEN' })

describe('rotation', () => {
  it('uses new connections and the new user for what follows, where one connection was kept before', async () => {
    await using site = await openHostileSite()
    site.on('no', respond(403, 'no entry'))
    await using socks = await openNamingSocks()
    await using http = httpAs(socks.urlFor('one'))
    for (let i = 0; i < 5; i++) await refused(http, site)
    assert.deepEqual(socks.users, ['one'])
    http.rotate(socks.urlFor('two'))
    for (let i = 0; i < 5; i++) await refused(http, site)
    assert.deepEqual(socks.users, ['one', 'two'])
    await until('the old connection is closed', () => socks.open.join() === 'two')
    assert.equal(site.connections, 2)
  })

  it('lets a request in flight finish where it is, and closes its connection then', async () => {
    await using site = await openHostileSite()
    let answer = () => {}
    site.on('slow', (...given) => {
      answer = () => respond(200, 'at last', { 'Content-Type': 'text/html' })(...given)
    })
    await using socks = await openNamingSocks()
    await using http = httpAs(socks.urlFor('0'))
    const slow = http.exchange({ url: site.url('slow') }, never)
    await until('it is under way', () => site.requests.length === 1)
    // Unused connections must not pile up, however often it rotates.
    for (let turn = 1; turn <= 50; turn++) {
      http.rotate(socks.urlFor(`${turn}`))
      assert.equal((await http.exchange({ url: site.url('page') }, never)).status, 200)
    }
    await until('the ways between are closed', () => socks.open.join() === '0,50')
    assert.deepEqual(
      socks.users,
      Array.from({ length: 51 }, (_, turn) => `${turn}`),
    )
    answer()
    assert.equal((await slow).text, 'at last')
    await until('the first way is closed', () => socks.open.join() === '50')
  })

  it('also ends old connections when the client is closed', async () => {
    await using site = await openHostileSite()
    await using socks = await openNamingSocks()
    const http = httpAs(socks.urlFor('one'))
    const cut = assert.rejects(http.exchange({ url: site.url('silent') }, never), { code: 'E_CONNECTION' })
    await until('it is under way', () => site.requests.length === 1)
    http.rotate(socks.urlFor('two'))
    await http[Symbol.asyncDispose]()
    await cut
    await until('nothing is open', () => socks.open.length === 0)
  })

  it('retries what the server dropped with its kept connection at that very moment', async () => {
    await using site = await openHostileSite()
    await using socks = await openNamingSocks()
    await using http = httpAs(socks.urlFor('one'))
    site.on('drop', (socket, request, self) => {
      if (site.requests.length !== 2) return respond(200, 'page')(socket, request, self)
      http.rotate(socks.urlFor('two'))
      return socket.destroy()
    })
    for (let i = 0; i < 2; i++) assert.equal((await http.exchange({ url: site.url('drop') }, never)).status, 200)
    assert.deepEqual(socks.users, ['one', 'two'])
  })

  it('rejects an invalid proxy, and stays where it is', async () => {
    await using site = await openHostileSite()
    await using socks = await openNamingSocks()
    await using http = httpAs(socks.urlFor('one'))
    await http.exchange({ url: site.url('page') }, never)
    assert.throws(() => http.rotate('ftp://a:secret@h.test'), { code: 'E_OPTION' })
    await http.exchange({ url: site.url('page') }, never)
    assert.deepEqual(socks.users, ['one'])
  })
})

function tellOf(code: ErrorCode, bus: EventBus): void {
  const error = { code, class: '', message: '' }
  bus.emit({ type: 'page', outcome: 'retried', url: 'http://a.test/', host: 'a.test', route: 'page', attempt: 1, error }) // biome-ignore format: one line reads better
}

describe('a worker with other exits', () => {
  it('takes the next one when it is blocked, at most once in 10 s', () => {
    const bus = createEventBus()
    const taken: string[] = []
    let nowMs = 0
    let ways = 0
    const fetching = { rotate: (url: string) => void taken.push(url) }
    const listening = rotateWhenRefused({ bus, fetching, rotation: { next: () => `${++ways}` }, now: () => nowMs })
    for (const code of ['E_SERVER', 'E_RATE_LIMITED', 'E_NOT_FOUND'] as const) tellOf(code, bus)
    assert.deepEqual(taken, [])
    tellOf('E_FORBIDDEN', bus)
    nowMs = 9_999
    tellOf('E_FORBIDDEN', bus)
    assert.deepEqual(taken, ['1'])
    nowMs = 10_000
    tellOf('E_PROXY', bus)
    tellOf('E_PROXY', bus)
    assert.deepEqual(taken, ['1', '2'])
    listening[Symbol.dispose]()
    nowMs = 20_000
    tellOf('E_FORBIDDEN', bus)
    assert.deepEqual(taken, ['1', '2'])
  })

  it('continues as before, and says so, if there is none', () => {
    const bus = createEventBus()
    const warnings: string[] = []
    bus.on((event) => event.type === 'log' && event.level === 'warn' && warnings.push(event.message))
    const next = () => {
      throw new Error('all used up')
    }
    using _ = rotateWhenRefused({ bus, fetching: { rotate: assert.fail }, rotation: { next } })
    tellOf('E_FORBIDDEN', bus)
    assert.match(warnings.join(), /all used up/)
  })

  it('fetches the page that a site refused on the first exit', async () => {
    await using site = await openHostileSite()
    let first: Socket | undefined
    site.on('wall', (socket, request, self) => {
      first ??= socket
      respond(socket === first ? 403 : 200, 'page', { 'Content-Type': 'text/html' })(socket, request, self)
    })
    await using socks = await openNamingSocks()
    using folder = temporaryFolder()
    const compiled = compileScraper(
      defineScraper({
        name: 'wall',
        item: z.object({ id: z.string() }),
        routes: { page: {} },
        limits: { robots: 'ignore', backoff: 1, perHost: { rps: 0 } },
        start: ({ enqueue }) => enqueue('page', [1, 2, 3].map((page) => `${site.url('wall')}/${page}`)), // biome-ignore format: one line reads better
        handlers: { page: ({ emit, url }) => emit({ id: url.pathname }) },
      }),
    )
    const bus = createEventBus()
    const ends: string[] = []
    bus.on((event) => event.type === 'page' && event.outcome !== 'retried' && ends.push(event.outcome))
    await using frontier = openMemoryFrontier()
    await seed({ compiled, args: {}, frontier, bus, stop: never })
    let ways = 0
    const run = RunFolder.create(folder.path, 'wall', Date.now())
    const spec = {
      workerId: 'w',
      args: {},
      concurrency: 1,
      perHostConcurrency: 1,
      pagesMax: 100,
      leaseMs: 60_000,
      drainMs: 1000,
      userAgent: 'SluiceTest/1.0',
      allowPrivate: true,
      allowAddresses: [],
      cacheStore: 'memory:',
      proxy: socks.urlFor('w-0'),
      browsers: { pages: 1, pagesMax: 1, executable: undefined },
      files: {
        store: run.file('files'),
        spool: run.file('spool'),
        records: run.file('files.db'),
        workersMax: 1,
        bytesMax: 1,
        steps: [],
      },
      memoryReserve: 0,
      isOneOfMany: false,
      recordTo: undefined,
    }
    const place = placeIn(run, false)
    const rotation = { next: () => socks.urlFor(`w-${++ways}`) }
    const end = await work(spec, { compiled, frontier, bus, place, rotation }, never)
    assert.equal(end.how, 'finished')
    assert.deepEqual(ends, ['ok', 'ok', 'ok'])
    assert.deepEqual(socks.users, ['w-0', 'w-1'])
  })
})
