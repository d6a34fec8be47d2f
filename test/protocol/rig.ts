/** Helpers for tests of the task protocol: their own Redis, scraper and site, and workers in this process or as real ones. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { type InstanceSpec, runInstance } from '../../src/app/protocol/open-instance.ts'
import { resolveConfig } from '../../src/config/config.ts'
import type { OptionName } from '../../src/config/option-table.ts'
import type { ErrorMessage, HealthMessage, ResultMessage, TaskMessage } from '../../src/protocol/messages.ts'
import { TaskProducer } from '../../src/protocol/redis-producer.ts'
import { streamNames } from '../../src/protocol/streams.ts'
import { until } from '../fleet.ts'
import { redisForTests, type TestRedis } from '../services/redis.ts'
import { type SluiceProcess, type SluiceResult, sluice, startSluice, temporaryFolder } from '../sluice.ts'

/** Lists `/list?n=3`, then reads `/thing/1` …; `waits` and `breaks` are passed to the site with each thing. */
const SCRAPER = `import { defineScraper } from 'sluice'
import * as z from 'zod'

export default defineScraper({
  name: 'things',
  args: z.object({ base: z.url(), n: z.coerce.number().default(3), how: z.string().default('') }),
  item: z.object({ id: z.string(), text: z.string() }),
  key: 'id',
  routes: { list: { match: '/list' }, thing: { match: '/thing/:id' } },
  start: ({ args, enqueue }) => enqueue('list', new URL('/list?n=' + args.n + '&how=' + args.how, args.base)),
  handlers: {
    list: async ({ enqueue }) => void (await enqueue.links('thing', 'a')),
    thing: async ({ $, params, emit }) => {
      const text = $.text('h1')
      if (text === 'poison') process.kill(process.pid, 'SIGKILL')
      if (text === 'deadly') process.exit(7)
      await emit({ id: params.id, text })
    },
  },
  limits: { robots: 'ignore', retries: 0, perHost: { rps: 0 } },
})
`

export interface ThingSite extends AsyncDisposable {
  readonly url: string
  /** Requested paths, in order. */
  readonly asked: string[]
  /** Answers instead of the site; false leaves the answer to it. */
  answer: (path: string, response: ServerResponse, request: IncomingMessage) => boolean
}

