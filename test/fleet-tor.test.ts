/**
 * `worker --tor` on a private Tor network: each worker has a daemon, fetches its pages through it, and ends it when it leaves.
 *
 *   worker ──▶ its daemon ──▶ relay ──▶ relay ──▶ exit ──▶ front server, which identifies each connection's owner ──▶ site
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { openOwnTor } from '../src/app/fleet/own-tor.ts'
import { createEventBus } from '../src/core/events.ts'
import { openHttp } from '../src/fetch/http/http.ts'
import { Fleet, until } from './fleet.ts'
import type { Program } from './services/find-program.ts'
import { freePort } from './services/free-port.ts'
import { OwnedServer } from './services/owned-server.ts'
import { postgresForTests } from './services/postgres.ts'
import { torForTests } from './services/tor.ts'
import { startBooksSite, truth } from './site/books.ts'
import { openHostileSite, respond } from './site/hostile.ts'
import { type SluiceProcess, startSluice, temporaryFolder } from './sluice.ts'

const RELAYS = 3
/** An established network admits a daemon after about 2 s; a new one needs two rounds of votes, of 5 s each. */
const timeout = 120_000

let network: TorNetwork
const path = process.env['PATH']
before(async () => {
  network = await openTorNetwork(await torForTests())
  process.env['PATH'] = `${network.binFolder}${delimiter}${path}`
})
after(async () => {
  process.env['PATH'] = path
  await network[Symbol.asyncDispose]()
})

test('gives two workers two daemons, with their own folders and ports, and leaves none behind', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 20 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  const { run_id: runId } = await fleet.start('--site', site.url)
  const workers = [1, 2].map(() => startTorWorker(runId, { frontier: database.url, folder: folder.path }))
  await until('both daemons listen', () => workers.every(({ daemon }) => daemon() !== undefined))
  const daemons = workers.map(({ daemon }) => daemon()!)
  assert.equal(new Set(daemons.map(({ pid }) => pid)).size, 2)
  assert.equal(new Set(daemons.map(({ socks }) => socks)).size, 2)
  assert.equal(torFolders(folder.path).length, 2)
  for (const { pid } of daemons) assert.ok(isTor(pid))
  for (const { child } of workers) child.kill('SIGTERM')
  for (const { result } of workers) assert.equal((await result).code, 4, (await result).stderr)
  for (const { pid } of daemons) assert.ok(!isTor(pid), `Tor ${pid} is still there`)
  assert.deepEqual(torFolders(folder.path), [])
  const { pending, claimed, remaining } = await fleet.stats(runId)
  assert.deepEqual({ pending, claimed, remaining }, { pending: 1, claimed: 0, remaining: 1 }, 'waiting cost no task')
})

test('fetches every page through the daemon, over another circuit if the first is refused', async () => {
  await using database = await postgresForTests()
  await using site = await startBooksSite({ products: 100 })
  await using door = await openFrontDoor(site.port, { refused: 1 })
  using folder = temporaryFolder()
  const fleet = new Fleet({ frontier: database.url, cwd: folder.path })
  await network.start()
  const { run_id: runId } = await fleet.start('--site', door.url)
  // Then the first connection is for the first page: on the refused circuit it would be refused forever.
  const worker = startTorWorker(runId, { frontier: database.url, folder: folder.path }, '--robots', 'ignore')
  const end = await worker.result
  assert.equal(end.code, 0, end.stderr)
  assert.match(end.stderr, /E_FORBIDDEN; the next pages take another way out/)
  assert.deepEqual(
    new Set((await fleet.items(runId)).map(({ url }) => url)),
    new Set([...truth(100)].map((book) => new URL(book.path, door.url).href)),
  )
  assert.deepEqual(new Set(door.callers), new Set(['exit']))
  assert.ok(!isTor(worker.daemon()!.pid))
})

