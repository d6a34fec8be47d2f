/** The ledger in Redis with its own ready queues keeps the contract. */
import { after } from 'node:test'
import { redisForTests } from '../../../test/services/redis.ts'
import { frontierConformance } from '../conformance.ts'
import { openRedisFrontier } from './engine.ts'

const redis = await redisForTests()
after(() => redis[Symbol.asyncDispose]())

frontierConformance('redis:', ({ place, ...options }) => openRedisFrontier(redis.url, { runId: place, ...options }))
