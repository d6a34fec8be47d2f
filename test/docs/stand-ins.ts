/** Stand-ins for the servers and sites that the docs name. */
import { dirname, join } from 'node:path'
import { chromiumForTests } from '../services/chromium.ts'
import { findProgram, type Service } from '../services/find-program.ts'
import { freePort } from '../services/free-port.ts'
import { startCollector } from '../services/otlp.ts'
import { postgresForTests } from '../services/postgres.ts'
import { PROMETHEUS } from '../services/prometheus.ts'
import { rabbitForTests } from '../services/rabbitmq.ts'
import { REDIS, redisForTests } from '../services/redis.ts'
import { socksForTests } from '../services/socks.ts'
import { tinyproxyForTests } from '../services/tinyproxy.ts'
import { startGreenhouseMock } from '../site/boards/greenhouse.ts'
import { startCareersMock } from '../site/boards/jsonld.ts'
import { startLeverMock } from '../site/boards/lever.ts'
import { startLinkedinMock } from '../site/boards/linkedin.ts'
import { podOf, startBooksSite } from '../site/books.ts'
import { passwordOf, startPortal } from '../site/portal.ts'
import { Receiver } from '../site/receiver.ts'
import { ADDED_ENV, ADDED_WORDS } from './added.ts'
import { ROOT } from './shell.ts'

type Served = AsyncDisposable & { url: string }

const LOGIN = { user: 'user', password: 'password' }

