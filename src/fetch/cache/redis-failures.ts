/**
 * Failure counters in Redis: `failures:URL`, how often a page failed lately, over all runs and workers.
 *
 * For people and for dashboards; what decides about retries is the frontier's own count. So a count may be lost while Redis is
 * away, and nobody waits for one.
 */
import { OptionalRedis, type OptionalRedisOptions } from '../../drivers/redis/optional.ts'
import { script } from '../../drivers/redis/script.ts'

interface FailureCounters extends AsyncDisposable {
  /** One more failure. Returns at once; left out while Redis is away or too many are under way. */
  count(url: string): void
  /** Failures of the last while; undefined when Redis cannot be asked. */
  read(url: string): Promise<number | undefined>
}

interface RedisFailuresOptions extends OptionalRedisOptions {
  /** How long after its last failure a page is remembered. Default 24 h. */
  keepMs?: number
}

const KEEP_MS = 86_400_000
const IN_FLIGHT_MAX = 1000

/** Both or neither: a counter that was never given its end would stay for ever. ARGV: key, how long it is kept. */
const COUNT = script(
  'failures.count',
  `local sum = redis.call('INCR', ARGV[1])
redis.call('PEXPIRE', ARGV[1], ARGV[2])
return sum`,
)

/** Throws `E_SERVICE` when Redis cannot be reached now: later it may come and go. */
export async function openRedisFailures(options: RedisFailuresOptions): Promise<FailureCounters> {
  const redis = new OptionalRedis('the failure counters’ Redis', options)
  await redis.open()
  const keepMs = options.keepMs ?? KEEP_MS
  const inFlight = new Set<Promise<unknown>>()
  return {
    count(url) {
      if (redis.isAway || inFlight.size >= IN_FLIGHT_MAX) return
      const counting = redis.run(COUNT, [keyOf(url), keepMs]).finally(() => inFlight.delete(counting))
      inFlight.add(counting)
    },
    async read(url) {
      const found = await redis.ask((connection) => connection.get(keyOf(url)))
      return found === undefined ? undefined : Number(found ?? 0) || 0
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(inFlight)
      redis.close()
    },
  }
}

function keyOf(url: string): string {
  return `failures:${url}`
}
