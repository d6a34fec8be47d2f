/**
 * Claims over streams: one script. A task is put on the stream of its lane when it is chosen, not before: a stream is first in,
 * first out, so a higher priority could not overtake it, and a worker that avoids its host could not leave it to others. It is
 * read at once under the worker's name and stays pending in the group until its lease is over; then it is acknowledged and
 * deleted. So the streams contain exactly the tasks in progress.
 *
 *   ready ──claim: XADD, XREADGROUP──▶ pending under the worker's name ──commit, sweep: XACK, XDEL──▶ gone
 */
import type { ClaimRequest, Lease } from '../contract.ts'
import { LEASE, type LeaseRow, leaseFrom } from '../redis/lease.ts'
import type { Link } from '../redis/link.ts'
import { BASE, GROUP, PLACES } from '../redis/lua.ts'
import { type Arg, script } from '../redis/script.ts'
import { lanesArg, setArg, TAKE } from '../redis/take.ts'

const STREAM = `
local function openStream(key)
  if call('EXISTS', key) == 0 then call('XGROUP', 'CREATE', key, '${GROUP}', 0, 'MKSTREAM') end
end
`

const DELIVER = `
local sentTo = {}
deliver = function(task)
  local lane = queueOf(task.queue).lane
  local stream = P .. 'tasks:' .. lane
  if not sentTo[stream] then openStream(stream) end
  sentTo[stream] = (sentTo[stream] or 0) + 1
  readyMoved[lane] = (readyMoved[lane] or 0) - 1 -- nobody need be woken for what is given
  return call('XADD', stream, '*', 'task', task.seq)
end
-- All that is unread is what was just sent.
local function readSent(worker)
  for stream, count in pairs(sentTo) do
    call('XREADGROUP', 'GROUP', '${GROUP}', worker, 'COUNT', count, 'STREAMS', stream, '>')
  end
end
`

/** A worker that finds nothing is registered as waiting in the same step: a task that becomes ready afterwards wakes it. */
const WAIT = `
local function waitingClasses(lanes)
  local classes = {}
  for i, lane in ipairs(lanes or {}) do classes[i] = ':' .. lane end
  return lanes and classes or { '' }
end
-- How long to wait: not past the next time at which something is due. With leases in hand its own commit may bring the next task;
-- a host that is avoided may be free before anybody has news; and who asks for some lanes of pages asks for the others next.
local function waitFor(worker, lanes, avoid, waitMs)
  if waitMs <= 0 or next(avoid) or lanes and not isFileLane(lanes[1] or '') then return 0 end
  if call('HEXISTS', P .. 'held', worker) == 1 then return 0 end
  if total('pending') + total('claimed') == 0 then return 0 end
  local due = call('ZRANGE', P .. 'delayed', 0, 0, 'WITHSCORES')[2]
  return due and math.max(0, math.min(waitMs, tonumber(due) - now)) or waitMs
end
`

/** Is a repeat, max, worker, lease in ms, ids of this wait and the one before, how long it would wait, lanes, hosts to avoid. */
const CLAIM = script(
  'streams-claim',
  `${BASE}${PLACES}${TAKE}${LEASE}${STREAM}${DELIVER}${WAIT}
local isRepeat, max, worker, leaseMs = arg() == '1', argNumber(), arg(), argNumber()
local note, over, waitMs = arg(), arg(), argNumber()
local lanes, avoid = argLanes(), argSet()
if isRepeat then
  local found = leasesOf(op)
  if #found > 0 then return { found, 0 } end
end
if over ~= '' then
  for _, class in ipairs(waitingClasses(lanes)) do call('ZREM', P .. 'waiting' .. class, over) end
end
if call('HEXISTS', P .. 'totals', 'pause') == 1 then return { {}, 0 } end
promote()
local given = claimSuspect(worker, now + leaseMs, lanes, avoid)
if not given then
  given = {}
  for i, task in ipairs(take(lanes, max, avoid)) do given[i] = lease(task.seq, worker, now + leaseMs, task) end
end
readSent(worker)
local waits = #given == 0 and waitFor(worker, lanes, avoid, waitMs) or 0
if waits > 0 then
  for _, class in ipairs(waitingClasses(lanes)) do
    openStream(P .. 'wake' .. class)
    call('ZREMRANGEBYSCORE', P .. 'waiting' .. class, '-inf', '(' .. now) -- who has given up, or was killed
    call('ZADD', P .. 'waiting' .. class, now + waits, note)
  end
end
flush()
return { given, waits }`,
)

interface Claimed {
  leases: Lease[]
  /** Registered as waiting for this long; 0: not at all. */
  waitsMs: number
}

interface Waiting {
  /** Id of the wait that starts with this claim. */
  note: string
  /** Id of an earlier wait that is still registered: waking removes the id of any waiting worker, maybe not of the one woken. */
  over?: string | undefined
  /** How long the claim would wait if there is nothing. */
  waitMs: number
}

export async function claimOnce(link: Link, request: ClaimRequest, waiting: Waiting): Promise<Claimed> {
  const { max, workerId, leaseMs, lanes, avoidHosts } = request
  const op = link.nextOp()
  const args = (isRepeat: boolean): Arg[] => {
    const who = [waiting.note, waiting.over ?? '', Math.floor(waiting.waitMs)]
    return [isRepeat ? 1 : 0, max, workerId, leaseMs, ...who, ...lanesArg(lanes), ...setArg(avoidHosts)]
  }
  const [rows, waitsMs] = await link.run<[LeaseRow[], number]>(CLAIM, { op, args })
  return { leases: rows.map((row) => leaseFrom(op, row)), waitsMs }
}
