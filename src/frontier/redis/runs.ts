/** Many runs live in one Redis. How one is forgotten, kept for a while after its end, and kept again when it is resumed. */
import type { Redis } from 'ioredis'
import { ScrapeError } from '../../core/errors.ts'
import type { Link } from './link.ts'
import { BASE, BUCKETS } from './lua.ts'
import { script } from './script.ts'

/** Keys looked at by one command of a scan. */
const SCAN_COUNT = 1000

/** Of all runs in this Redis: when each was last opened or worked on, by the clock of the server. */
const RUNS_KEY = 'sluice:runs'

/** How long a finished run is kept, and one that nobody touches. */
export const KEEP_MS = { finished: 7 * 24 * 3_600_000, abandoned: 30 * 24 * 3_600_000 }

const GLOB = /[\\*?[\]]/g

async function* keysOf(redis: Redis, prefix: string): AsyncGenerator<string[]> {
  // Buckets by name: a scan goes through the whole database, so the fewer keys are left to it the better.
  for (const kind of ['crawled_urls', 'item_keys']) {
    for (let from = 0; from < BUCKETS; from += SCAN_COUNT) {
      yield Array.from({ length: Math.min(SCAN_COUNT, BUCKETS - from) }, (_, i) => `${prefix}${kind}:${from + i}`)
    }
  }
  const match = `${prefix.replace(GLOB, '\\$&')}*`
  for (let cursor = '0'; ; ) {
    const [next, keys] = await redis.scan(cursor, 'MATCH', match, 'COUNT', SCAN_COUNT)
    if (keys.length > 0) yield keys
    if (next === '0') return
    cursor = next
  }
}

/** Forgets a run with all it has seen, done and emitted. */
export async function dropRun(redis: Redis, prefix: string): Promise<void> {
  for await (const keys of keysOf(redis, prefix)) await redis.unlink(keys)
  await redis.zrem(RUNS_KEY, prefix)
}

/** Time in ms (0: none), then keys. A script: 33,000 single commands took 400 ms, this takes 20. */
const EXPIRE = script(
  'expire',
  `${BASE}
local keepMs = argNumber()
for i = argAt + 1, #ARGV do
  if keepMs > 0 then call('PEXPIRE', ARGV[i], keepMs) else call('PERSIST', ARGV[i]) end
end`,
)

/** Every key of the run goes away by itself after `keepMs`; 0: none does. */
export async function expireRun(link: Link, keepMs: number): Promise<void> {
  for await (const keys of keysOf(link.redis, link.prefix)) await link.run(EXPIRE, { args: () => [keepMs, ...keys] })
}

const ABANDONED = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local abandoned = now - ${KEEP_MS.abandoned}
`

/** The prefix of a run. Answers with those of some that nobody has used for a month. */
const TOUCH = script(
  'touch',
  `${ABANDONED}
redis.call('ZADD', '${RUNS_KEY}', now, ARGV[1])
return redis.call('ZRANGEBYSCORE', '${RUNS_KEY}', '-inf', abandoned, 'LIMIT', 0, 10)`,
)

/** The prefix of a run, and some of its keys: they go, unless somebody has used it since. */
const DROP_ABANDONED = script(
  'drop-abandoned',
  `${ABANDONED}
local last = redis.call('ZSCORE', '${RUNS_KEY}', ARGV[1])
if not last or tonumber(last) > abandoned then return 0 end
for i = 2, #ARGV do redis.call('UNLINK', ARGV[i]) end
return 1`,
)

/** Notes that the run is in use, and forgets those that nobody has used for a month. The clock of this machine may be wrong. */
export async function touchRun(link: Link): Promise<void> {
  for (const prefix of (await link.evaluate(TOUCH, [link.prefix])) as string[]) await dropAbandoned(link, prefix)
}

/** False when it is in use again. */
export async function dropAbandoned(link: Link, prefix: string): Promise<boolean> {
  for await (const keys of keysOf(link.redis, prefix)) {
    if ((await link.evaluate(DROP_ABANDONED, [prefix, ...keys])) === 0) return false
  }
  await link.redis.zrem(RUNS_KEY, prefix)
  return true
}

/** Throws `E_RUN_NOT_FOUND` when nobody has begun the run, or it was forgotten. */
export async function mustHave(link: Link): Promise<void> {
  const { redis, prefix, place } = link
  if ((await redis.exists(`${prefix}meta`, `${prefix}totals`)) > 0) return
  throw new ScrapeError('E_RUN_NOT_FOUND', `no run ${/\{(.*)\}:$/.exec(prefix)?.[1]} in ${place}`)
}

/**
 * A Redis that throws keys away when its memory is full would lose tasks without a word. `volatile-*` throws away only what has
 * an end, but a finished run has one, and is half gone when it is opened again.
 */
export async function refuseEviction(link: Link): Promise<void> {
  const info = await link.redis.info('memory')
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction'
  if (policy === 'noeviction') return
  throw new ScrapeError(
    'E_OPTION',
    `${link.place} has maxmemory-policy ${policy}: it would throw tasks away when it is full`,
    {
      fix: 'Set maxmemory-policy to noeviction, and give caches a Redis of their own.',
    },
  )
}
