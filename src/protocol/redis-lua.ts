/** Operations that must be atomic on the server. No script changes an entry that its caller no longer holds. */
import { script } from '../drivers/redis/script.ts'

const OWNS = `
local function owns(stream, group, consumer, id)
  local ok, found = pcall(redis.call, 'XPENDING', stream, group, id, id, 1, consumer)
  return ok and type(found) == 'table' and found.err == nil and found[1] ~= nil
end
local function nowMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
`

/**
 * The end of a try: its results are added and the task is acknowledged, or neither.
 * stream group consumer id · results, count, texts… · errors, kept, text or '' · delayed, wait ms, task or ''
 */
export const FINISH = script(
  'finish',
  `${OWNS}
local stream, group, consumer, id, results, count = unpack(ARGV, 1, 6)
if not owns(stream, group, consumer, id) then return 0 end
for i = 1, tonumber(count) do redis.call('XADD', results, '*', 'message', ARGV[6 + i]) end
local errors, kept, problem, delayed, waitMs, again = unpack(ARGV, 7 + count, 12 + count)
if problem ~= '' then redis.call('XADD', errors, 'MAXLEN', '~', kept, '*', 'message', problem) end
if again ~= '' then redis.call('ZADD', delayed, nowMs() + waitMs, again) end
redis.call('XACK', stream, group, id)
return 1`,
)

/**
 * group consumer · idle ms · stream id deliveries, stream id deliveries … ('' leaves the deliveries as they are)
 * Renews entries (idle 0), or releases them (idle of a day: the next consumer that looks takes them over). Returns the lost ones.
 */
export const HOLD = script(
  'hold',
  `${OWNS}
local group, consumer, idleMs = unpack(ARGV, 1, 3)
local lost = {}
for i = 4, #ARGV, 3 do
  local stream, id, deliveries = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if owns(stream, group, consumer, id) then
    if deliveries == '' then redis.call('XCLAIM', stream, group, consumer, 0, id, 'IDLE', idleMs, 'JUSTID')
    else redis.call('XCLAIM', stream, group, consumer, 0, id, 'IDLE', idleMs, 'RETRYCOUNT', deliveries, 'JUSTID') end
  else lost[#lost + 1] = stream .. ' ' .. id end
end
return lost`,
)

/** delayed stream max: tasks that are due go back to their stream. */
export const PROMOTE = script(
  'promote',
  `${OWNS}
local due = redis.call('ZRANGEBYSCORE', ARGV[1], '-inf', nowMs(), 'LIMIT', 0, ARGV[3])
for _, task in ipairs(due) do
  redis.call('XADD', ARGV[2], '*', 'message', task)
  redis.call('ZREM', ARGV[1], task)
end
return #due`,
)

/** mark seconds · errors kept text: a message that many have read is refused only by the first of them, which gets 1. */
export const REFUSE = script(
  'refuse',
  `if not redis.call('SET', ARGV[1], 1, 'NX', 'EX', ARGV[2]) then return 0 end
redis.call('XADD', ARGV[3], 'MAXLEN', '~', ARGV[4], '*', 'message', ARGV[5])
return 1`,
)

/** group consumer · stream …: lets others take over the entries of a consumer known to be dead. Counts as a loss. */
export const ABANDON = script(
  'abandon',
  `local count = 0
for i = 3, #ARGV do
  local ok, held = pcall(redis.call, 'XPENDING', ARGV[i], ARGV[1], '-', '+', 10000, ARGV[2])
  if ok and type(held) == 'table' and held.err == nil then
    for _, entry in ipairs(held) do
      redis.call('XCLAIM', ARGV[i], ARGV[1], ARGV[2], 0, entry[1], 'IDLE', 86400000, 'JUSTID')
      count = count + 1
    end
  end
end
return count`,
)

/** stream keep-ms: removes entries all groups have acknowledged, except the last `keep-ms`, and consumers gone for an hour. */
export const TRIM = script(
  'trim',
  `${OWNS}
if redis.call('EXISTS', ARGV[1]) == 0 then return 0 end
local function parse(id)
  local ms, seq = string.match(id, '(%d+)-(%d+)')
  return tonumber(ms), tonumber(seq)
end
local firstMs, firstSeq = nowMs() - ARGV[2], 0
local groups = redis.call('XINFO', 'GROUPS', ARGV[1])
if #groups == 0 then return 0 end
for _, group in ipairs(groups) do
  local info = {}
  for i = 1, #group, 2 do info[group[i]] = group[i + 1] end
  local pending = redis.call('XPENDING', ARGV[1], info['name'])
  local ms, seq
  if pending[1] > 0 then ms, seq = parse(pending[2])
  else
    ms, seq = parse(info['last-delivered-id'])
    seq = seq + 1
  end
  for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', ARGV[1], info['name'])) do
    local one = {}
    for i = 1, #consumer, 2 do one[consumer[i]] = consumer[i + 1] end
    if one['pending'] == 0 and one['idle'] > 3600000 then
      redis.call('XGROUP', 'DELCONSUMER', ARGV[1], info['name'], one['name'])
    end
  end
  if ms < firstMs or (ms == firstMs and seq < firstSeq) then firstMs, firstSeq = ms, seq end
end
return redis.call('XTRIM', ARGV[1], 'MINID', string.format('%.0f-%.0f', firstMs, firstSeq))`,
)
