/** kill -9 at any moment, dozens of times, with the ledger and the queues in Redis. */
import { test } from 'node:test'
import { redisForTests } from '../../../test/services/redis.ts'
import { crashCheck } from './crash-check.test-kit.ts'

test('redis: loses and doubles nothing when workers are killed at any moment', async (t) => {
  await using redis = await redisForTests()
  await crashCheck(t, { engine: 'redis', url: '', redisUrl: redis.url, runId: 'crash', pages: 25_000 }, 15)
})
