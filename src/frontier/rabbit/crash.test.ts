/** kill -9 at any moment, dozens of times, between the ledger and the broker. */
import { test } from 'node:test'
import { rabbitForTests } from '../../../test/services/rabbitmq.ts'
import { redisForTests } from '../../../test/services/redis.ts'
import { crashCheck } from '../redis/crash-check.test-kit.ts'

test('amqp: loses and duplicates nothing when workers are killed at any moment', async (t) => {
  await using rabbit = await rabbitForTests()
  await using redis = await redisForTests()
  await crashCheck(t, { engine: 'amqp', url: rabbit.url, redisUrl: redis.url, runId: 'crash', pages: 15_000 }, 12)
})
