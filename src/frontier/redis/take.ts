/**
 * The ready queues inside Redis, in round-robin order. Applies the rules of `fair-share.ts` where the data is: lanes in order,
 * the top priority first, and within it one task of each host per round.
 */
export const TAKE = `
local function argSet()
  local set = {}
  for i = 1, argNumber() do set[arg()] = true end
  return set
end
-- '' : all lanes; otherwise their number and names.
local function argLanes()
  local count = arg()
  if count == '' then return nil end
  local lanes = {}
  for i = 1, tonumber(count) do lanes[i] = arg() end
  return lanes
end

-- Lanes in one group share: among them only priority and turn decide.
local function laneGroups(wanted)
  local groups, others = {}, {}
  if wanted then
    for _, lane in ipairs(wanted) do groups[#groups + 1] = { lane } end
    return groups
  end
  local pending = call('HGETALL', P .. 'lanes:pending')
  local isThere = {}
  for i = 1, #pending, 2 do
    if (tonumber(pending[i + 1]) or 0) > 0 then isThere[pending[i]] = true end
  end
  for _, lane in ipairs({ 'manual', 'priority' }) do
    if isThere[lane] then
      groups[#groups + 1] = { lane }
      isThere[lane] = nil
    end
  end
  for lane in pairs(isThere) do
    if not isFileLane(lane) then others[#others + 1] = lane end
  end
  table.sort(others)
  if #others > 0 then groups[#groups + 1] = others end
  return groups
end

local function candidates(lane, max, avoid, found)
  local wanted = #found + max
  for _, priority in ipairs(call('ZRANGE', P .. 'levels:' .. lane, 0, -1)) do
    local level, from = P .. 'turn:' .. lane .. ':' .. priority, 0
    if not tonumber(priority) then call('ZREM', P .. 'levels:' .. lane, priority) end
    while tonumber(priority) and #found < wanted do
      local rows = call('ZRANGE', level, from, from + max - 1, 'WITHSCORES')
      for i = 1, #rows, 2 do
        local queue = queueOf(rows[i])
        if not queue then
          call('ZREM', level, rows[i])
          bump('strays', 1)
        elseif #found < wanted and not avoid[queue.host] then
          found[#found + 1] = { queue = queue, priority = tonumber(priority), turn = tonumber(rows[i + 1]),
            ready = call('LLEN', P .. 'ready:' .. queue.id) + call('ZCARD', P .. 'back:' .. queue.id) }
        end
      end
      if #rows < 2 * max then break end
      from = from + max
    end
    if #found >= wanted then return end
  end
end

local function deal(offered, max)
  local dealt, start = {}, 1
  while offered[start] and #dealt < max do
    local level, priority = {}, offered[start].priority
    while offered[start] and offered[start].priority == priority do
      level[#level + 1] = offered[start]
      start = start + 1
    end
    local round = 1
    while #level > 0 and #dealt < max do
      local left = {}
      for _, candidate in ipairs(level) do
        if #dealt < max then dealt[#dealt + 1] = candidate end
        if candidate.ready > round then left[#left + 1] = candidate end
      end
      level, round = left, round + 1
    end
  end
  return dealt
end

local function popEntry(queueId)
  local ready, back = P .. 'ready:' .. queueId, P .. 'back:' .. queueId
  local first = call('ZRANGE', back, 0, 0)[1]
  if not first then return call('LPOP', ready) end
  local listed = call('LINDEX', ready, 0)
  if listed and (tonumber(listed) or 0) < (tonumber(first) or 0) then return call('LPOP', ready) end
  call('ZREM', back, first)
  return first
end
-- The oldest task of a queue; nil when there is none. A number that is leased is no entry of ours.
local function pop(candidate)
  while true do
    local seq = popEntry(candidate.queue.id)
    if not seq then return nil end
    local task = taskOf(seq)
    if task and call('HEXISTS', P .. 'lease', seq) == 0 then return task end
    candidate.ready = candidate.ready - 1
    discard(seq, candidate.queue.id)
  end
end

-- Served: to the end, or out when nothing is left.
local function toEnd(candidate)
  local queue = candidate.queue
  if candidate.ready > candidate.taken then
    call('ZADD', queue.level, bump('turn', 1), queue.id)
    return
  end
  call('ZREM', queue.level, queue.id)
  if call('EXISTS', queue.level) == 0 then call('ZREM', P .. 'levels:' .. queue.lane, queue.priority) end
end

-- Up to max tasks in the order in which they are given out.
local function take(lanes, max, avoid)
  local taken = {}
  for _, group in ipairs(laneGroups(lanes)) do
    local left = max - #taken
    if left <= 0 then break end
    local offered = {}
    for _, lane in ipairs(group) do candidates(lane, left, avoid, offered) end
    if #group > 1 then
      table.sort(offered, function(a, b)
        if a.priority ~= b.priority then return a.priority > b.priority end
        return a.turn < b.turn
      end)
    end
    local served = {}
    for _, candidate in ipairs(deal(offered, left)) do
      if not candidate.taken then
        candidate.taken = 0
        served[#served + 1] = candidate
      end
      local task = pop(candidate)
      if task then
        candidate.taken = candidate.taken + 1
        taken[#taken + 1] = task
      end
    end
    for _, candidate in ipairs(served) do toEnd(candidate) end
  end
  return taken
end
`

export function lanesArg(lanes: readonly string[] | undefined): (string | number)[] {
  return lanes === undefined ? [''] : [lanes.length, ...lanes]
}

export function setArg(names: readonly string[] = []): (string | number)[] {
  return [names.length, ...names]
}
