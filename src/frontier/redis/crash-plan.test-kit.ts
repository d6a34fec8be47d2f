/** Which engine on Redis a crash test covers, and where it is. */
import type { Frontier } from '../contract.ts'

export interface CrashPlan {
  engine: 'redis' | 'streams' | 'amqp'
  url: string
  redisUrl: string
  runId: string
  pages: number
}

export async function openPlanned({ engine, url, redisUrl, runId }: CrashPlan): Promise<Frontier> {
  if (engine === 'redis') return (await import('./engine.ts')).openRedisFrontier(redisUrl, { runId })
  if (engine === 'streams')
    return (await import('../redis-streams/engine.ts')).openRedisStreamsFrontier(redisUrl, { runId })
  return (await import('../rabbit/engine.ts')).openRabbitFrontier(url, { redisUrl, runId })
}
