/** Dead letters: whole records in the order of their death, until they are retried or dropped. */
import type { ErrorRecord } from '../../core/errors.ts'
import type { DeadFilter, DeadGroup, DeadLetter, DeadLetters } from '../contract.ts'
import { GROUPS_MAX, groupByCause, matches } from '../shared/dead-letters.ts'
import { taskFrom } from './lease.ts'
import type { Link } from './link.ts'
import { BASE, PLACES } from './lua.ts'
import { script } from './script.ts'

/** Letters read or moved per script, to bound the time it keeps others waiting. */
const PAGE = 500

/** A letter is `queue attempts losses died length|death body`; `death` starts with the id of its task. */
export const BURY = `
local function bury(task, death)
  local head = task.queue .. ' ' .. task.attempts .. ' ' .. task.losses .. ' ' .. now .. ' ' .. string.len(death)
  call('HSET', P .. 'letter', task.seq, head .. '|' .. death .. task.body)
  call('ZADD', P .. 'dead', bump('turn', 1), task.seq)
  call('HSET', P .. 'dead:id', string.sub(death, 1, 64), task.seq)
  call('HDEL', P .. 'task', task.seq)
  bump('dead', 1)
  bump('failed', 1)
end
`

const LETTER = `
local function letterOf(seq)
  local text = call('HGET', P .. 'letter', seq)
  local head, rest = string.match(text or '', '^([^|]*)|(.*)$')
  local queue, attempts, losses, died, length = string.match(head or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if not queue or not queueOf(queue) then return nil end
  return { queue = queue, attempts = tonumber(attempts), losses = tonumber(losses), died = died,
    death = string.sub(rest, 1, tonumber(length)), body = string.sub(rest, tonumber(length) + 1) }
end
`

/** Start after this id ('' = from the start) or turn, up to which turn, how many. */
const LIST = script(
  'dead-list',
  `${BASE}${LETTER}
local after, turn, last, max = arg(), argNumber(), arg(), argNumber()
-- A letter that was retried or dropped since is no landmark: from the start, so that none is passed over.
local known = after ~= '' and call('HGET', P .. 'dead:id', after)
if known then turn = tonumber(call('ZSCORE', P .. 'dead', known)) end
local rows = call('ZRANGEBYSCORE', P .. 'dead', '(' .. turn, last, 'WITHSCORES', 'LIMIT', 0, max)
local found = {}
for i = 1, #rows, 2 do
  local letter = letterOf(rows[i])
  if letter then found[#found + 1] = { rows[i + 1], rows[i], letter.attempts, letter.losses, letter.died, queueOf(letter.queue).name, letter.death, letter.body } end
end
return found`,
)

/** Letters with the given ids, in the order of their death. */
const FIND = script(
  'dead-find',
  `${BASE}${LETTER}
local found = {}
for i = 1, argNumber() do
  local seq = call('HGET', P .. 'dead:id', arg())
  if seq then
    local letter = letterOf(seq)
    if letter then found[#found + 1] = { call('ZSCORE', P .. 'dead', seq), seq, letter.attempts, letter.losses, letter.died, queueOf(letter.queue).name, letter.death, letter.body } end
  end
end
return found`,
)

/** Whether they return to pending, number of letters, their numbers. */
const REMOVE = script(
  'dead-remove',
  `${BASE}${PLACES}${LETTER}
local known = answered()
if known then return known end
local isRevived, count = arg() == '1', 0
for i = 1, argNumber() do
  local seq = arg()
  if call('ZREM', P .. 'dead', seq) == 1 then
    count = count + 1
    local letter = letterOf(seq)
    call('HDEL', P .. 'letter', seq)
    if letter then call('HDEL', P .. 'dead:id', string.sub(letter.death, 1, 64)) end
    if isRevived and letter then
      local task = { seq = seq, queue = letter.queue, attempts = 0, losses = 0, body = letter.body }
      saveTask(task)
      place(task, 0, false)
    end
  end
end
if count > 0 then
  bump('dead', -count)
  if isRevived then bump('failed', -count) end
end
flush()
return answer({ count })`,
)

