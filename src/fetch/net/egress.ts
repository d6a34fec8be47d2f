/**
 * The only way out of our browsers: a door for each visit, on a port of loopback, that Chromium takes for a SOCKS5 proxy.
 *
 *   page, its frames, scripts, workers, WebSockets ──▶ door ──▶ address guard (or the user's proxy) ──▶ the web
 *
 * So every connection is checked where it is made, whatever asked for it, and each visit's traffic is counted, limited and cut
 * off by itself. A door per visit costs 0.3 ms and no interception; contexts of one browser share no connection anyway.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { ScrapeError } from '../../core/errors.ts'
import { type AddressGuard, type AddressOptions, openAddressGuard } from './address.ts'
import { isOwnPeer } from './local-peer.ts'
import { openProxyGuard } from './proxy.ts'
import type { Sites } from './same-site.ts'
import { readSocksTarget, type SocksTarget, sendSocksReply } from './socks-server.ts'
import { transportError } from './transport-error.ts'

/** Chromium opens at most 32 connections to a proxy at once. */
const CONNECTIONS_MAX = 256
/** A host a page could not reach is remembered for the error; a hostile page names many. */
const FAILURES_MAX = 100

interface DoorOptions {
  /** Through the proxy of whom the page is opened as; left out: the way of the run. */
  guard?: AddressGuard
  /** Who may be asked; everybody, when left out. */
  sites?: Sites
  bytesMax: number
  /** The visit has received more than `bytesMax`; the door is shut by then. */
  onFlood: () => void
}

export interface EgressProxy extends AsyncDisposable {
  /** For `createBrowserContext`. */
  readonly proxyServer: string
  /** Received from outside. */
  readonly bytes: number
  /** Connections that are being made. */
  readonly connecting: number
  /** A connection waits for its answer; one that is only kept open does not. */
  readonly isAsking: boolean
  /** Why `hostname:port` could not be reached; undefined when it could, or was not tried. */
  failureOf(hostname: string, port: number): ScrapeError | undefined
  /** A connection to it was reset: a body that ends with its connection looks whole then, and is not. */
  wasCut(hostname: string, port: number): boolean
  /** How often that has happened; for doors that outlive a visit. */
  cutsOf(hostname: string, port: number): number
  /** Not one of the visit's sites, as opposed to not reachable. */
  hasShutOut(hostname: string): boolean
  /** Its site is one of the visit's from now on. */
  admit(url: string): void
  /** No more traffic, at once. */
  shut(): void
}

interface Egress {
  open(options: DoorOptions): Promise<EgressProxy>
}

export function openEgress(options: AddressOptions & { proxy?: string }): Egress {
  const guard = options.proxy === undefined ? openAddressGuard(options) : openProxyGuard(options, options.proxy)
  // Without a proxy a door leads nowhere its finder could not go by himself: he is on this machine. With one, it would lend him
  // the proxy. The look costs milliseconds for each connection on a machine with many, a quarter of all pages.
  const isLetIn = options.proxy === undefined ? () => true : isOwnPeer
  return {
    async open(doorOptions) {
      if (doorOptions.guard !== undefined) return await openEgressProxy({ ...doorOptions, guard: doorOptions.guard })
      const door = new OpenDoor(guard, { ...doorOptions, isLetIn })
      await door.listen()
      return door
    },
  }
}

/** A door to where `guard` leads, for processes of our own user. */
export async function openEgressProxy(options: DoorOptions & { guard: AddressGuard }): Promise<EgressProxy> {
  const door = new OpenDoor(options.guard, { ...options, isLetIn: isOwnPeer })
  await door.listen()
  return door
}

class OpenDoor implements EgressProxy {
  bytes = 0
  connecting = 0
  readonly #guard: AddressGuard
  readonly #options: DoorOptions & { isLetIn: (peer: Socket) => boolean }
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #failures = new Map<string, ScrapeError>()
  readonly #shutOut = new Set<string>()
  readonly #cuts = new Map<string, number>()
  /** Outer ends of connections that sent last and received before. */
  readonly #asking = new Set<Socket>()
  #isShut = false

