/** The URL work queue, and the view that shows it. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { postgresForTests } from '../../../test/services/postgres.ts'
import { Database } from '../../drivers/postgres/database.ts'
import { openUrlQueue } from './url-queue.ts'

const database = await postgresForTests()
after(() => database[Symbol.asyncDispose]())

const urls = (count: number) => Array.from({ length: count }, (_, n) => `https://a.example/${n}`)

test('adds URLs once, gives them out in batches, and counts the results', async () => {
  let nowMs = Date.now()
  await using queue = await openUrlQueue(database.url, { runId: 'five', now: () => nowMs })
  assert.deepEqual(await queue.enqueueUrls([...urls(5), 'https://A.example:443/0#top']), { added: 5, seen: 1 })
  const [first, second, ...rest] = await queue.claimBatch('w', 3)
  assert.equal(rest.length, 1)
  assert.equal(await queue.completeUrl(first!), true)
  assert.equal(await queue.completeUrl(first!), false)
  assert.equal(await queue.completeUrl(second!, { error: new Error('no answer') }), true)
  assert.deepEqual(await queue.getQueueStats(), { pending: 3, claimed: 1, completed: 1, failed: 0, remaining: 4 })
  nowMs += 300_000
  assert.deepEqual(await queue.releaseExpiredLeases(), { returned: 1, dead: 0 })
  assert.deepEqual(await queue.getQueueStats(), { pending: 4, claimed: 0, completed: 1, failed: 0, remaining: 4 })
})

test('gives up on a URL after its retries, or when its lease expires as often', async () => {
  let nowMs = Date.now()
  await using queue = await openUrlQueue(database.url, { runId: 'limit', retries: 2, now: () => nowMs })
  await queue.enqueueUrls(urls(1))
  for (let attempt = 1; attempt <= 3; attempt++) {
    const [lease] = await queue.claimBatch('w', 10)
    assert.equal(lease?.attempt, attempt)
    await queue.completeUrl(lease, { error: 'refused' })
    nowMs += 60_000
  }
  assert.equal((await queue.getQueueStats()).failed, 1)
  await queue.enqueueUrls(['https://a.example/lost'])
  for (let loss = 0; loss < 3; loss++) {
    assert.equal((await queue.claimBatch(`w${loss}`, 10, 1000)).length, 1)
    nowMs += 1000
    assert.deepEqual(await queue.releaseExpiredLeases(), loss < 2 ? { returned: 1, dead: 0 } : { returned: 0, dead: 1 })
  }
  assert.deepEqual(await queue.getQueueStats(), { pending: 0, claimed: 0, completed: 0, failed: 2, remaining: 0 })
})

test('shows every task with its state in the view url_work_queue', async () => {
  await using queue = await openUrlQueue(database.url, { runId: 'view' })
  await queue.enqueueUrls(urls(4))
  const [done, retried] = await queue.claimBatch('w1', 2)
  await queue.completeUrl(done!)
  await queue.completeUrl(retried!, { error: new Error('x') })
  const db = new Database(database.url)
  await queue.claimBatch('w2', 1)
  const rows = await db.rows<string[]>(
    `select url, run_id, status, worker_id, retry_count, max_retries, length(url_hash), claimed_at is not null, completed_at is not null,
      created_at is not null from sluice.url_work_queue where run_id = 'view' order by url`,
    [],
  )
  await db.close()
  const row = (n: number, ...rest: (string | null)[]) => [`https://a.example/${n}`, 'view', ...rest]
  assert.deepEqual(rows, [
    row(0, 'completed', 'w1', '0', '3', '64', 't', 't', 't'),
    row(1, 'pending', null, '1', '3', '64', 'f', 'f', 't'),
    row(2, 'claimed', 'w2', '0', '3', '64', 't', 'f', 't'),
    row(3, 'pending', null, '0', '3', '64', 'f', 'f', 't'),
  ])
})
