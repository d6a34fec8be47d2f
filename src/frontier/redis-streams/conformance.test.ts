/** The `redis:` engine keeps the contract, even while its claims wait for work. */
import { after } from 'node:test'
import { redisForTests } from '../../../test/services/redis.ts'
import { frontierConformance } from '../conformance.ts'
import { openRedisStreamsFrontier } from './engine.ts'

const redis = await redisForTests()
after(() => redis[Symbol.asyncDispose]())

frontierConformance('redis: (streams)', ({ place, ...options }) => {
  return openRedisStreamsFrontier(redis.url, { runId: place, waitMs: 5, ...options })
})
