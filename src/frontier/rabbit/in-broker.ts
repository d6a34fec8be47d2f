/**
 * The tasks on their way through the broker (the "belt"), as the ledger sees them. The ready queues in Redis act as an outbox: a
 * task is staged, published, confirmed; tasks that a crash left unconfirmed are published again.
 *
 *   ready ──stage──▶ belt + sending ──(publish, confirm) sent──▶ belt ──lease──▶ claimed
 *     ▲                    └── unconfirmed for 10 s: published again      │
 *     └──────────────────── unstage: expired, unusable here, lost ◀───────┘
 *
 * Their number is bounded: tasks still in the ledger are given out in its own order (priority, hosts in turn), but those in the
 * broker are first in, first out.
 */
import type { ErrorRecord } from '../../core/errors.ts'
import type { Task } from '../../core/task.ts'
import type { ClaimRequest, Lease } from '../contract.ts'
import { BURY, deathOf } from '../redis/dead.ts'
import { LEASE, type LeaseRow, leaseFrom, taskFrom } from '../redis/lease.ts'
import type { Link } from '../redis/link.ts'
import { BASE, PLACES } from '../redis/lua.ts'
import { type Arg, script } from '../redis/script.ts'
import { lanesArg, setArg, TAKE } from '../redis/take.ts'
import { messageOf, type TaskMessage } from './message.ts'

/** Tasks staged per call. */
const STAGE_MAX = 500
/** Share of the limit above which no tasks are added. */
const BELT_FULL = 0.75
/** A confirm takes milliseconds; after this, the process that waits for it is presumed dead. */
const CONFIRM_MS_MAX = 10_000

const UNSTAGE_LUA = `
local function unstage(seq)
  local task = taskOf(seq)
  if not task or call('ZREM', P .. 'belt:' .. queueOf(task.queue).lane, seq) == 0 then return nil end
  call('ZREM', P .. 'sending', seq)
  return task
end
`

/** Is a repeat, max to claim (0: only stage), worker, lease in ms, lanes, hosts to avoid, limit per lane (0: send nothing). */
const TEND = script(
  'tend',
  `${BASE}${PLACES}${TAKE}${LEASE}
local isRepeat, max, worker, leaseMs = arg() == '1', argNumber(), arg(), argNumber()
local lanes, avoid, beltMax = argLanes(), argSet(), argNumber()
if isRepeat then
  local found = leasesOf(op)
  if #found > 0 then return { 1, found, {} } end
end
if call('HEXISTS', P .. 'totals', 'pause') == 1 then return { 1, {}, {} } end
promote()
local alone = max > 0 and claimSuspect(worker, now + leaseMs, lanes, avoid)
if alone then
  flush()
  return { 1, alone, {} }
end
local staged, counts = {}, {}
for _, group in ipairs(laneGroups(lanes)) do
  for _, lane in ipairs(group) do
    local belt = P .. 'belt:' .. lane
    local count = call('ZCARD', belt)
    local room = math.min(beltMax - count, ${STAGE_MAX} - #staged)
    -- Many at a time: a belt that is nearly full is left alone.
    if room > 0 and (count == 0 or count < ${BELT_FULL} * beltMax) then
      for _, task in ipairs(take({ lane }, room, avoid)) do
        call('ZADD', belt, now, task.seq)
        call('ZADD', P .. 'sending', now, task.seq)
        staged[#staged + 1] = leased(task)
      end
    end
    counts[#counts + 1] = lane
    counts[#counts + 1] = call('ZCARD', belt)
  end
end
-- No room at all: the broker takes nothing, and confirms nothing. What it has unread would only be sent again and again.
local unconfirmed = beltMax > 0 and call('ZRANGEBYSCORE', P .. 'sending', '-inf', now - ${CONFIRM_MS_MAX}, 'LIMIT', 0, ${STAGE_MAX}) or {}
for _, seq in ipairs(unconfirmed) do
  local task = taskOf(seq)
  if task and call('ZSCORE', P .. 'belt:' .. queueOf(task.queue).lane, seq) then
    call('ZADD', P .. 'sending', now, seq)
    staged[#staged + 1] = leased(task)
  else
    call('ZREM', P .. 'sending', seq)
  end
end
return { 0, staged, counts }`,
)

const SENT = script('sent', `${BASE} for i = argAt + 1, #ARGV do call('ZREM', P .. 'sending', ARGV[i]) end`)

/** Is a repeat, worker, lease in ms, number of tasks; lane and number of each. Returns leases, and numbers not claimable. */
const LEASE_STAGED = script(
  'lease-staged',
  `${BASE}${LEASE}
local isRepeat, worker, leaseMs = arg() == '1', arg(), argNumber()
local given, gone = {}, {}
if isRepeat then given = leasesOf(op) end
local isMine = {}
for _, row in ipairs(given) do isMine[row[1]] = true end
if call('HEXISTS', P .. 'totals', 'pause') == 1 or call('HEXISTS', P .. 'alone', worker) == 1 then return { given, gone, 1 } end
for i = 1, argNumber() do
  local lane, seq = arg(), arg()
  if call('ZREM', P .. 'belt:' .. lane, seq) == 1 then
    call('ZREM', P .. 'sending', seq) -- it has evidently been sent, even if who sent it did not live to say so
    given[#given + 1] = lease(seq, worker, now + leaseMs)
  elseif not isMine[seq] then
    gone[#gone + 1] = seq
  end
end
flush()
return { given, gone, 0 }`,
)

