/** Leases: from pending to claimed under the number of the call, suspects alone, and the format of replies with leases. */
import type { Json, Task } from '../../core/task.ts'
import type { Lease } from '../contract.ts'

export const LEASE = `
local function leased(task)
  return { task.seq, task.attempts, task.losses, queueOf(task.queue).name, task.body }
end
-- Set by a transport whose messages live as long as their leases: sends one, and answers with its id.
local deliver = nil
-- Notes the lease of one task; its body is the answer. The caller has taken it from its place.
local function lease(seq, worker, expires, known)
  local task = known or taskOf(seq)
  if not task then
    discard(seq)
    return nil
  end
  local isAlone = task.losses > 0
  local sent = deliver and '@' .. deliver(task) or ''
  call('HSET', P .. 'lease', seq, op .. ' ' .. (isAlone and 1 or 0) .. ' ' .. task.queue .. sent .. ' ' .. worker)
  call('ZADD', P .. 'expiry', expires, seq)
  heldMoved[worker] = (heldMoved[worker] or 0) + 1
  if isAlone then call('HSET', P .. 'alone', worker, seq) end
  moved(task.queue, -1, 1)
  return leased(task)
end
-- Ends a lease; nil when it is stale. Without leaseOp: whoever holds it. The task has no place now, and its caller may need
-- no more of it than its queue.
local function release(seq, leaseOp)
  local text = call('HGET', P .. 'lease', seq)
  if not text then return nil end
  local holdingOp, isAlone, queue, sent, worker = string.match(text, '^(%S+) (%d) (%d+)@?([%d-]*) (.*)$')
  if leaseOp and leaseOp ~= holdingOp then return nil end
  if not queue or not queueOf(queue) then
    call('HDEL', P .. 'lease', seq)
    call('ZREM', P .. 'expiry', seq)
    bump('strays', 1)
    return nil
  end
  if sent ~= '' then
    local stream = P .. 'tasks:' .. queueOf(queue).lane
    acked[stream] = acked[stream] or {}
    table.insert(acked[stream], sent)
  end
  call('HDEL', P .. 'lease', seq)
  call('ZREM', P .. 'expiry', seq)
  heldMoved[worker] = (heldMoved[worker] or 0) - 1
  if isAlone == '1' then call('HDEL', P .. 'alone', worker) end
  moved(queue, 0, -1)
  return queue
end
-- Its lease is over, and its text cannot be read.
local function forsake(seq)
  call('ZREM', P .. 'expiry', seq)
  if isForgotten(seq) then bump('failed', 1) end
end
local function isHeld(seq, leaseOp)
  local text = call('HGET', P .. 'lease', seq)
  return text and string.match(text, '^%S+') == leaseOp
end
-- The leases of a claim whose answer was lost.
local function leasesOf(leaseOp)
  local all, found = call('HGETALL', P .. 'lease'), {}
  for i = 1, #all, 2 do
    local task = string.match(all[i + 1], '^%S+') == leaseOp and taskOf(all[i])
    if task then found[#found + 1] = leased(task) end
  end
  table.sort(found, function(a, b) return tonumber(a[1]) < tonumber(b[1]) end)
  return found
end
-- A suspect for a worker with empty hands; nothing for one that holds a suspect; nil: claim as usual.
local function claimSuspect(worker, expires, lanes, avoid)
  if call('HEXISTS', P .. 'alone', worker) == 1 then return {} end
  if call('HEXISTS', P .. 'held', worker) == 1 then return nil end
  local isWanted = {}
  for _, lane in ipairs(lanes or {}) do isWanted[lane] = true end
  for _, seq in ipairs(call('ZRANGE', P .. 'suspect', 0, -1)) do
    local task = taskOf(seq)
    local queue = task and queueOf(task.queue)
    local isServed = queue and (isWanted[queue.lane] or not lanes and not isFileLane(queue.lane))
    if not task then
      call('ZREM', P .. 'suspect', seq)
      discard(seq)
    elseif isServed and not avoid[queue.host] then
      call('ZREM', P .. 'suspect', seq)
      return { lease(seq, worker, expires, task) }
    end
  end
  return nil
end
`

/** As returned by `leased` in Lua. */
export type LeaseRow = [seq: string, attempts: number, losses: number, queueName: string, body: string]

/** A queue's name in Redis, from which Lua also reads its parts. */
export function queueName({ lane, priority }: Pick<Task, 'lane' | 'priority'>, host: string): string {
  return JSON.stringify([lane, String(priority), host])
}

/** The parts of a task that never change and are not in its queue's name. */
export function bodyOf({ id, url, route, depth, data, session, trace }: Task): string {
  const body = [id, url, route, depth, data, session ?? null]
  return JSON.stringify(trace === undefined ? body : [...body, trace])
}

export function taskFrom(queue: string, body: string): Task {
  const [lane, priority] = JSON.parse(queue) as [string, string]
  const [id, url, route, depth, data, session, trace] = JSON.parse(body) as [
    string,
    string,
    string,
    number,
    Json,
    string | null,
    string?,
  ]
  const task = { id, url, route, data, depth, priority: Number(priority), lane, session: session ?? undefined }
  return trace === undefined ? task : { ...task, trace }
}

/** A token consists of the numbers of the claim and the task: `3-17.4711`. */
export function leaseFrom(op: string, [seq, attempts, losses, queue, body]: LeaseRow): Lease {
  return { task: taskFrom(queue, body), token: `${op}.${seq}`, attempt: attempts + 1, losses }
}

/** Anything that is not one of our tokens matches no lease. */
export function numbersOf(lease: Lease): [op: string, seq: string] {
  const dot = lease.token.lastIndexOf('.')
  return [lease.token.slice(0, dot), lease.token.slice(dot + 1)]
}
