/** Settling leases: outcomes with the tasks and items they bring, and heartbeats. */
import { hash } from 'node:crypto'
import { contentKey, type ItemRow } from '../../core/item.ts'
import type { NewTask } from '../../core/task.ts'
import type { Committed, Lease, Outcome } from '../contract.ts'
import { ADMIT, type Admission } from './admit.ts'
import { BURY, deathOf } from './dead.ts'
import { logLine } from './items.ts'
import { LEASE, numbersOf } from './lease.ts'
import type { Link } from './link.ts'
import { BASE, PLACES } from './lua.ts'
import { type Arg, script } from './script.ts'

/**
 * Approximate arguments per call: a larger one would keep others waiting for tenths of a second. Redis itself accepts at most
 * 1,048,576. A larger commit goes in several calls, and is then no longer one transaction.
 */
const ARGS_MAX = 50_000
/** Tasks and items per row: an outcome with more sends them in parts first, while its lease is held, and is settled last. */
const PART_TASKS_MAX = 10_000
const PART_ITEMS_MAX = 10_000

/**
 * Number of rows; for each: op, seq, kind (`part`: only brings tasks and items), time, death record, counts (JSON or empty),
 * number of items (key, content, line each), number of arguments for tasks, and those. The arguments of a stale outcome are
 * skipped.
 */
const COMMIT = script(
  'commit',
  `${BASE}${PLACES}${ADMIT}${LEASE}${BURY}
local known = answered()
if known then return known end
local counts = { new = 0, same = 0, changed = 0 }
local function accept(key, content, line)
  if remember('item_keys', key, content) then
    call('RPUSH', P .. 'items', line)
    counts.new = counts.new + 1
    return
  end
  local bucket, field = bucketOf('item_keys', key)
  local kind = call('HGET', bucket, field) == content and 'same' or 'changed'
  counts[kind] = counts[kind] + 1
end
local stale, added, completed, sums = {}, 0, 0, {}
local function count(counted)
  if counted == '' then return end
  for name, n in pairs(cjson.decode(counted)) do sums[name] = (sums[name] or 0) + n end
end
for i = 1, argNumber() do
  local leaseOp, seq, kind, at, death, counted, items = arg(), arg(), arg(), argNumber(), arg(), arg(), argNumber()
  local itemsAt = argAt
  argAt = argAt + 3 * items
  local taskArgs = argNumber()
  local after = argAt + taskArgs
  local isPart = kind == 'part'
  local isOurs = isPart and isHeld(seq, leaseOp) or not isPart and release(seq, leaseOp)
  if isOurs then count(counted) end
  if not isOurs then
    stale[#stale + 1] = i - 1
  elseif isPart or kind == 'done' then
    if not isPart then
      completed = completed + 1
      call('HDEL', P .. 'task', seq)
    end
    if taskArgs > 0 then added = added + admit() end
    argAt = itemsAt
    for j = 1, items do accept(arg(), arg(), arg()) end
  else
    local task = taskOf(seq)
    if task and kind ~= 'postpone' then task.attempts = task.attempts + 1 end
    if task and kind == 'retry' then saveTask(task) end
    if not task then forsake(seq) elseif kind == 'dead' then bury(task, death) else place(task, at, false) end
  end
  argAt = after
end
if counts.changed > 0 then sums['items.changed'] = counts.changed end
for name, n in pairs(sums) do call('HINCRBY', P .. 'counts', name, n) end
if completed > 0 then bump('completed', completed) end
if counts.new > 0 then bump('items', counts.new) end
flush()
return answer({ stale, added, counts.new, counts.same, counts.changed, call('LLEN', P .. 'items') })`,
)

/** Until, number of leases; op and seq of each. Returns the indexes of the lost ones. */
const EXTEND = script(
  'extend',
  `${BASE}${LEASE}
local expires, lost = now + argNumber(), {}
for i = 1, argNumber() do
  local leaseOp, seq = arg(), arg()
  if isHeld(seq, leaseOp) then call('ZADD', P .. 'expiry', expires, seq) else lost[#lost + 1] = i - 1 end
end
return lost`,
)

type Answer = [stale: number[], added: number, new_: number, same: number, changed: number, backlog: number]

/** What is sent of an outcome in one call: all of it, or a part. */
interface Row {
  outcome: Outcome
  isPart: boolean
  tasks: readonly NewTask[]
  items: readonly ItemRow[]
}