/** `/thing/ID?how=WORD` is a page about WORD. */
export async function startThingSite(): Promise<ThingSite> {
  const asked: string[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url!, 'http://site')
    asked.push(url.pathname)
    if (site.answer(url.pathname, response, request)) return
    const how = url.searchParams.get('how') ?? ''
    response.setHeader('content-type', 'text/html')
    if (url.pathname === '/list') {
      const ids = Array.from({ length: Number(url.searchParams.get('n')) }, (_, i) => i + 1)
      response.end(ids.map((id) => `<a href="/thing/${id}?how=${how}">${id}</a>`).join(''))
    } else response.end(`<h1>${how || 'a thing'}</h1>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const site: ThingSite = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    asked,
    answer: () => false,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return site
}

export interface TestInstance {
  /** Its log lines. */
  readonly log: string[]
  /** Tasks it answered, by status. */
  readonly ends: string[]
  readonly ended: Promise<'drain' | 'stop'>
  stop(): Promise<void>
}

export class ProtocolRig implements AsyncDisposable {
  readonly server: TestRedis
  readonly redis: Redis
  readonly site: ThingSite
  readonly folder = temporaryFolder()
  readonly names = streamNames()
  readonly #workers: SluiceProcess[] = []
  readonly #instances: TestInstance[] = []
  readonly #producer: TaskProducer

  static async open(server?: TestRedis): Promise<ProtocolRig> {
    return new ProtocolRig(server ?? (await redisForTests()), await startThingSite())
  }

  private constructor(server: TestRedis, site: ThingSite) {
    this.server = server
    this.site = site
    this.redis = new Redis(server.url, { retryStrategy: () => 50 })
    this.redis.on('error', () => {}) // tests take the server down
    this.#producer = new TaskProducer({ url: server.url, names: this.names })
    mkdirSync(join(this.folder.path, 'scrapers'))
    this.scraper('things')
    writeFileSync(join(this.folder.path, 'package.json'), '{"type": "module"}')
  }

  /** Creates another scraper like `things`. */
  scraper(name: string, change: (things: string) => string = (things) => things): void {
    writeFileSync(this.scraperFile(name), change(SCRAPER).replace("name: 'things'", `name: '${name}'`))
  }

  scraperFile(name: string): string {
    return join(this.folder.path, 'scrapers', `${name}.ts`)
  }

  #options() {
    return { env: { SLUICE_REDIS: this.server.url }, cwd: this.folder.path }
  }

  run(...args: string[]): Promise<SluiceResult> {
    return sluice(args, this.#options())
  }

  /**
   * An instance in this process, at a tenth of the cost of a real one: for tests that do not kill it. Stopped at the end of the
   * test.
   */
  async instance(
    flags: Partial<Record<OptionName, unknown>> = {},
    more: Partial<InstanceSpec> = {},
  ): Promise<TestInstance> {
    const given = { allowPrivate: true, lease: '2s', drainTimeout: '0', out: join(this.folder.path, 'runs'), ...flags }
    const spec: InstanceSpec = {
      scraper: this.scraperFile('things'),
      config: await resolveConfig({ flags: given, cwd: this.folder.path }),
      redisUrl: this.server.url,
      prefix: '',
      workerId: `here_${this.#instances.length}`,
      tasksMax: 50,
      healthMs: 300,
      retryMs: 100,
      ...more,
    }
    const stop = new AbortController()
    const log: string[] = []
    const ends: string[] = []
    const listeners = {
      onLog: (_: string, message: string) => void log.push(message),
      onTask: ({ status }: { status: string }) => void ends.push(status),
    }
    const ended = runInstance(spec, listeners, stop.signal)
    const instance = {
      log,
      ends,
      ended,
      stop: async () => {
        stop.abort()
        await this.redis.xadd(this.names.tasks('things')[1], '*', 'message', 'whoever waits for one looks up')
        await ended
      },
    }
    this.#instances.push(instance)
    ended.catch(() => {}) // reported by stop()
    return instance
  }

  /** Killed at the end of the test if it is still running. */
  worker(...more: string[]): SluiceProcess {
    const flags = ['--allow-private', '--lease', '2s', '--retry-delay', '100ms', '--health', '300ms']
    const worker = startSluice(['worker', '--type', 'things', ...flags, ...more], this.#options())
    this.#workers.push(worker)
    return worker
  }

  /** Adds a task to the stream, as any producer could. */
  async put(params: Partial<TaskMessage['params']>, more: Partial<TaskMessage> = {}): Promise<TaskMessage> {
    const { args = {}, ...rest } = params
    const task = TaskProducer.taskOf({
      scraper_type: 'things',
      params: { ...rest, args: { base: this.site.url, ...args } },
      ...more,
    })
    await this.#producer.submit(task)
    return task
  }

  command(command: Parameters<TaskProducer['command']>[0]): Promise<void> {
    return this.#producer.command(command)
  }

  /** Waits until there are this many results, and returns them by task. */
  async resultsWhen(count: number): Promise<Map<string, ResultMessage>> {
    await until(`${count} results`, async () => (await this.redis.xlen(this.names.results)) >= count)
    const results = await this.results()
    assert.equal(results.length, count)
    return new Map(results.map((result) => [result.task_id, result]))
  }

  /** Number of claimed tasks. */
  async held(): Promise<number> {
    const pending = (await this.redis.xpending(this.names.tasks('things')[1], 'workers').catch(() => [0])) as [number]
    return pending[0]
  }

  results(): Promise<ResultMessage[]> {
    return this.#read(this.names.results)
  }

  errors(): Promise<ErrorMessage[]> {
    return this.#read(this.names.errors)
  }

  health(): Promise<HealthMessage[]> {
    return this.#read(this.names.health)
  }

  /** Everything that workers ever wrote or logged, except for the tasks themselves. */
  async said(): Promise<string> {
    const streams = [this.names.results, this.names.errors, this.names.health]
    const written = await Promise.all(streams.map((stream) => this.redis.xrange(stream, '-', '+')))
    return JSON.stringify([written, this.#instances.map(({ log }) => log)])
  }

  async #read<T>(stream: string): Promise<T[]> {
    const entries = await this.redis.xrange(stream, '-', '+')
    return entries.map(([, [, message]]) => JSON.parse(message!))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child, result } of this.#workers) {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await result
    }
    await Promise.all(this.#instances.map((instance) => instance.stop()))
    this.redis.disconnect()
    this.#producer[Symbol.dispose]()
    await this.site[Symbol.asyncDispose]()
    await this.server[Symbol.asyncDispose]()
    this.folder[Symbol.dispose]()
  }
}