const LAST_TURN = script('dead-last', `${BASE} return total('turn')`)

type Row = [
  turn: string,
  seq: string,
  attempts: number,
  losses: number,
  died: string,
  queue: string,
  death: string,
  body: string,
]

interface Found {
  turn: number
  seq: string
  letter: DeadLetter
}

/** The id comes first, where Lua can cut it off. */
export function deathOf(id: string, error: ErrorRecord, snapshot?: string): string {
  return id + JSON.stringify({ error, snapshot })
}

function found([turn, seq, attempts, losses, died, queue, death, body]: Row): Found {
  const { error, snapshot } = JSON.parse(death.slice(64)) as { error: ErrorRecord; snapshot?: string }
  const task = taskFrom(queue, body)
  return { turn: Number(turn), seq, letter: { task, error, attempts, losses, diedAtMs: Number(died), snapshot } }
}

/** `revived` is called when tasks have returned to pending. */
export function createDead(link: Link, revived: () => void): DeadLetters {
  async function* pages(filter: DeadFilter, range: { after?: string; last?: number } = {}): AsyncGenerator<Found[]> {
    if (filter.ids !== undefined) {
      const rows = await link.run<Row[]>(FIND, { args: () => [filter.ids!.length, ...filter.ids!] })
      yield rows.map(found).filter(({ letter }) => matches(letter, filter)).sort((a, b) => a.turn - b.turn) // biome-ignore format: one chain
      return
    }
    let after = range.after ?? ''
    for (let turn = 0; ; ) {
      const rows = await link.run<Row[]>(LIST, { args: () => [after, turn, range.last ?? '+inf', PAGE] })
      if (rows.length === 0) return
      const page = rows.map(found)
      yield page.filter(({ letter }) => matches(letter, filter))
      turn = page.at(-1)!.turn
      after = ''
    }
  }

  async function remove(filter: DeadFilter, isRevived: boolean): Promise<number> {
    // Letters that die in the meantime are left for the next call: otherwise a poison task would be retried for ever.
    const last = await link.run<number>(LAST_TURN, {})
    let removed = 0
    for await (const page of pages(filter, { last })) {
      if (page.length === 0) continue
      const seqs = page.map(({ seq }) => seq)
      const args = [isRevived ? 1 : 0, seqs.length, ...seqs]
      const [count] = await link.run<[number]>(REMOVE, { op: link.nextOp(), hasAnswer: true, args: () => args })
      removed += count
    }
    if (isRevived && removed > 0) revived()
    return removed
  }

  return {
    async list({ limit = 100, after, ...filter } = {}) {
      const letters: DeadLetter[] = []
      for await (const page of pages(filter, { after })) {
        for (const { letter } of page) if (letters.length < limit) letters.push(letter)
        if (letters.length >= limit) break
      }
      return letters
    },

    async groups() {
      const groups = new Map<string, DeadGroup>()
      for await (const page of pages({})) {
        for (const group of groupByCause(page.map(({ letter }) => letter))) {
          const name = JSON.stringify([group.code, group.class, group.cause])
          const known = groups.get(name)
          groups.set(name, known === undefined ? group : merged(known, group))
        }
      }
      return [...groups.values()].sort((a, b) => b.count - a.count).slice(0, GROUPS_MAX)
    },

    retry: (filter = {}) => remove(filter, true),
    drop: (filter = {}) => remove(filter, false),
  }
}

function merged(a: DeadGroup, b: DeadGroup): DeadGroup {
  const firstAtMs = Math.min(a.firstAtMs, b.firstAtMs)
  return { ...a, count: a.count + b.count, firstAtMs, lastAtMs: Math.max(a.lastAtMs, b.lastAtMs) }
}
