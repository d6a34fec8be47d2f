/** The topology of docker-compose.yml, profiles `full` and `obs`, as processes on loopback that end with this one. */
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../deploy/checks.ts'
import { chromiumForTests } from '../../test/services/chromium.ts'
import { ServiceMissing } from '../../test/services/find-program.ts'
import { Compose } from './compose.ts'
import { type Running, startOurs } from './processes.ts'
import { type Prometheus, startPrometheus } from './prometheus.ts'
import { linkTo, makeSecrets, SERVERS, type Server } from './servers.ts'

export type Queue = 'amqp' | 'redis' | 'postgres'

export interface StackOptions {
  queue: Queue
  /** Initial number of processes of the service `worker`. */
  workers: number
  /** `127.0.0.1:PORT` of the scraped sites: a worker only fetches private addresses that are allowed explicitly. */
  sites: readonly string[]
  say(line: string): void
}

/** Services that are not available here: Debian has no Grafana. */
const NOT_HERE = new Set(['grafana'])

export class Stack implements AsyncDisposable {
  readonly services = new Map<string, Running[]>()
  readonly #options: StackOptions
  readonly #folder = join(ROOT, '.deps/run/stack', String(process.pid))
  readonly #compose: Compose
  readonly #held = new AsyncDisposableStack()
  #made = 0
  #prometheus!: Prometheus

  constructor(options: StackOptions) {
    this.#options = options
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    this.#held.defer(() => rmSync(this.#folder, { recursive: true, force: true }))
    this.#compose = new Compose(this.#folder, { QUEUE: options.queue })
  }

  get prometheus(): Prometheus {
    return this.#prometheus
  }

  get apiUrl(): string {
    return `http://127.0.0.1:${this.services.get('api')![0]!.port}`
  }

  get apiKey(): string {
    return readFileSync(join(this.#compose.volume('secrets-api'), 'key'), 'utf8')
  }

  get filesFolder(): string {
    return this.#compose.volume('files')
  }

  /** What workers and servers connect to: name and URL, with its password. */
  links(): [name: string, url: string][] {
    const folder = this.#compose.volume('secrets-links')
    return readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')])
  }

  /** When this returns, everything is healthy. As in compose, independent services start concurrently. */
  async start(): Promise<void> {
    const names = this.#compose.named(['full', 'obs'])
    await makeSecrets(this.#compose)
    const servers = await this.#startServers(names.filter((name) => SERVERS[name] !== undefined))
    linkTo(servers, this.#compose)
    const ours = names.filter((name) => this.#compose.isOurs(name))
    const unknown = names.filter((name) => !servers.has(name) && !ours.includes(name) && name !== 'prometheus' && !NOT_HERE.has(name)) // biome-ignore format: one line reads better
    if (unknown.length > 0) throw new Error(`docker-compose.yml has services this does not know: ${unknown.join(', ')}`)
    for (const name of NOT_HERE)
      this.#options.say(`${name}: left out, it cannot be had here; its dashboards are checked by the tests`)
    await settled(ours.map((name) => this.#startMany(name, name === 'worker' ? this.#options.workers : 1)))
    const startedAtMs = performance.now()
    this.#prometheus = this.#held.use(await startPrometheus(this.#compose))
    this.#note('prometheus', this.#prometheus, performance.now() - startedAtMs)
    this.#announce()
  }

  /**
   * Like `docker compose up --scale NAME=COUNT`: new ones start, the youngest are asked to stop, and drain. Returns the output of
   * these.
   */
  async scale(name: string, count: number): Promise<string[]> {
    const running = this.services.get(name) ?? []
    await this.#startMany(name, Math.max(0, count - running.length))
    const surplus = running.splice(count)
    await settled(surplus.map((one) => one[Symbol.asyncDispose]()))
    this.#announce()
    return surplus.map(({ log }) => log)
  }

  count(name: string): number {
    return this.services.get(name)?.length ?? 0
  }

  /** Processes that ended without being asked to. */
  fallen(): Running[] {
    return [...this.services.values()].flat().filter(({ pid }) => pid === undefined)
  }

  ours(): Running[] {
    return [...this.services].filter(([name]) => this.#compose.isOurs(name)).flatMap(([, all]) => all)
  }

  async #startServers(names: readonly string[]): Promise<Map<string, Server>> {
    const servers = new Map<string, Server>()
    await settled(
      names.map(async (name) => {
        const startedAtMs = performance.now()
        const server = this.#held.use(await SERVERS[name]!(this.#compose))
        servers.set(name, server)
        this.#note(name, server, performance.now() - startedAtMs)
      }),
    )
    return servers
  }

  #note(name: string, server: Server, readyMs: number): void {
    const running = { name, port: server.port, readyMs, get pid() { return server.pid }, get log() { return server.log }, [Symbol.asyncDispose]: async () => {} } // biome-ignore format: held elsewhere
    this.services.set(name, [running])
    this.#options.say(`${name}: ready after ${Math.round(readyMs)} ms, port ${server.port}`)
  }

  async #startMany(name: string, count: number): Promise<void> {
    const more = await this.#substitutesFor(name)
    if (more === undefined) return
    const all = this.services.get(name) ?? []
    this.services.set(name, all)
    await settled(
      Array.from({ length: count }, async () => {
        const running = await startOurs(name, this.#compose.place(name, ++this.#made), more)
        this.#held.defer(() => running[Symbol.asyncDispose]())
        all.push(running)
        this.#options.say(`${name}: ready after ${Math.round(running.readyMs)} ms, port ${running.port}`)
      }),
    )
  }

  /** The image has its own Chromium; here the machine's is used, or the worker is skipped. */
  async #substitutesFor(name: string): Promise<NodeJS.ProcessEnv | undefined> {
    const allowed = { SLUICE_ALLOW_ADDRESS: this.#options.sites.join(',') }
    if (name !== 'browser-worker') return allowed
    try {
      return { ...allowed, SLUICE_CHROME: await chromiumForTests() }
    } catch (error) {
      if (!(error instanceof ServiceMissing)) throw error
      this.#options.say(`${name}: left out, there is no Chromium here`)
      return undefined
    }
  }

  #announce(): void {
    this.#prometheus.announce(new Map([...this.services].map(([name, all]) => [name, all.map(({ port }) => port)])))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await settled(this.ours().map((one) => one[Symbol.asyncDispose]()))
    await this.#held.disposeAsync()
  }
}

/** Waits for all of them, so that nothing is still starting during cleanup; then throws the first error. */
async function settled(all: readonly PromiseLike<unknown>[]): Promise<void> {
  const results = await Promise.allSettled(all)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
