/** The blocking read in which a worker without work waits. An entry wakes one of the waiting workers, whichever came first. */
import type { Link } from '../redis/link.ts'
import { GROUP } from '../redis/lua.ts'

/** All waiting workers are one consumer: nothing is pending for it, because an entry is only a hint to claim again. */
const CONSUMER = 'waiting'

/** Whether it was woken, the time is over, or the wait itself failed. */
type Woken = 'woken' | 'late' | 'failed'

export async function waitForWake(waiter: Link, lanes: readonly string[] | undefined, waitMs: number): Promise<Woken> {
  const streams = (lanes?.map((lane) => `:${lane}`) ?? ['']).map((kind) => `${waiter.prefix}wake${kind}`)
  const how = ['GROUP', GROUP, CONSUMER, 'COUNT', 1, 'BLOCK', Math.ceil(waitMs), 'NOACK', 'STREAMS'] as const
  try {
    const read = await waiter.attempt(() => waiter.redis.xreadgroup(...how, ...streams, ...streams.map(() => '>')))
    return read === null ? 'late' : 'woken'
  } catch {
    return 'failed' // the run was started from scratch, or the server is down: the next claim deals with it
  }
}
