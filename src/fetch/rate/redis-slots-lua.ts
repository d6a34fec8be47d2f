/**
 * The keys and scripts of the fleet slots in Redis. One call is one round trip and one transaction, on the server's clock.
 *
 *   sluice:slots:HOST       tat: when the next request would start if they came evenly · gap, early: of the latest start given ·
 *                           until, pause: when the pause ends, and its intended length
 *   sluice:slots-workers    when each worker was last seen
 *   ratelimit:HOST:MINUTE   starts granted in that minute since 1970
 *
 * Every key expires soon after it becomes meaningless: a host's after its last start or pause, a minute's one minute after it is
 * over, the workers' when none of them is left.
 */
import { script } from '../../drivers/redis/script.ts'
import { SLOT_WORKER_MS_MAX } from './batched-slots.ts'
import { SLOT_HORIZON_MS } from './spacing.ts'

/** As long as the longest Retry-After that can be obeyed: no pause outlives it, whatever was requested. */
const PAUSE_MS_MAX = 86_400_000

/** Lua for the milliseconds since 1970. */
const SERVER_CLOCK = `(function()
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000
end)()`

const base = (clock: string) => `
local call, floor, max, min = redis.call, math.floor, math.max, math.min
local now = ${clock}
local WORKERS = 'sluice:slots-workers'
-- Lua's own way from a number to text has 14 digits, and a time in ms with fractions needs 16.
local function text(number) return string.format('%.3f', number) end
local function hostKey(host) return 'sluice:slots:' .. host end
local function lasts(key, untilMs) call('PEXPIRE', key, max(1, math.ceil(untilMs - now)) + 1000) end
`

/**
 * ARGV: starts per minute (0 = no limit), then host, interval, earliness and count of each host, as in `SlotAsk`. Hands out the
 * starts within the horizon, at most as many as requested. A `tat` or a pause further away than it can have been set comes from
 * a clock that was set back, and is cut permanently to the largest possible value. Returns the number of workers, then for each
 * host the wait for the first start without earliness, the number of starts, and the rest of its pause.
 */
const take = (clock: string) =>
  script(
    'slots.take',
    `${base(clock)}
local HORIZON = ${SLOT_HORIZON_MS}
local MINUTE = 60000
local perMinute = tonumber(ARGV[1])

local function minuteKey(host, minute) return 'ratelimit:' .. host .. ':' .. string.format('%d', minute) end
-- The name is older than we are: what somebody else keeps there in another way is let be.
local function used(host, minute)
  local found = redis.pcall('GET', minuteKey(host, minute))
  return type(found) == 'string' and tonumber(found) or 0
end
local function use(host, minute, count)
  if count <= 0 then return end
  local key = minuteKey(host, minute)
  local sum = redis.pcall('INCRBY', key, count)
  if type(sum) == 'number' then lasts(key, (minute + 2) * MINUTE) end
end
-- A start whose minute is used up is put off to the beginning of the next; one beyond the horizon is not given out anyway.
local function putOff(host, first, early)
  local minute = floor(max(now, first - early) / MINUTE)
  while perMinute > 0 and first - early <= now + HORIZON and used(host, minute) >= perMinute do
    minute = minute + 1
    first = minute * MINUTE + early
  end
  return first
end

-- Written down: cut anew with every question, it would stay as far away for as long as the clock was turned.
local function cut(key, field, atMs, awayMsMax)
  if atMs <= now + awayMsMax then return atMs end
  call('HSET', key, field, text(now + awayMsMax))
  return now + awayMsMax
end
local function take(host, interval, early, count)
  local key = hostKey(host)
  local known = call('HMGET', key, 'tat', 'gap', 'early', 'until', 'pause')
  local tat = cut(key, 'tat', tonumber(known[1]) or 0, HORIZON + (tonumber(known[2]) or 0) + (tonumber(known[3]) or 0))
  local pausedMs = max(0, cut(key, 'until', tonumber(known[4]) or 0, tonumber(known[5]) or 0) - now)
  if interval == 0 then return 0, 0, pausedMs end
  local first = putOff(host, max(now, tat), early)
  if pausedMs > 0 or first - early > now + HORIZON then return first - now, 0, pausedMs end
  local taken = min(count, 1 + floor((now + HORIZON + early - first) / interval))
  local minute = floor(max(now, first - early) / MINUTE)
  local here = min(taken, max(1, math.ceil(((minute + 1) * MINUTE - first + early) / interval)))
  local rest = taken - here
  if perMinute > 0 then
    local room = perMinute - used(host, minute)
    rest = here > room and 0 or max(0, min(rest, perMinute - used(host, minute + 1)))
    here = min(here, room)
    taken = here + rest
  end
  use(host, minute, here)
  use(host, minute + 1, rest)
  call('HSET', key, 'tat', text(first + taken * interval), 'gap', text(interval), 'early', text(early))
  lasts(key, first + taken * interval)
  return first - now, taken, pausedMs
end

local answer = { call('ZCOUNT', WORKERS, text(now - ${SLOT_WORKER_MS_MAX}), '+inf') }
for i = 2, #ARGV, 4 do
  local waitMs, taken, pausedMs = take(ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]))
  answer[#answer + 1] = text(waitMs)
  answer[#answer + 1] = taken
  answer[#answer + 1] = text(pausedMs)
end
return answer`,
  )

/** ARGV: host and duration of each pause. */
const pause = (clock: string) =>
  script(
    'slots.pause',
    `${base(clock)}
for i = 1, #ARGV, 2 do
  local key, pauseMs = hostKey(ARGV[i]), min(tonumber(ARGV[i + 1]), ${PAUSE_MS_MAX})
  local known = call('HMGET', key, 'tat', 'until', 'pause')
  local tat, leftMs = tonumber(known[1]) or 0, min((tonumber(known[2]) or 0) - now, tonumber(known[3]) or 0)
  if leftMs < pauseMs then
    call('HSET', key, 'until', text(now + pauseMs), 'pause', text(pauseMs))
    lasts(key, max(now + pauseMs, min(tat, now + ${PAUSE_MS_MAX})))
  end
end
return 0`,
  )

/** ARGV: our worker ID. */
const meet = (clock: string) =>
  script(
    'slots.meet',
    `${base(clock)}
call('ZADD', WORKERS, text(now), ARGV[1])
call('ZREMRANGEBYSCORE', WORKERS, '-inf', '(' .. text(now - ${SLOT_WORKER_MS_MAX}))
lasts(WORKERS, now + ${SLOT_WORKER_MS_MAX})
return 0`,
  )

/** ARGV: our worker ID. */
const leave = (clock: string) => script('slots.leave', `${base(clock)} return call('ZREM', WORKERS, ARGV[1])`)

/** `clock`: replaces the server's clock, so that tests can set it. */
export function slotScripts(clock: string = SERVER_CLOCK) {
  return { take: take(clock), pause: pause(clock), meet: meet(clock), leave: leave(clock) }
}