  constructor(guard: AddressGuard, options: DoorOptions & { isLetIn: (peer: Socket) => boolean }) {
    this.#guard = guard
    this.#options = options
    this.#server = createServer({ noDelay: true, pauseOnConnect: true }, (socket) => void this.#serve(socket))
    this.#server.maxConnections = CONNECTIONS_MAX
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get proxyServer(): string {
    return `socks5://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get isAsking(): boolean {
    return this.connecting > 0 || this.#asking.size > 0
  }

  failureOf(hostname: string, port: number): ScrapeError | undefined {
    return this.#failures.get(authorityOf({ hostname, port }))
  }

  wasCut(hostname: string, port: number): boolean {
    return this.cutsOf(hostname, port) > 0
  }

  cutsOf(hostname: string, port: number): number {
    return this.#cuts.get(authorityOf({ hostname, port })) ?? 0
  }

  hasShutOut(hostname: string): boolean {
    return this.#shutOut.has(hostname)
  }

  admit(url: string): void {
    this.#shutOut.delete(new URL(url).hostname)
    this.#options.sites?.add(url)
  }

  shut(): void {
    this.#isShut = true
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.shut()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  async #serve(socket: Socket): Promise<void> {
    this.#hold(socket)
    if (this.#isShut || !this.#options.isLetIn(socket)) return void socket.destroy()
    const target = await readSocksTarget(socket)
    if (target === undefined) return undefined
    if (this.#options.sites?.has(target.hostname) === false) {
      if (this.#shutOut.size < FAILURES_MAX) this.#shutOut.add(target.hostname)
      return sendSocksReply(socket, 'refused')
    }
    try {
      this.connecting++
      const outside = await this.#connect(target).finally(() => this.connecting--)
      this.#join(socket, outside, authorityOf(target))
    } catch (error) {
      this.#remember(target, error)
      sendSocksReply(socket, 'unreachable')
    }
  }

  #connect({ hostname, port }: SocksTarget): Promise<Socket> {
    // What no resolver should be asked: Chromium sends none of these, but a hostile page shall not find out.
    if (!/^[\w.:-]{1,253}$/.test(hostname))
      throw new ScrapeError('E_DNS', `not a host name: ${JSON.stringify(hostname)}`)
    const connect = this.#guard(new URL(`http://host:${port}`))
    return new Promise((resolve, reject) => {
      connect({ hostname, port: String(port), protocol: 'http:' }, (error, socket) => {
        if (error !== null) reject(error)
        else resolve(socket)
      })
    })
  }

  #join(inside: Socket, outside: Socket, authority: string): void {
    this.#hold(outside)
    if (this.#isShut || inside.destroyed) {
      inside.destroy()
      outside.destroy()
      return
    }
    outside.setNoDelay(true)
    inside.on('data', () => this.#asking.add(outside))
    outside.on('data', (chunk: Buffer) => {
      this.#asking.delete(outside)
      this.bytes += chunk.length
      if (this.bytes <= this.#options.bytesMax || this.#isShut) return
      this.shut()
      this.#options.onFlood()
    })
    // Told, not passed on: Node's `resetAndDestroy` loses the handle when `destroy` follows it, and the process then never ends.
    outside.on('error', () => {
      this.#noteCut(authority)
      inside.destroy()
    })
    outside.on('close', () => {
      this.#asking.delete(outside)
      inside.destroySoon()
    })
    inside.on('close', () => outside.destroy())
    sendSocksReply(inside, 'ok')
    inside.pipe(outside)
    outside.pipe(inside)
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {}) // its end is what matters, and that is 'close'
    socket.on('close', () => this.#sockets.delete(socket))
  }

  #remember({ hostname, port }: SocksTarget, error: unknown): void {
    const failure = transportError(error, { url: `${hostname}:${port}`, hasResponse: false })
    this.#failures.set(authorityOf({ hostname, port }), failure)
    forgetOldest(this.#failures)
  }

  #noteCut(authority: string): void {
    this.#cuts.set(authority, (this.#cuts.get(authority) ?? 0) + 1)
    forgetOldest(this.#cuts)
  }
}

function forgetOldest(notes: Map<string, unknown>): void {
  if (notes.size > FAILURES_MAX) notes.delete(notes.keys().next().value!)
}

function authorityOf({ hostname, port }: SocksTarget): string {
  return `${hostname.replace(/^\[|\]$/g, '')}:${port}`
}
