/** The `amqp:` engine keeps the contract. Here its claims choose among all tasks in the broker; for the limits see ADR 0009. */
import { after } from 'node:test'
import { rabbitForTests } from '../../../test/services/rabbitmq.ts'
import { redisForTests } from '../../../test/services/redis.ts'
import { frontierConformance } from '../conformance.ts'
import { openRabbitFrontier } from './engine.ts'

const [rabbit, redis] = await Promise.all([rabbitForTests(), redisForTests()])
after(async () => {
  await rabbit[Symbol.asyncDispose]()
  await redis[Symbol.asyncDispose]()
})

/** Order is exact only among the messages a worker sees: so here it sees all, and waits for all. */
const EXACT = { prefetch: 5000, beltMax: 5000, waitMs: 1000, chooseMs: 400 }

frontierConformance('amqp:', ({ place, ...options }) => {
  return openRabbitFrontier(rabbit.url, { redisUrl: redis.url, runId: place, ...EXACT, ...options })
})
