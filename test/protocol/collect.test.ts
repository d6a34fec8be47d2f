/** The orchestrator's side: stores results, each task once, whatever is delivered again. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { collectResults } from '../../src/protocol/collect.ts'
import { type ResultMessage, resultSchema } from '../../src/protocol/messages.ts'
import { resultTexts } from '../../src/protocol/parts.ts'
import { GroupReader } from '../../src/protocol/redis-group-reader.ts'
import { streamNames } from '../../src/protocol/streams.ts'
import type { Store } from '../../src/store/contract.ts'
import { openSqliteStore } from '../../src/store/sqlite.ts'
import { redisForTests } from '../services/redis.ts'
import { temporaryFolder } from '../sluice.ts'

const PREFIX = 'tenant-a:'
const NAMES = streamNames(PREFIX)
const NEVER = new AbortController().signal

interface Rig extends AsyncDisposable {
  redis: Redis
  url: string
  store: Store
  add(...results: ResultMessage[]): Promise<void>
  collect(more?: { store?: Store; collectorId?: string; leaseMs?: number }): Promise<string[]>
}

async function openRig(): Promise<Rig> {
  const parts = new AsyncDisposableStack()
  const server = parts.use(await redisForTests())
  const folder = parts.use(temporaryFolder())
  const store = parts.use(openSqliteStore(join(folder.path, 'store.db')))
  const redis = parts.adopt(new Redis(server.url), (client) => client.disconnect())
  return {
    redis,
    url: server.url,
    store,
    async add(...results) {
      for (const text of results.flatMap((result) => resultTexts(result, 2_000)))
        await redis.xadd(NAMES.results, '*', 'message', text)
    },
    async collect(more = {}) {
      const answers: string[] = []
      const common = {
        redisUrl: server.url,
        prefix: PREFIX,
        store,
        collectorId: 'c1',
        place: 'redis://here',
        isOnce: true,
      }
      await collectResults({ ...common, ...more, onResult: (_, stored) => answers.push(stored) }, NEVER)
      return answers
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}

function result(id: number, more: Partial<ResultMessage> = {}): ResultMessage {
  const items = more.items ?? [{ n: 1 }, { n: 2 }]
  return {
    ...resultSchema.parse({
      task_id: `7d9f6a1e-6f0b-4c55-9f53-${String(id).padStart(12, '0')}`,
      status: 'success',
      scraper_type: 'things',
      execution_time: 2.5,
      jobs_found: items.length,
      metadata: { worker_id: 'w1', pages_scraped: 3, requests_made: 4 },
      completed_at: '2026-11-15T12:00:00Z',
    }),
    ...more,
    items,
    item_keys: items.map((_, i) => `k${i}`),
  }
}

const keysOf = async (store: Store, id: string) =>
  (await store.readItems(id, { afterSeq: 0, max: 100 })).map(({ key }) => key)

test('makes a task a separate run with its numbers and items; a second result changes nothing', async () => {
  await using rig = await openRig()
  const first = result(1)
  await rig.add(
    first,
    result(1, { attempt: 2, items: [{ n: 1 }, { n: 2 }, { n: 3 }], status: 'failed' }),
    result(2, { status: 'retry' }),
  )
  assert.deepEqual(await rig.collect(), ['stored', 'known', 'passed over'])
  const { record } = (await rig.store.findRun(first.task_id))!
  const { state, exitCode, pages, items, durationMs, startedAt } = record
  assert.deepEqual(
    [state, exitCode, pages.ok, pages.retried, items.new, durationMs, startedAt],
    ['finished', 0, 3, 1, 2, 2500, '2026-11-15T11:59:57.500Z'],
  )
  assert.deepEqual(await keysOf(rig.store, first.task_id), ['k0', 'k1'])
  assert.deepEqual(await rig.collect(), [])
})

test('recognises a result that is delivered again, even in parts and without any item', async () => {
  await using rig = await openRig()
  const large = result(1, { items: Array.from({ length: 5 }, (_, n) => ({ n, text: 'x'.repeat(900) })) })
  const empty = result(2, { items: [] })
  await rig.add(large, empty)
  assert.deepEqual(new Set(await rig.collect()), new Set(['stored']))
  await rig.add(large, empty)
  assert.deepEqual(new Set(await rig.collect()), new Set(['known']))
  assert.equal(await rig.store.countItems(large.task_id), 5)
})

test('stores a part that comes after the last one', async () => {
  await using rig = await openRig()
  const large = result(1, { items: Array.from({ length: 3 }, (_, n) => ({ n, text: 'x'.repeat(1500) })) })
  const texts = resultTexts(large, 2_000)
  for (const text of texts.toReversed()) await rig.redis.xadd(NAMES.results, '*', 'message', text)
  assert.deepEqual(
    await rig.collect(),
    texts.map(() => 'stored'),
  )
  assert.equal(await rig.store.countItems(large.task_id), 3)
})

test('ends a run the way its task ended', async () => {
  await using rig = await openRig()
  const bad = { error: 'status 503', error_code: 'E_SERVER' }
  await rig.add(
    result(1, { status: 'failed', items: [], ...bad }),
    result(2, { status: 'timeout' }),
    result(3, { status: 'partial', ...bad }),
  )
  await rig.collect()
  const runs = (await rig.store.listRuns()).map(({ record }) => [record.state, record.reason, record.exitCode])
  assert.deepEqual(runs.sort(), [
    ['failed', 'E_SERVER: status 503', 1],
    ['failed', 'E_SERVER: status 503', 1],
    ['failed', 'its time was over', 1],
  ])
})

test('combines the parts of a large result into one run, which is open until the last one', async () => {
  await using rig = await openRig()
  const large = result(1, { items: Array.from({ length: 9 }, (_, n) => ({ n, text: 'x'.repeat(900) })) })
  const states: string[] = []
  const watched: Store = {
    ...rig.store,
    async putItems(id, items) {
      states.push((await rig.store.findRun(id))!.record.state)
      return await rig.store.putItems(id, items)
    },
  }
  await rig.add(large)
  const answers = await rig.collect({ store: watched })
  assert.ok(answers.length > 2)
  assert.ok(states.every((state) => state === 'running'))
  assert.equal((await rig.store.findRun(large.task_id))?.record.state, 'finished')
  assert.equal(await rig.store.countItems(large.task_id), 9)
})

test('leaves a result to the next collector if one fails before it acknowledges', async () => {
  await using rig = await openRig()
  await rig.add(result(1))
  const broken: Store = {
    ...rig.store,
    async saveRun() {
      throw new Error('the store is away')
    },
  }
  await assert.rejects(rig.collect({ store: broken }), /the store is away/)
  assert.deepEqual(await rig.collect({ collectorId: 'c2' }), ['stored']) // released: no lease is waited for
  assert.equal((await rig.store.findRun())?.record.state, 'finished')
  assert.equal(await rig.store.countItems(result(1).task_id), 2)
})

test('sets aside unreadable results with the reason', async () => {
  await using rig = await openRig()
  await rig.redis.xadd(NAMES.results, '*', 'message', '{"status": "fine"}')
  await rig.add(result(1))
  assert.deepEqual(await rig.collect(), ['stored'])
  const [[, [, text]]] = (await rig.redis.xrange(NAMES.errors, '-', '+')) as [[string, [string, string]]]
  assert.match(text, /E_MESSAGE_FOREIGN.*task_id/)
})

test('removes from a stream only what every group has acknowledged', async () => {
  await using rig = await openRig()
  await rig.redis.xgroup('CREATE', NAMES.results, 'auditors', '0', 'MKSTREAM')
  await rig.add(result(1), result(2), result(3))
  await rig.collect()
  const reader = (group: string) =>
    new GroupReader({ url: rig.url, names: NAMES, streams: [NAMES.results], group, consumer: 'x', leaseMs: 1000 })
  using ours = reader('collectors')
  using auditors = reader('auditors')
  await ours.trim(0)
  assert.equal(await rig.redis.xlen(NAMES.results), 3) // the auditors have read nothing
  const [first, second] = await auditors.read(2, 0)
  await ours.trim(0)
  assert.equal(await rig.redis.xlen(NAMES.results), 3) // read, but not acknowledged
  await auditors.acknowledge(second!)
  await ours.trim(0)
  assert.equal(await rig.redis.xlen(NAMES.results), 3) // the first is still unacknowledged
  await auditors.acknowledge(first!)
  await ours.trim(3_600_000)
  assert.equal(await rig.redis.xlen(NAMES.results), 3) // too recent
  await ours.trim(0)
  assert.equal(await rig.redis.xlen(NAMES.results), 1) // none of them has read the third
})

test('does not let a consumer that lost an entry renew, release or finish it', async () => {
  await using rig = await openRig()
  await rig.add(result(1))
  const reader = (consumer: string, leaseMs: number) =>
    new GroupReader({ url: rig.url, names: NAMES, streams: [NAMES.results], group: 'g', consumer, leaseMs })
  using slow = reader('slow', 60_000)
  using quick = reader('quick', 0)
  await slow.open()
  const [entry] = await slow.read(1, 0)
  const [taken] = await quick.takeOver(1)
  assert.deepEqual([taken!.id, taken!.deliveries], [entry!.id, 2])
  await slow.release([entry!])
  assert.equal(await slow.finish(entry!, { error: '{}' }), false)
  assert.equal(await rig.redis.xlen(NAMES.errors), 0)
  assert.deepEqual(await quick.renew(), [])
  assert.equal(await quick.finish(taken!, { error: '{}' }), true)
})