export function createCommit(link: Link, admission: Admission) {
  return async function commit(outcomes: readonly Outcome[]): Promise<Committed> {
    const total: Committed = {
      settled: 0,
      stale: [],
      added: 0,
      seen: 0,
      items: { new: 0, same: 0, changed: 0, backlog: 0 },
    }
    for (const rows of callsOf(outcomes)) {
      const answer = await link.run<Answer>(COMMIT, {
        op: link.nextOp(),
        hasAnswer: true,
        args: () => argsOf(rows, admission),
      })
      const [staleAt, added, isNew, same, changed, backlog] = answer
      const isStale = new Set(staleAt)
      let offered = 0
      for (const [i, { outcome, isPart, tasks }] of rows.entries()) {
        if (isStale.has(i)) {
          if (!isPart) total.stale.push(outcome.lease)
          continue
        }
        if (!isPart) total.settled++
        offered += tasks.length
        admission.remember(tasks)
      }
      total.added += added
      total.seen += offered - added
      total.items.new += isNew
      total.items.same += same
      total.items.changed += changed
      total.items.backlog = backlog
    }
    return total
  }
}

/** The rows of each call. At least one call: an empty commit queries the backlog. */
function* callsOf(outcomes: readonly Outcome[]): Generator<Row[]> {
  let rows: Row[] = []
  let args = 0
  for (const outcome of outcomes) {
    for (const row of rowsOf(outcome)) {
      const more = 9 + 3 * row.items.length + 5 * row.tasks.length // at most: each task may have a separate queue
      if (rows.length > 0 && args + more > ARGS_MAX) {
        yield rows
        rows = []
        args = 0
      }
      rows.push(row)
      args += more
    }
  }
  if (rows.length > 0 || outcomes.length === 0) yield rows
}

function* rowsOf(outcome: Outcome): Generator<Row> {
  let { tasks = [], items = [] } = outcome.kind === 'done' ? outcome : {}
  while (tasks.length > PART_TASKS_MAX || items.length > PART_ITEMS_MAX) {
    const [tasksNow, itemsNow] = [excess(tasks, PART_TASKS_MAX), excess(items, PART_ITEMS_MAX)]
    yield { outcome, isPart: true, tasks: tasksNow, items: itemsNow }
    tasks = tasks.slice(tasksNow.length)
    items = items.slice(itemsNow.length)
  }
  yield { outcome, isPart: false, tasks, items }
}

/** As little as possible is sent first; the rest is settled together with the lease. */
function excess<T>(all: readonly T[], max: number): readonly T[] {
  return all.slice(0, Math.min(max, Math.max(0, all.length - max)))
}

export function createExtend(link: Link) {
  return async function extend(leases: readonly Lease[], leaseMs: number): Promise<{ lost: Lease[] }> {
    const args: Arg[] = [leaseMs, leases.length, ...leases.flatMap(numbersOf)]
    const lost = await link.run<number[]>(EXTEND, { args: () => args })
    return { lost: lost.map((i) => leases[i]!) }
  }
}

function argsOf(rows: readonly Row[], admission: Admission): Arg[] {
  const args: Arg[] = [rows.length]
  for (const { outcome, isPart, tasks, items } of rows) {
    const [op, seq] = numbersOf(outcome.lease)
    const { kind } = outcome
    const at = kind === 'retry' || kind === 'postpone' ? outcome.atMs : 0
    const death = kind === 'dead' ? deathOf(outcome.lease.task.id, outcome.error, outcome.snapshot) : ''
    const counted = isPart || outcome.counts === undefined ? '' : JSON.stringify(outcome.counts)
    args.push(op, seq, isPart ? 'part' : kind, at, death, counted, items.length)
    for (const item of items) args.push(...itemArgs(item))
    const taskArgs = tasks.length > 0 ? admission.argsOf(tasks) : []
    args.push(taskArgs.length)
    for (const arg of taskArgs) args.push(arg)
  }
  return args
}

function itemArgs(item: ItemRow): Arg[] {
  return [shortHash(item.key), shortHash(item.content ?? contentKey(item.json)), logLine(item)]
}

function shortHash(text: string): Buffer {
  return hash('sha256', text, 'buffer').subarray(0, 16)
}
