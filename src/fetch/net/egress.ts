/**
 * The only way out of our browsers: a proxy for each visit, on a loopback port, which Chromium uses as its SOCKS5 proxy.
 *
 *   page, its frames, scripts, workers, WebSockets ──▶ egress proxy ──▶ address guard (or the user's proxy) ──▶ the web
 *
 * This way every connection is checked where it is made, no matter what opened it, and each visit's traffic is counted, limited
 * and cut off separately. A proxy per visit costs 0.3 ms and needs no request interception; browser contexts do not share
 * connections anyway.
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
/** Unreachable hosts are remembered for error messages; a hostile page can name many. */
const FAILURES_MAX = 100

interface DoorOptions {
  /** Leads through the proxy of the visit's identity. If omitted, the run's own guard is used. */
  guard?: AddressGuard
  /** The sites that may be contacted. If omitted, all of them. */
  sites?: Sites
  bytesMax: number
  /** Called when the visit has received more than `bytesMax`; the proxy has been shut by then. */
  onFlood: () => void
}

export interface EgressProxy extends AsyncDisposable {
  /** For `createBrowserContext`. */
  readonly proxyServer: string
  /** Bytes received from outside. */
  readonly bytes: number
  /** Connections that are still being established. */
  readonly connecting: number
  /** A connection is waiting for its answer; idle keep-alive connections do not count. */
  readonly isAsking: boolean
  /** Why `hostname:port` could not be reached; undefined if it was reached, or not tried. */
  failureOf(hostname: string, port: number): ScrapeError | undefined
  /** A connection to it was reset: a body that ends with its connection then looks complete, but is not. */
  wasCut(hostname: string, port: number): boolean
  /** How often that has happened; for proxies that outlive a visit. */
  cutsOf(hostname: string, port: number): number
  /** Refused because it is not one of the visit's sites, as opposed to unreachable. */
  hasShutOut(hostname: string): boolean
  /** Adds the site of `url` to the visit's sites. */
  admit(url: string): void
  /** Stops all traffic at once. */
  shut(): void
}

interface Egress {
  open(options: DoorOptions): Promise<EgressProxy>
}

export function openEgress(options: AddressOptions & { proxy?: string }): Egress {
  const guard = options.proxy === undefined ? openAddressGuard(options) : openProxyGuard(options, options.proxy)
  // Without a user proxy, the egress proxy leads nowhere a local process could not go by itself. With one, other local users
  // could use that proxy through it. The peer check takes milliseconds per connection on a machine with many of them: used
  // everywhere, it cost a quarter of all pages.
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

/** An egress proxy that connects through `guard`, for processes of our own user only. */
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
  /** The outer ends of connections on which we sent last, waiting for an answer. */
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
    // Names that no resolver should see: Chromium sends none of these, but a hostile page should not get to try.
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
    // Recorded, not passed on: Node's `resetAndDestroy` loses the handle if `destroy` follows it, and the process never exits.
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
    socket.on('error', () => {}) // 'close' follows, and is handled
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
