/**
 * Failure counters in Redis: `failures:URL`, how often a page failed recently, across all runs and workers.
 *
 * For people and dashboards; retries depend on the frontier's own count. So counts may be lost while Redis is down, and no
 * worker waits for one.
 */
import { OptionalRedis, type OptionalRedisOptions } from '../../drivers/redis/optional.ts'
import { script } from '../../drivers/redis/script.ts'

interface FailureCounters extends AsyncDisposable {
  /** Adds one failure. Returns at once; skipped while Redis is down or too many writes are in flight. */
  count(url: string): void
  /** Recent failures; undefined if Redis cannot be reached. */
  read(url: string): Promise<number | undefined>
}

interface RedisFailuresOptions extends OptionalRedisOptions {
  /** How long a page is remembered after its last failure. Default 24 h. */
  keepMs?: number
}

const KEEP_MS = 86_400_000
const IN_FLIGHT_MAX = 1000

/** Both or neither: a counter without an expiry would stay forever. ARGV: key, how long it is kept. */
const COUNT = script(
  'failures.count',
  `local sum = redis.call('INCR', ARGV[1])
redis.call('PEXPIRE', ARGV[1], ARGV[2])
return sum`,
)

/** Throws `E_SERVICE` if Redis cannot be reached now; later outages are tolerated. */
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
