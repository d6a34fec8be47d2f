/** A run on RabbitMQ and Redis as a user follows it: while the broker is up, and while it is down. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { placesIn, type RunStats, statsOf, until } from '../../test/fleet.ts'
import { type RabbitServer, startRabbit } from '../../test/services/rabbitmq.ts'
import { redisForTests, type TestRedis } from '../../test/services/redis.ts'
import { type BooksSite, startBooksSite } from '../../test/site/books.ts'
import { sluice, startSluice, temporaryFolder } from '../../test/sluice.ts'
import type { RunPlaces } from '../runs/run-view.ts'

const PRODUCTS = 70
const ITEMS = PRODUCTS - 2 // one is missing, one is broken
const SLOW_PRODUCTS = 1200 // at least ten seconds: rates are counted over five

const folder = temporaryFolder()
const parts = new AsyncDisposableStack()
let broker: RabbitServer
let site: BooksSite
let slow: BooksSite
let env: NodeJS.ProcessEnv
let places: RunPlaces

before(async () => {
  broker = parts.use(await startRabbit())
  const redis: TestRedis = parts.use(await redisForTests())
  site = parts.use(await startBooksSite({ products: PRODUCTS, misbehave: true }))
  slow = parts.use(await startBooksSite({ products: SLOW_PRODUCTS, delayMs: 25 }))
  env = { SLUICE_FRONTIER: broker.url, SLUICE_REDIS: redis.url, SLUICE_ALLOW_PRIVATE: 'yes' }
  places = { ...placesIn(folder.path, broker.url), redis: redis.url }
})

after(async () => {
  await parts.disposeAsync()
  folder[Symbol.dispose]()
})

async function text(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await sluice(args, { env, cwd: folder.path })
  assert.equal(code, 0, stderr)
  return stdout
}

const json = async (...args: string[]) => JSON.parse(await text(...args, '--json'))
const START = ['start', 'books', '--mode', 'distributed', '--arg', 'details=true', '--rps', '0', '--fail-at', '50%']
const start = async (on: BooksSite): Promise<string> => (await json(...START, '--site', on.url)).run_id
const worker = (id: string, ...more: string[]) =>
  startSluice(['worker', '--scraper', 'books', '--run-id', id, ...more], { env, cwd: folder.path })
const messagesIn = ({ broker: queues }: Pick<RunStats, 'broker'>) =>
  queues?.some(({ publishRate, ackRate }) => publishRate > 10 && ackRate > 10) ?? false

test("stats and watch show the broker's queues, while there are any", async () => {
  const id = await start(slow)
  const watch = startSluice(['watch', id, '--json'], { env, cwd: folder.path })
  const plain = startSluice(['watch', id], { env, cwd: folder.path })
  const workers = [1, 2].map(() => worker(id, '--concurrency', '2'))
  await until('a rate is shown', async () => messagesIn(await statsOf(id, places)))
  const ends = await Promise.all(workers.map(({ result }) => result))
  for (const { code, stdout, stderr } of ends) {
    assert.equal(code, 0, stderr)
    assert.match(stdout, new RegExp(`the run {6}finished, 0 left; all its numbers: .*stats ${id}\n$`))
  }
  const looks = (await watch.result).stdout.trimEnd().split('\n').map((line) => JSON.parse(line)) // biome-ignore format: one chain
  assert.ok(looks.some(messagesIn), 'the watch saw them too')
  assert.match((await plain.result).stdout, new RegExp(`^  url_queue_ttl.${id}: [\\d,]+ ready, `, 'm'))
  const numbers = await json('stats', id)
  assert.deepEqual([numbers.state, numbers.items], ['finished', SLOW_PRODUCTS])
  assert.equal(numbers.broker, null) // the queues are deleted
})

test('start warns that a store in a file belongs to this machine only', async () => {
  const { stdout, stderr } = await sluice([...START, '--site', site.url], { env, cwd: folder.path })
  assert.match(stdout, /now start workers, as many as you like, on this machine:/)
  assert.match(
    stderr,
    /note: runs and items are kept in \/.*\/\.sluice\/sluice\.db on this machine: .*--store postgres:/,
  )
  const elsewhere = join(folder.path, 'elsewhere')
  const { stderr: problem } = await sluice(['stats', 'books', '--store', `sqlite:${elsewhere}`], {
    env,
    cwd: folder.path,
  })
  assert.match(problem, /no run "books" under runs, nor in sqlite:.*elsewhere/)
  assert.match(problem, /another --out or --store: a file is seen from its own machine and folder only/)
})

test('says that filling a run was interrupted, and the command it prints resumes it', async () => {
  const filling = startSluice([...START, '--urls-file', '-'], { env, cwd: folder.path, keepsInputOpen: true })
  const page = new URL('catalogue/page-1.html', site.url).href
  filling.child.stdin!.write(`${page}\n`)
  const newest = async () => (await json('ps', '--limit', '1')).runs[0]
  await until('it is begun', async () => /^being filled, or/.test((await newest())?.why))
  filling.child.kill('SIGKILL')
  await filling.result
  const { id } = await newest()
  const sheet = await text('stats', id)
  assert.match(sheet, /running: being filled, or its filling was broken off\n/)
  const line = /if interrupted: \S+ (produce --scraper books --run-id \S+) with the same --sitemap, /.exec(sheet)
  assert.equal((await json(...line![1]!.split(' '), '--url', page)).run_id, id)
  const { filling: left, pending } = await json('stats', id)
  assert.deepEqual([left, pending], [null, 1])
  await text('cancel', id)
})

test('delivers retried dead letters to a waiting worker', async () => {
  const id = await start(site)
  const waiting = worker(id, '--forever', '--quiet')
  await until('it is done', async () => (await statsOf(id, places)).completed >= ITEMS)
  await until('both are dead', async () => (await statsOf(id, places)).dead === 2)
  const missing = () => site.stats().byStatus.get(404) ?? 0
  const before = missing()
  assert.equal((await json('dlq', 'retry', id, '--class', 'not-found')).retried, 1)
  await until('it was fetched once more', () => missing() > before)
  await until('it is dead again', async () => (await statsOf(id, places)).dead === 2)
  waiting.child.kill('SIGTERM')
  assert.equal((await waiting.result).code, 4)
})

test('can read, pause and cancel a run while the broker is down', async () => {
  const id = (await json('stats', 'books')).id
  await broker.stop('SIGTERM')
  try {
    assert.equal((await text('export', id)).trimEnd().split('\n').length, ITEMS)
    assert.match(await text('logs', id), /worker \S+ stopped/)
    assert.equal((await json('dlq', 'groups', id)).groups.length, 2)
    const numbers = await json('stats', id)
    assert.deepEqual([numbers.items, numbers.dead, numbers.broker], [ITEMS, 2, null])
    const { runs } = await json('ps', '--all')
    assert.ok(runs.length === 4 && runs.every(({ state }: { state: string }) => state !== 'unreadable'), JSON.stringify(runs)) // biome-ignore format: one line
    assert.equal((await json('dlq', 'retry', id)).retried, 2)
    assert.equal((await json('pause', id)).isChanged, true)
    assert.equal((await json('resume', id)).isChanged, true)
  } finally {
    await broker.start()
  }
  const { code, stderr } = await worker(id, '--quiet').result
  assert.equal(code, 0, stderr)
  const { state, dead } = await json('stats', id)
  assert.deepEqual([state, dead], ['finished', 2])
})
