/** Stats from maintained counters, and the next time at which something happens. */
import type { FrontierStats } from '../contract.ts'
import type { Link } from './link.ts'
import { BASE } from './lua.ts'
import { script } from './script.ts'

const HOSTS_MAX = 50

const STATS = script(
  'stats',
  `${BASE}
local names = { 'pending', 'claimed', 'completed', 'failed', 'dead', 'seen', 'items' }
local totals = {}
for i, name in ipairs(names) do totals[i] = total(name) end
local hosts, isListed = {}, {}
local rows = call('ZREVRANGE', P .. 'hosts', 0, ${HOSTS_MAX - 1}, 'WITHSCORES')
for i = 1, #rows, 2 do
  isListed[rows[i]] = true
  hosts[#hosts + 1] = { rows[i], tonumber(rows[i + 1]), tonumber(call('HGET', P .. 'hosts:claimed', rows[i]) or 0) }
end
if #hosts < ${HOSTS_MAX} then
  local claimed = call('HGETALL', P .. 'hosts:claimed')
  for i = 1, #claimed, 2 do
    if #hosts < ${HOSTS_MAX} and not isListed[claimed[i]] then hosts[#hosts + 1] = { claimed[i], 0, tonumber(claimed[i + 1]) } end
  end
end
return { totals, call('HGETALL', P .. 'lanes:pending'), call('HGETALL', P .. 'lanes:claimed'), hosts,
  call('HEXISTS', P .. 'totals', 'pause'), call('HGET', P .. 'totals', 'pause') or '', call('HGETALL', P .. 'counts'),
  total('strays') }`,
)

const NEXT_DUE = script(
  'next-due',
  `${BASE}
local delayed, expiry = call('ZRANGE', P .. 'delayed', 0, 0, 'WITHSCORES')[2], call('ZRANGE', P .. 'expiry', 0, 0, 'WITHSCORES')[2]
return { delayed or '', expiry or '' }`,
)

type Answer = [
  totals: [number, number, number, number, number, number, number],
  lanesPending: string[],
  lanesClaimed: string[],
  hosts: [string, number, number][],
  isPaused: number,
  pauseReason: string,
  counts: string[],
  strays: number,
]

/** `strays` is called with the number of entries that were not ours. */
export async function readStats(link: Link, strays: (count: number) => void = () => {}): Promise<FrontierStats> {
  const [totals, waiting, out, hosts, isPaused, pauseReason, counts, strayed] = await link.run<Answer>(STATS, {})
  const [pending, claimed, completed, failed, dead, seen, items] = totals
  if (strayed > 0) strays(strayed)
  const lanes: FrontierStats['lanes'] = {}
  for (const [name, count] of pairs(waiting)) lanes[name] = { pending: count, claimed: 0 }
  for (const [name, count] of pairs(out)) lanes[name] = { pending: lanes[name]?.pending ?? 0, claimed: count }
  return {
    pending,
    claimed,
    completed,
    failed,
    dead,
    remaining: pending + claimed,
    seen,
    items,
    counts: Object.fromEntries(pairs(counts)),
    isPaused: isPaused === 1,
    pauseReason: isPaused === 1 ? pauseReason : undefined,
    lanes,
    hosts: hosts.map(([host, waits, isOut]) => ({ host, pending: waits, claimed: isOut })),
  }
}

export async function readNextDueMs(link: Link): Promise<number | undefined> {
  const times = await link.run<[string, string]>(NEXT_DUE, {})
  const known = times.filter((time) => time !== '').map(Number)
  return known.length === 0 ? undefined : Math.min(...known)
}

function pairs(flat: readonly string[]): [string, number][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i]!, Number(flat[2 * i + 1])])
}
