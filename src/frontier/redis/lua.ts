/**
 * What all our Lua scripts have in common. One call is one round trip and one transaction: Redis runs a script alone.
 *
 * Keys of a run; they are on one server, because our client does not support clusters. Location is state: the number of a task is
 * in exactly one of ready/back, delayed, suspect, belt, lease or dead, or the task is finished and only its hash is left.
 *
 *   totals            counters of the run                     task              number → `queue attempts losses|body`
 *   crawled_urls:N    what was seen: 16 bytes of SHA-256      item_keys:N       hash of an item's key → hash of its content
 *   queue, queue:name name ⇄ number of lane+priority+host     lanes:*, hosts*   pending and claimed of each
 *   ready:Q           numbers in order (a list: 5 bytes each)  back:Q           those that came back (a sorted set)
 *   levels:L, turn:…  priorities of a lane, queues by turn    delayed, suspect  by time, by turn
 *   lease, expiry     number → `op alone queue[@id] worker`, by time  held, alone       leases of a worker; who holds a suspect
 *   dead, letter, dead:id   dead letters by turn              items, sinks      the item log (a list) and where the sinks stand
 *   belt:L, sending   on the way through a broker             answers           of calls whose answer may have been lost
 *   tasks:L           stream of tasks in progress              waiting*, wake*   waiting workers, and the stream that wakes them
 */

/** 16,384 buckets: small hashes are packed, up to 512 entries each, so a URL takes 23 bytes where a set takes 72. */
export const BUCKETS = 16_384

/** How a script reports that the run no longer exists. */
export const LOST = 'QUEUELOST the run is gone'

/** The consumer group of every stream of a run. */
export const GROUP = 'workers'

/**
 * ARGV of every script: 1 now in ms ('' = the server's clock) · 2 number of the call ('' = none) · 3 calls whose answers were
 * heard, joined by commas · 4 the run's epoch ('' = not known yet) · 5… its own.
 *
 * If the epoch differs, this is not the run that the caller opened: the server was emptied, came back without its data, or the
 * run was started again. Empty keys would look like a run with nothing left to do, so every script stops here.
 */