/** Numbers of tasks; those still in the broker go back to the ready queues. */
const UNSTAGE = script(
  'unstage',
  `${BASE}${PLACES}${UNSTAGE_LUA}
local count = 0
for i = argAt + 1, #ARGV do
  local task = unstage(ARGV[i])
  if task then
    count = count + 1
    makeReady(task.seq, task.queue, task.losses, false)
  end
end
return count`,
)

/** Death record, number of a task; if it is still in the broker it becomes a dead letter. Then returns its queue and body. */
const BURY_STAGED = script(
  'bury-staged',
  `${BASE}${PLACES}${UNSTAGE_LUA}${BURY}
local death, task = arg(), unstage(arg())
if not task then return {} end
moved(task.queue, -1, 0)
bury(task, cjson.decode(task.body)[1] .. death)
flush()
return { queueOf(task.queue).name, task.body }`,
)

/** Lane, age in ms. Tasks that have been in the broker for longer go back to the ready queues. */
const UNSTAGE_OLD = script(
  'unstage-old',
  `${BASE}${PLACES}${UNSTAGE_LUA}
local lane, ageMs = arg(), argNumber()
local old = call('ZRANGEBYSCORE', P .. 'belt:' .. lane, '-inf', now - ageMs, 'LIMIT', 0, 5000)
for _, seq in ipairs(old) do
  local task = unstage(seq)
  if task then
    makeReady(task.seq, task.queue, task.losses, false)
  else
    call('ZREM', P .. 'belt:' .. lane, seq)
    discard(seq)
  end
end
return #old`,
)

/** Hash, name of a queue, death record, body. A message that is not a task becomes a dead letter, once. */
const BURY_MESSAGE = script(
  'bury-message',
  `${BASE}${BURY}
local hash, queue, death, body = arg(), queueNamed(arg()), arg(), arg()
if not remember('crawled_urls', hash, '') then return 0 end
bury({ seq = bump('seen', 1), queue = queue, attempts = 1, losses = 0, body = body }, death)
return 1`,
)

export interface Staged {
  seq: string
  message: TaskMessage
  lane: string
}

interface Tended {
  /** Nothing may be claimed from the broker: the run is paused, or a suspect is (or was) given. */
  alone: Lease[] | undefined
  /** To be published now. */
  staged: Staged[]
  /** Number of tasks in the broker, by lane. */
  counts: Map<string, number>
}

export function createInBroker(link: Link, { epoch, beltMax }: { epoch: string; beltMax: number }) {
  const setSeqs = (what: typeof SENT, seqs: readonly string[]) => link.run<number>(what, { args: () => seqs })

  return {
    /** Claims a suspect, or stages ready tasks. `max` 0: only stages. */
    async tend(request: ClaimRequest, { isBlocked }: { isBlocked: boolean }): Promise<Tended> {
      const { max, workerId, leaseMs, lanes, avoidHosts } = request
      const op = link.nextOp()
      const args = (isRepeat: boolean): Arg[] => [isRepeat ? 1 : 0, max, workerId, leaseMs, ...lanesArg(lanes), ...setArg(avoidHosts), isBlocked ? 0 : beltMax] // biome-ignore format: one line reads better
      const [isOver, rows, flat] = await link.run<[number, LeaseRow[], (string | number)[]]>(TEND, { op, args })
      if (isOver === 1) return { alone: rows.map((row) => leaseFrom(op, row)), staged: [], counts: new Map() }
      const counts = new Map<string, number>()
      for (let i = 0; i < flat.length; i += 2) counts.set(String(flat[i]), Number(flat[i + 1]))
      const staged = rows.map(([seq, , , queue, body]) => {
        const task = taskFrom(queue, body)
        return { seq, lane: task.lane, message: messageOf(epoch, seq, task) }
      })
      return { alone: undefined, staged, counts }
    },

    /** The broker has confirmed them. */
    sent: (seqs: readonly string[]) => setSeqs(SENT, seqs),

    async lease(request: ClaimRequest, tasks: readonly { lane: string; seq: string }[]) {
      const { workerId, leaseMs } = request
      const op = link.nextOp()
      const flat = tasks.flatMap(({ lane, seq }) => [lane, seq])
      const args = (isRepeat: boolean): Arg[] => [isRepeat ? 1 : 0, workerId, leaseMs, tasks.length, ...flat]
      const [rows, gone, isRefused] = await link.run<[LeaseRow[], string[], number]>(LEASE_STAGED, { op, args })
      const given = rows.map((row) => ({ seq: row[0], lease: leaseFrom(op, row) }))
      return { given, gone, isRefused: isRefused === 1 }
    },

    unstage: (seqs: readonly string[]) => setSeqs(UNSTAGE, seqs),
    unstageOld: (lane: string, ageMs: number) => link.run<number>(UNSTAGE_OLD, { args: () => [lane, ageMs] }),

    /** Undefined if it is no longer in the broker. */
    async bury(seq: string, error: ErrorRecord): Promise<Task | undefined> {
      const row = await link.run<[string, string] | []>(BURY_STAGED, { args: () => [deathOf('', error), seq] })
      return row.length === 0 ? undefined : taskFrom(...row)
    },

    async buryMessage(letter: { id: string; queue: string; body: string; error: ErrorRecord }): Promise<void> {
      const { id, queue, body, error } = letter
      const hash = Buffer.from(id.slice(0, 32), 'hex')
      await link.run(BURY_MESSAGE, { args: () => [hash, queue, deathOf(id, error), body] })
    },
  }
}

export type InBroker = ReturnType<typeof createInBroker>