test('uses another Tor user, with new connections, for another exit', async () => {
  await using site = await openHostileSite()
  site.on('no', respond(403, 'no entry'))
  await using door = await openFrontDoor(site.port)
  await network.start()
  await using tor = await openOwnTor('worker', createEventBus(), AbortSignal.timeout(timeout))
  await using http = openHttp({
    userAgent: 'SluiceTest/1.0',
    timeoutMs: 20_000,
    connectTimeoutMs: 20_000,
    bodyBytesMax: 100_000,
    redirectsMax: 5,
    connectionsPerHost: 1,
    retryAfterMsMax: 1000,
    allowPrivate: true,
    allowAddresses: [],
    proxy: tor.proxy,
  })
  const users = [tor.proxy]
  for (let way = 1; way <= 3; way++) {
    for (let i = 0; i < 3; i++) {
      const signal = AbortSignal.timeout(timeout)
      await assert.rejects(http.exchange({ url: `${door.url}no` }, signal), { code: 'E_FORBIDDEN' })
    }
    assert.deepEqual(
      door.callers,
      Array.from({ length: way }, () => 'exit'),
    )
    users.push(tor.next())
    http.rotate(users.at(-1)!)
  }
  assert.deepEqual(users.map((url) => new URL(url).username), ['worker-0', 'worker-1', 'worker-2', 'worker-3']) // biome-ignore format: one line reads better
})

interface TorWorker extends SluiceProcess {
  /** Set once it listens. */
  daemon(): { pid: number; socks: string } | undefined
}

function startTorWorker(
  runId: string,
  { frontier, folder }: { frontier: string; folder: string },
  ...more: string[]
): TorWorker {
  const args = ['worker', '--scraper', 'books', '--run-id', runId, '--rps', '0', '--tor', ...more]
  const worker = startSluice(args, { env: { SLUICE_FRONTIER: frontier, TMPDIR: folder }, cwd: folder })
  let stderr = ''
  worker.child.stderr!.on('data', (chunk) => {
    stderr += chunk
  })
  return {
    ...worker,
    daemon() {
      const said = /Tor (\d+) listens at (socks5:\/\/127\.0\.0\.1:\d+)/.exec(stderr)
      return said === null ? undefined : { pid: Number(said[1]), socks: said[2]! }
    },
  }
}

const torFolders = (folder: string) => readdirSync(folder).filter((name) => name.startsWith('tor-'))

function isTor(pid: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return /^Name:\s+tor$/m.test(status) && !/^State:\s+Z/m.test(status)
  } catch {
    return false
  }
}

interface FrontDoor extends AsyncDisposable {
  url: string
  /** The owner of each connection, oldest first. Exits and other clients all come from 127.0.0.1, so the kernel is asked. */
  callers: ('exit' | 'somebody else')[]
}

/** The first `refused` connections get a 403 for every request, as long as they are kept. */
async function openFrontDoor(port: number, { refused = 0 } = {}): Promise<FrontDoor> {
  const callers: FrontDoor['callers'] = []
  const sockets = new Set<Socket>()
  const server = createServer((caller) => {
    callers.push(network.pids.some((pid) => isHeldBy(pid, caller)) ? 'exit' : 'somebody else')
    if (callers.length <= refused) {
      sockets.add(caller.on('error', () => caller.destroy()))
      caller.on('data', () => caller.write('HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n'))
      return
    }
    const inside = connect(port, '127.0.0.1')
    for (const socket of [caller, inside]) sockets.add(socket.on('error', () => socket.destroy()))
    caller.pipe(inside).pipe(caller)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    callers,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Whether the other end of this connection belongs to the process. */
function isHeldBy(pid: number, { localPort, remotePort }: Socket): boolean {
  const address = (port: number) => `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const ends = ` ${address(remotePort!)} ${address(localPort!)} `
  const line = readFileSync('/proc/net/tcp', 'utf8').split('\n').find((text) => text.includes(ends)) // biome-ignore format: one line reads better
  const socket = `socket:[${line?.trim().split(/\s+/)[9]}]`
  return readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`) === socket
    } catch {
      return false // closed since
    }
  })
}

interface TorNetwork extends AsyncDisposable {
  /** Pids of its relays. */
  readonly pids: number[]
  /** Contains a `tor` that knows only this network: no test reaches the internet. */
  binFolder: string
  /** Its daemons wait until then. May be called twice. */
  start(): Promise<void>
}