/** A name in the docs → a server for the page, started when the page names it. */
const SERVERS: readonly { named: RegExp; start: () => Promise<Served> }[] = [
  { named: /postgres:\/\/[\w:@.]*\bdb[\w.]*\/sluice/g, start: postgresForTests },
  { named: /amqp:\/\/[\w:@.]*\bmq[\w.]*\/?/g, start: rabbitForTests },
  { named: /redis:\/\/[\w:@.]*(?:\bcache[\w.]*|127\.0\.0\.1)(?::6379)?(?:\/0)?/g, start: redisForTests },
  { named: /socks5:\/\/user:password@proxy-1\.example:1080/g, start: () => socksForTests(LOGIN) },
  { named: /http:\/\/proxy-2\.example:3128/g, start: () => tinyproxyForTests() },
  { named: /http:\/\/user:password@dear\.example:8080/g, start: () => tinyproxyForTests(LOGIN) },
  { named: /http:\/\/127\.0\.0\.1:4318/g, start: startCollector },
  { named: /https:\/\/example\.com\/(?=hook|jobs)/g, start: startReceiver },
  { named: /https:\/\/portal\.example\//g, start: () => startPortal({ reports: 2 }) },
  { named: /https:\/\/(?:www\.acme\.example\/careers|careers\.example\.com\/)/g, start: startCareers },
]

/** Boards have no address in the docs: they are named by their scraper. */
const BOARDS: Readonly<Record<string, () => Promise<Served>>> = {
  greenhouse: () => startGreenhouseMock({ jobs: 25 }),
  lever: () => startLeverMock({ jobs: 5 }),
  linkedin: () => startLinkedinMock({ jobs: 5 }),
}

const SITES = /https?:\/\/(?:shop\.example|books\.toscrape\.com|127\.0\.0\.1:4100|localhost:4100)\//g
/** Ports that the page's own processes listen on. */
const PORT = /((?:localhost|127\.0\.0\.1|):|--port |http\.server )(7700|7701|9090|4200|6380)\b/g

/** Programs that come with a service: the docs use their bare names, here they have a path and libraries. */
const PROGRAMS: Readonly<Record<string, Service>> = {
  'redis-cli': REDIS,
  'redis-server': REDIS,
  promtool: PROMETHEUS,
}
const PROGRAM = new RegExp(`^(${Object.keys(PROGRAMS).join('|')})(?= )`, 'gm')

/** The placeholder in the docs → the latest output that looks like it. */
const HEARD: readonly { docs: RegExp; said: RegExp }[] = [
  { docs: /\b\d{8}_\d{6}_x7k2\b/g, said: /\b\d{8}_\d{6}_\w{4}\b/g },
  { docs: /\bslk_…/g, said: /\bslk_[\w-]+/g },
  { docs: /\b3f2a9c01be77\b/g, said: /\b[0-9a-f]{12}\b/g },
  { docs: /(?<=\/v1\/jobs\/)4711\b/g, said: /(?<="id":"?)\d+(?="?,)/g },
]

/** The environment of one page: its servers, its ports, and values from earlier output. */
export class StandIns implements AsyncDisposable {
  readonly #held = new AsyncDisposableStack()
  readonly #urls = new Map<RegExp | string, string>()
  readonly #ports = new Map<string, number>()
  readonly #heard = new Map<RegExp, string>()
  readonly #programs = new Map<string, string>()
  #site: string
  #chrome: string | undefined

  private constructor(site: string) {
    this.#site = site
  }

  /** Starts a server for each name in the text. */
  static async for(text: string, site: string): Promise<StandIns> {
    const standIns = new StandIns(site)
    try {
      await standIns.#start(text)
    } catch (error) {
      await standIns[Symbol.asyncDispose]()
      throw error
    }
    return standIns
  }

  async #start(text: string): Promise<void> {
    for (const { named, start } of SERVERS) {
      if (text.search(named) !== -1) this.#urls.set(named, this.#held.use(await start()).url)
    }
    for (const [name, start] of Object.entries(BOARDS)) {
      if (text.includes(name)) this.#urls.set(name, this.#held.use(await start()).url)
    }
    for (const port of ['7700', ...[...text.matchAll(PORT)].map(([, , port]) => port!)]) {
      if (!this.#ports.has(port)) this.#ports.set(port, await freePort())
    }
    for (const name of Object.keys(PROGRAMS).filter((program) => text.includes(program))) {
      const { path, env } = await findProgram(PROGRAMS[name]!)
      this.#programs.set(name, `env LD_LIBRARY_PATH='${env['LD_LIBRARY_PATH'] ?? ''}' ${join(dirname(path), name)}`)
    }
    if (text.includes('sluice history')) this.#site = this.#held.use(await startShopWithSale()).url
    if (text.includes('portal.example')) this.#chrome = await chromiumForTests()
  }

  get env(): NodeJS.ProcessEnv {
    const allowed = [this.#site, ...this.#urls.values()].map((url) => new URL(url).host)
    return ADDED_ENV({ allowed, chrome: this.#chrome })
  }

  inPlaceOf(text: string): string {
    let changed = text.replaceAll(SITES, this.#site)
    for (const { named } of SERVERS) changed = changed.replaceAll(named, (name) => this.#urls.get(named) ?? name)
    changed = changed
      .replaceAll('localhost:15672/api/queues/%2F/', () => this.#managedQueues())
      .replaceAll('https://sluice.internal/', 'http://127.0.0.1:7700/')
      .replaceAll(PORT, (_, before: string, port: string) => {
        const at = this.#ports.get(port) ?? port
        return before.endsWith(':') ? `127.0.0.1:${at}` : `${before}${at}`
      })
      .replaceAll(PROGRAM, (name) => this.#programs.get(name) ?? name)
      .replaceAll('"alice":"…","bob":"…"', `"alice":"${passwordOf('alice')}","bob":"${passwordOf('bob')}"`)
      .replaceAll('--port 6379', () => `--port ${new URL(this.#redis).port}`)
      // Commands for the project folder are run in the page's folder.
      .replaceAll(/(?<=^| )(?:\.deps\/bin\/)?(node|bin\/sluice)(?= )/gm, (_, program) => program.replace('bin/', ''))
      .replaceAll(/(?<=\s)(?:docs\/examples|test\/protocol|bench|deploy|scripts)\//g, (path) => join(ROOT, path))
    for (const { docs } of HEARD) changed = changed.replaceAll(docs, (name) => this.#heard.get(docs) ?? name)
    const places = this.#places()
    for (const { after, add } of ADDED_WORDS)
      changed = changed.replaceAll(after, (all, name) => all + add(places, name))
    return changed
  }

  #places() {
    const boards = (name: string) => this.#urls.get(name) ?? ''
    return { site: this.#site, port: this.#ports.get('7700') ?? 0, redis: this.#redis, boards }
  }

  /** Uses the broker's management API, which is at its port plus 10,000. */
  #managedQueues(): string {
    const { port, pathname } = new URL(this.#urlOf(rabbitForTests) ?? 'amqp://127.0.0.1:5672/%2F')
    return `127.0.0.1:${Number(port) + 10_000}/api/queues${pathname}/`
  }

  #urlOf(server: () => Promise<Served>): string | undefined {
    return this.#urls.get(SERVERS.find(({ start }) => start === server)!.named)
  }

  get #redis(): string {
    return this.#urlOf(redisForTests) ?? 'redis://127.0.0.1:6379/0'
  }

  hear(output: string): void {
    for (const { docs, said } of HEARD) {
      const last = output.match(said)?.at(-1)
      if (last !== undefined) this.#heard.set(docs, last)
    }
  }

  [Symbol.asyncDispose]() {
    return this.#held.disposeAsync()
  }
}

/** One book on its second page gets cheaper from the second request for that page on. */
async function startShopWithSale(): Promise<Served> {
  let asked = 0
  const edit = (path: string, html: string) =>
    path.endsWith('/page-2.html') && ++asked > 1 ? html.replace(podOf(21).price, '£39.90') : html
  return await startBooksSite({ products: 100, edit })
}

async function startCareers(): Promise<Served> {
  const mock = await startCareersMock({ jobs: 5 })
  return { ...mock, url: `${mock.url}careers/` }
}

async function startReceiver(): Promise<Served> {
  const receiver = await Receiver.start()
  return { url: new URL('/', receiver.url).href, [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose]() }
}
