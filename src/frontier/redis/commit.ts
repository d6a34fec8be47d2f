/** What becomes of leases: outcomes of their holders with the tasks and items they bring, and heartbeats. */
import { hash } from 'node:crypto'
import { contentKey, type ItemRow } from '../../core/item.ts'
import type { Committed, Lease, Outcome } from '../contract.ts'
import { ADMIT, type Admission } from './admit.ts'
import { BURY, deathOf } from './dead.ts'
import { logLine } from './items.ts'
import { LEASE, numbersOf } from './lease.ts'
import type { Link } from './link.ts'
import { BASE, PLACES } from './lua.ts'
import { type Arg, script } from './script.ts'

/**
 * The number of outcomes; of each: op, seq, kind, time, death, number of items (key, content, line each), number of tasks'
 * arguments, and those. The arguments of a stale one are skipped.
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
local stale, added, completed = {}, 0, 0
for i = 1, argNumber() do
  local leaseOp, seq, kind, at, death, items = arg(), arg(), arg(), argNumber(), arg(), argNumber()
  local itemsAt = argAt
  argAt = argAt + 3 * items
  local taskArgs = argNumber()
  local after = argAt + taskArgs
  if not release(seq, leaseOp) then
    stale[#stale + 1] = i - 1
  elseif kind == 'done' then
    completed = completed + 1
    call('HDEL', P .. 'task', seq)
    if taskArgs > 0 then added = added + admit() end
    argAt = itemsAt
    for j = 1, items do accept(arg(), arg(), arg()) end
  else
    local task = taskOf(seq)
    if kind ~= 'postpone' then task.attempts = task.attempts + 1 end
    if kind == 'retry' then saveTask(task) end
    if kind == 'dead' then bury(task, death) else place(task, at, false) end
  end
  argAt = after
end
if completed > 0 then bump('completed', completed) end
if counts.new > 0 then bump('items', counts.new) end
flush()
return answer({ stale, added, counts.new, counts.same, counts.changed, call('LLEN', P .. 'items') })`,
)

/** Until, number of leases; of each op and seq. Answers with the places of the lost ones. */
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

export function createCommit(link: Link, admission: Admission) {
  return async function commit(outcomes: readonly Outcome[]): Promise<Committed> {
    const args: Arg[] = [outcomes.length]
    for (const outcome of outcomes) for (const value of argsOf(outcome, admission)) args.push(value)
    const answer = await link.run<Answer>(COMMIT, { op: link.nextOp(), hasAnswer: true, args: () => args })
    const [staleAt, added, isNew, same, changed, backlog] = answer
    const isStale = new Set(staleAt)
    let offered = 0
    for (const [i, outcome] of outcomes.entries()) {
      if (isStale.has(i) || outcome.kind !== 'done' || outcome.tasks === undefined) continue
      offered += outcome.tasks.length
      admission.remember(outcome.tasks)
    }
    return {
      settled: outcomes.length - staleAt.length,
      stale: staleAt.map((i) => outcomes[i]!.lease),
      added,
      seen: offered - added,
      items: { new: isNew, same, changed, backlog },
    }
  }
}

export function createExtend(link: Link) {
  return async function extend(leases: readonly Lease[], leaseMs: number): Promise<{ lost: Lease[] }> {
    const args: Arg[] = [leaseMs, leases.length, ...leases.flatMap(numbersOf)]
    const lost = await link.run<number[]>(EXTEND, { args: () => args })
    return { lost: lost.map((i) => leases[i]!) }
  }
}

function argsOf(outcome: Outcome, admission: Admission): Arg[] {
  const [op, seq] = numbersOf(outcome.lease)
  const { kind } = outcome
  const at = kind === 'retry' || kind === 'postpone' ? outcome.atMs : 0
  const death = kind === 'dead' ? deathOf(outcome.lease.task.id, outcome.error, outcome.snapshot) : ''
  const items = kind === 'done' ? (outcome.items ?? []) : []
  const tasks =
    kind === 'done' && outcome.tasks !== undefined && outcome.tasks.length > 0 ? admission.argsOf(outcome.tasks) : []
  const args: Arg[] = [op, seq, kind, at, death, items.length]
  for (const item of items) args.push(...itemArgs(item))
  args.push(tasks.length)
  for (const arg of tasks) args.push(arg)
  return args
}

function itemArgs(item: ItemRow): Arg[] {
  return [shortHash(item.key), shortHash(item.content ?? contentKey(item.json)), logLine(item)]
}

function shortHash(text: string): Buffer {
  return hash('sha256', text, 'buffer').subarray(0, 16)
}