/** One authority, which is also a relay, and more relays; all are exits. Tor's manual has the options under TESTING NETWORK. */
async function openTorNetwork(tor: Program): Promise<TorNetwork> {
  const servers = Array.from({ length: 1 + RELAYS }, (_, n) => new OwnedServer(`tor-relay${n}`))
  const [authority] = servers
  const { folder } = authority!
  const ports = { or: await freePort(), dir: await freePort() }
  const v3Ident = makeAuthorityKeys(tor, folder, ports.dir)
  const authorityLine = (fingerprint: string) =>
    `relay0 orport=${ports.or} no-v2 v3ident=${v3Ident} 127.0.0.1:${ports.dir} ${fingerprint}`
  const optionsOf = (n: number, fingerprint: string) => [
    ...['--defaults-torrc', '/nonexistent', '-f', '/nonexistent', '--ignore-missing-torrc'],
    ...['--TestingTorNetwork', '1', '--DirAuthority', authorityLine(fingerprint), '--AssumeReachable', '1'],
    ...['--DataDirectory', servers[n]!.folder, '--Nickname', `relay${n}`, '--Address', '127.0.0.1', '--SocksPort', '0'],
    ...['--ORPort', `127.0.0.1:${n === 0 ? ports.or : 'auto'}`, '--ExitRelay', '1'],
    ...['--ExitPolicy', 'accept *:*', '--ExitPolicyRejectPrivate', '0', '--ExitPolicyRejectLocalInterfaces', '0'],
    ...(n === 0 ? AUTHORITY_OPTIONS : []),
    ...(n === 0 ? ['--DirPort', `127.0.0.1:${ports.dir}`] : []),
  ]
  const listing = spawnSync(tor.path, [...optionsOf(0, '0'.repeat(40)), '--list-fingerprint', '--quiet'], tor)
  const [fingerprint] = /(?:[0-9A-F]{4} ?){10}/.exec(String(listing.stdout)) ?? [assert.fail(String(listing.stdout))]
  const line = authorityLine(fingerprint.replaceAll(' ', ''))
  const binFolder = join(folder, 'bin')
  mkdirSync(binFolder)
  const libraries = `LD_LIBRARY_PATH='${tor.env['LD_LIBRARY_PATH'] ?? ''}'`
  const script = `#!/bin/sh\n${libraries} exec '${tor.path}' "$@" --TestingTorNetwork 1 --DirAuthority '${line}'\n`
  writeFileSync(join(binFolder, 'tor'), script, { mode: 0o755 })
  let starting: Promise<unknown> | undefined
  return {
    binFolder,
    get pids() {
      return servers.flatMap(({ pid }) => pid ?? [])
    },
    async start() {
      starting ??= Promise.all(
        servers.map((server, n) =>
          server.start({
            file: tor.path,
            args: optionsOf(n, fingerprint.replaceAll(' ', '')),
            env: tor.env,
            isReady: () => server.log.includes('Opened OR listener'),
          }),
        ),
      )
      await starting
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()))
    },
  }
}

/** Votes every few seconds, with whichever relays are up. */
const AUTHORITY_OPTIONS = [
  ...['--AuthoritativeDirectory', '1', '--V3AuthoritativeDirectory', '1', '--ContactInfo', 'test@sluice.test'],
  ...['--TestingV3AuthInitialVotingInterval', '5', '--V3AuthVotingInterval', '10'],
  ...['--TestingV3AuthInitialVoteDelay', '2', '--V3AuthVoteDelay', '2'],
  ...['--TestingV3AuthInitialDistDelay', '2', '--V3AuthDistDelay', '2'],
  ...['--TestingDirAuthVoteExit', '*', '--TestingDirAuthVoteGuard', '*'],
]

/** Returns the fingerprint of its identity. */
function makeAuthorityKeys(tor: Program, folder: string, dirPort: number): string {
  const keys = join(folder, 'keys')
  mkdirSync(keys, { mode: 0o700 })
  const file = (name: string) => join(keys, `authority_${name}`)
  const program = join(dirname(tor.path), '..', 'bin', 'tor-gencert')
  const made = spawnSync(
    program,
    [
      ...['--create-identity-key', '--passphrase-fd', '0', '-m', '12', '-a', `127.0.0.1:${dirPort}`],
      ...['-i', file('identity_key'), '-s', file('signing_key'), '-c', file('certificate')],
    ],
    { env: tor.env, input: 'no secret\n' },
  )
  assert.equal(made.status, 0, `${made.error ?? made.stderr}`)
  return /^fingerprint (\w+)$/m.exec(readFileSync(file('certificate'), 'utf8'))![1]!
}
