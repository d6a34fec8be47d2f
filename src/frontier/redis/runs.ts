/** Many runs share one Redis. How a run is deleted, kept for a while after its end, and kept again when it is resumed. */
import { randomBytes } from 'node:crypto'
import { ScrapeError } from '../../core/errors.ts'
import type { Link } from './link.ts'
import { BASE, BUCKETS } from './lua.ts'
import { script } from './script.ts'

/** Keys inspected per SCAN command. */
const SCAN_COUNT = 1000

/** For all runs in this Redis: when each was last opened or worked on, by the clock of the server. */
const RUNS_KEY = 'sluice:runs'

/** How long a finished run is kept, and an unused one. */
export const KEEP_MS = { finished: 7 * 24 * 3_600_000, abandoned: 30 * 24 * 3_600_000 }

const GLOB = /[\\*?[\]]/g

/** Cursor, pattern. */
const SCAN = script('scan', `return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ${SCAN_COUNT})`)

async function* keysOf(link: Link, prefix: string): AsyncGenerator<string[]> {
  // Buckets are listed by name: a scan goes through the whole database, so the fewer keys are left to it the better.
  for (const kind of ['crawled_urls', 'item_keys']) {
    for (let from = 0; from < BUCKETS; from += SCAN_COUNT) {
      yield Array.from({ length: Math.min(SCAN_COUNT, BUCKETS - from) }, (_, i) => `${prefix}${kind}:${from + i}`)
    }
  }
  const match = `${prefix.replace(GLOB, '\\$&')}*`
  for (let cursor = '0'; ; ) {
    const [next, keys] = (await link.evaluate(SCAN, [cursor, match])) as [string, string[]]
    if (keys.length > 0) yield keys
    if (next === '0') return
    cursor = next
  }
}

/** The prefix of a run and some of its keys. Without keys, the run is removed from the list of runs. */
const DROP = script(
  'drop',
  `for i = 2, #ARGV do redis.call('UNLINK', ARGV[i]) end
if #ARGV == 1 then redis.call('ZREM', '${RUNS_KEY}', ARGV[1]) end`,
)

/** Deletes a run with everything it has seen, done and emitted. */
export async function dropRun(link: Link): Promise<void> {
  for await (const keys of keysOf(link, link.prefix)) await link.evaluate(DROP, [link.prefix, ...keys])
  await link.evaluate(DROP, [link.prefix])
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

/** Every key of the run expires after `keepMs`; 0: none does. */
export async function expireRun(link: Link, keepMs: number): Promise<void> {
  for await (const keys of keysOf(link, link.prefix)) await link.run(EXPIRE, { args: () => [keepMs, ...keys] })
}

const ABANDONED = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local abandoned = now - ${KEEP_MS.abandoned}
`

/** The prefix of a run. Returns the prefixes of some runs unused for a month. */
const TOUCH = script(
  'touch',
  `${ABANDONED}
redis.call('ZADD', '${RUNS_KEY}', now, ARGV[1])
return redis.call('ZRANGEBYSCORE', '${RUNS_KEY}', '-inf', abandoned, 'LIMIT', 0, 10)`,
)

/** The prefix of a run, and some of its keys: deletes them, unless the run has been used since. */
const DROP_ABANDONED = script(
  'drop-abandoned',
  `${ABANDONED}
local last = redis.call('ZSCORE', '${RUNS_KEY}', ARGV[1])
if not last or tonumber(last) > abandoned then return 0 end
for i = 2, #ARGV do redis.call('UNLINK', ARGV[i]) end
return 1`,
)

/** Records that the run is in use, and deletes runs unused for a month. The clock of this machine may be wrong. */
export async function touchRun(link: Link): Promise<void> {
  for (const prefix of (await link.evaluate(TOUCH, [link.prefix])) as string[]) await dropAbandoned(link, prefix)
}

/** False if it is in use again. */
export async function dropAbandoned(link: Link, prefix: string): Promise<boolean> {
  for await (const keys of keysOf(link, prefix)) {
    if ((await link.evaluate(DROP_ABANDONED, [prefix, ...keys])) === 0) return false
  }
  await link.evaluate(DROP, [prefix])
  return true
}

/**
 * An epoch for a run that has none yet, and whether the run must exist (1). Returns the one it has ('' if it was never started),
 * and whether its keys expire. Runs of version 0.1 have tasks but no epoch: they get one when they are next opened.
 */
const OPEN = script(
  'open',
  `${BASE}
local wanted, mustExist = arg(), arg() == '1'
if not mustExist or call('HEXISTS', P .. 'totals', 'seen') == 1 then call('HSETNX', P .. 'totals', 'epoch', wanted) end
return { call('HGET', P .. 'totals', 'epoch') or '', call('PTTL', P .. 'totals') >= 0 and 1 or 0 }`,
)

/** Finds the epoch of the run. Throws `E_RUN_NOT_FOUND` if it must exist but was never started or is gone. */
export async function openEpoch(link: Link, { mustExist }: { mustExist: boolean }): Promise<{ isEnding: boolean }> {
  const wanted = randomBytes(6).toString('base64url')
  const [epoch, isEnding] = await link.run<[string, number]>(OPEN, { args: () => [wanted, mustExist ? 1 : 0] })
  if (epoch === '') throw new ScrapeError('E_RUN_NOT_FOUND', `no run ${link.runId} in ${link.place}`)
  link.setEpoch(epoch)
  return { isEnding: isEnding === 1 }
}

const MEMORY = script('memory', `return redis.call('INFO', 'memory')`)

/**
 * A Redis that evicts keys when its memory is full would silently lose tasks. `volatile-*` evicts only keys that expire, but
 * those of a finished run do, so it would be incomplete when it is opened again.
 */
export async function refuseEviction(link: Link): Promise<void> {
  const info = String(await link.evaluate(MEMORY, []))
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction'
  if (policy === 'noeviction') return
  throw new ScrapeError(
    'E_OPTION',
    `${link.place} has maxmemory-policy ${policy}: it would throw tasks away when it is full`,
    {
      fix: 'Set maxmemory-policy to noeviction, and use a separate Redis for caches.',
    },
  )
}