export const BASE = `
local P, call, floor = KEYS[1], redis.call, math.floor
if ARGV[4] ~= '' and call('HGET', P .. 'totals', 'epoch') ~= ARGV[4] then return redis.error_reply('${LOST}') end
local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + floor(time[2] / 1000)
end
local op = ARGV[2]
local argAt = 4
local function arg()
  argAt = argAt + 1
  return ARGV[argAt]
end
local function argNumber() return tonumber(arg()) end

-- A repeated call gets the answer of the first.
local function answered()
  if ARGV[3] ~= '' then
    for heard in string.gmatch(ARGV[3], '[^,]+') do call('HDEL', P .. 'answers', heard) end
  end
  local packed = op ~= '' and call('HGET', P .. 'answers', op)
  return packed and cmsgpack.unpack(packed)
end
local function answer(value)
  if op ~= '' then call('HSET', P .. 'answers', op, cmsgpack.pack(value)) end
  return value
end

local function total(name) return tonumber(call('HGET', P .. 'totals', name) or 0) or 0 end
local function bump(name, by) return call('HINCRBY', P .. 'totals', name, by) end

-- Remembers a hash; false when it was known.
local function bucketOf(kind, hash)
  local a, b = string.byte(hash, 1, 2)
  return P .. kind .. ':' .. (a * 64 + floor(b / 4)), string.sub(hash, 2)
end
local function remember(kind, hash, value)
  local bucket, field = bucketOf(kind, hash)
  return call('HSETNX', bucket, field, value) == 1
end

-- Given only to who asks for them by name.
local function isFileLane(lane)
  return lane == 'files' or string.sub(lane, 1, 6) == 'files@'
end

local queueCache = {}
local function queueOf(id)
  local found = queueCache[id]
  if not found then
    local name = call('HGET', P .. 'queue:name', id)
    local isName, parts = pcall(cjson.decode, name or '')
    if not isName or type(parts) ~= 'table' or not parts[3] then return nil end
    found = { id = id, name = name, lane = parts[1], priority = parts[2], host = parts[3] }
    found.level = P .. 'turn:' .. found.lane .. ':' .. found.priority
    queueCache[id] = found
  end
  return found
end
local function queueNamed(name)
  local id = call('HGET', P .. 'queue', name)
  if not id then
    id = tostring(bump('queues', 1))
    call('HSET', P .. 'queue', name, id)
    call('HSET', P .. 'queue:name', id, name)
  end
  return id
end

-- What moves between pending and claimed is summed up and written once, by flush().
local lanesMoved, hostsMoved, heldMoved = {}, {}, {}
local function note(sums, name, pending, claimed)
  local sum = sums[name]
  if not sum then
    sum = { 0, 0 }
    sums[name] = sum
  end
  sum[1] = sum[1] + pending
  sum[2] = sum[2] + claimed
end
local function moved(queueId, pending, claimed)
  local queue = queueOf(queueId)
  note(lanesMoved, queue.lane, pending, claimed)
  note(hostsMoved, queue.host, pending, claimed)
end
-- Whoever blocks on a stream until there is work is woken by an entry in it: as many of them as there is work.
local readyMoved = {}
local function wake(class, count)
  local waiting = P .. 'waiting' .. class
  for _, who in ipairs(call('ZRANGEBYSCORE', waiting, now, '+inf', 'LIMIT', 0, math.min(count, 1000))) do
    call('ZREM', waiting, who)
    call('XADD', P .. 'wake' .. class, 'MAXLEN', 1000, '*', 'ready', 1)
  end
end
-- Messages whose leases are over, by stream. Together: one by one they take an eighth more of the server's time.
local acked = {}
local function acknowledge()
  for stream, ids in pairs(acked) do
    for from = 1, #ids, 1000 do
      local some = { unpack(ids, from, math.min(from + 999, #ids)) }
      call('XACK', stream, '${GROUP}', unpack(some))
      call('XDEL', stream, unpack(some))
    end
  end
end
local function flush()
  acknowledge()
  local pending, claimed = 0, 0
  for lane, sum in pairs(lanesMoved) do
    pending = pending + sum[1]
    claimed = claimed + sum[2]
    call('HINCRBY', P .. 'lanes:pending', lane, sum[1])
    call('HINCRBY', P .. 'lanes:claimed', lane, sum[2])
  end
  for host, sum in pairs(hostsMoved) do
    if sum[1] ~= 0 and tonumber(call('ZINCRBY', P .. 'hosts', sum[1], host)) == 0 then call('ZREM', P .. 'hosts', host) end
    if sum[2] ~= 0 and call('HINCRBY', P .. 'hosts:claimed', host, sum[2]) == 0 then call('HDEL', P .. 'hosts:claimed', host) end
  end
  if pending ~= 0 then bump('pending', pending) end
  if claimed ~= 0 then bump('claimed', claimed) end
  for lane, count in pairs(readyMoved) do
    if count > 0 then
      wake(':' .. lane, count)
      if not isFileLane(lane) then wake('', count) end
    end
  end
  -- The end of the run is news as well.
  if pending + claimed < 0 and total('pending') + total('claimed') == 0 then
    wake('', 1000)
    wake(':files', 1000)
  end
  for worker, by in pairs(heldMoved) do
    if by ~= 0 and call('HINCRBY', P .. 'held', worker, by) == 0 then call('HDEL', P .. 'held', worker) end
  end
end

-- Nil for what is no task, or none that can be read.
local function taskOf(seq)
  local text = call('HGET', P .. 'task', seq)
  if not text then return nil end
  local queue, attempts, losses, body = string.match(text, '^(%d+) (%d+) (%d+)|(.*)$')
  if not queue or not queueOf(queue) then return nil end
  return { seq = seq, queue = queue, attempts = tonumber(attempts), losses = tonumber(losses), body = body }
end
-- Redis may have other users. An entry of theirs in our lists is thrown away and counted. A task of ours whose text they broke cannot be
-- fetched by anybody: it is given up, or the run would wait for it for ever.
local function isForgotten(seq)
  bump('strays', 1)
  local number = tonumber(seq)
  return call('HDEL', P .. 'task', seq) == 1 and number ~= nil and number >= 1 and number <= total('seen')
end
local function discard(seq, queueId)
  if call('HEXISTS', P .. 'lease', seq) == 1 then
    bump('strays', 1)
    return
  end
  if not isForgotten(seq) then return end
  if queueId then moved(queueId, -1, 0) else bump('pending', -1) end
  bump('failed', 1)
end
local function saveTask(task)
  call('HSET', P .. 'task', task.seq, task.queue .. ' ' .. task.attempts .. ' ' .. task.losses .. '|' .. task.body)
end
`

/** The places where a pending task waits, and the moves between them. */
export const PLACES = `
local opened = {}
local function open(queueId)
  if opened[queueId] then return end
  opened[queueId] = true
  local queue = queueOf(queueId)
  if call('ZSCORE', queue.level, queueId) then return end
  call('ZADD', queue.level, bump('turn', 1), queueId)
  call('ZADD', P .. 'levels:' .. queue.lane, -tonumber(queue.priority), queue.priority)
end
-- A new task is younger than all others, so it goes to the end of a list; one that comes back has its old place.
local function makeReady(seq, queueId, losses, isNew)
  local lane = queueOf(queueId).lane
  readyMoved[lane] = (readyMoved[lane] or 0) + 1
  if losses > 0 then
    call('ZADD', P .. 'suspect', bump('turn', 1), seq)
    return
  end
  if isNew then call('RPUSH', P .. 'ready:' .. queueId, seq) else call('ZADD', P .. 'back:' .. queueId, seq, seq) end
  open(queueId)
end
local function place(task, at, isNew)
  moved(task.queue, 1, 0)
  if at > now then
    call('ZADD', P .. 'delayed', math.ceil(at), task.seq)
  else
    makeReady(task.seq, task.queue, task.losses, isNew)
  end
end
-- Bounded; what is left over follows with the next call.
local function promote()
  local due = call('ZRANGEBYSCORE', P .. 'delayed', '-inf', now, 'LIMIT', 0, 5000)
  for _, seq in ipairs(due) do
    call('ZREM', P .. 'delayed', seq)
    local task = taskOf(seq)
    if task then makeReady(seq, task.queue, task.losses, false) else discard(seq) end
  end
end
`
