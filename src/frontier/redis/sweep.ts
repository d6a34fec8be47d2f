/** Leases of lost workers: returned to pending as suspects, or moved to the dead letters. */
import type { SweepOptions } from '../contract.ts'
import { leaseLost } from '../shared/dead-letters.ts'
import { BURY, deathOf } from './dead.ts'
import { LEASE, taskFrom } from './lease.ts'
import type { Link } from './link.ts'
import { BASE, PLACES } from './lua.ts'
import { script } from './script.ts'

/** Placeholder for the number of losses, which only the script knows. */
const LOSSES = 987_654_321

/** Maximum number of dead tasks that a sweep reports; the others are in the ledger too. */
const LETTERS_MAX = 1000

type Answer = [returned: number, dead: number, letters: [queue: string, body: string, losses: number][]]

/** Losses allowed, death record, number of workers known to be dead (-1: all), their ids. */
const SWEEP = script(
  'sweep',
  `${BASE}${PLACES}${LEASE}${BURY}
local known = answered()
if known then return known end
local lossesMax, death, workers = argNumber(), arg(), argNumber()
local expired = {}
if workers == 0 then
  expired = call('ZRANGEBYSCORE', P .. 'expiry', '-inf', now)
else
  local isDead = {}
  for i = 1, workers do isDead[arg()] = true end
  local all = call('HGETALL', P .. 'lease')
  for i = 1, #all, 2 do
    local worker = string.match(all[i + 1], '^%S+ %d %d+@?[%d-]* (.*)$')
    if workers < 0 or isDead[worker] or (tonumber(call('ZSCORE', P .. 'expiry', all[i]) or now) or now) <= now then expired[#expired + 1] = all[i] end
  end
end
table.sort(expired, function(a, b) return (tonumber(a) or 0) < (tonumber(b) or 0) end)
local returned, dead, letters = 0, 0, {}
for _, seq in ipairs(expired) do
  release(seq)
  local task = taskOf(seq)
  if task then task.losses = task.losses + 1 end
  -- The first loss only makes it a suspect; from then on it is lost alone.
  if not task then
    forsake(seq)
  elseif task.losses > lossesMax then
    local id = cjson.decode(task.body)[1]
    bury(task, id .. string.gsub(death, '${LOSSES}', task.losses))
    dead = dead + 1
    if dead <= ${LETTERS_MAX} then letters[dead] = { queueOf(task.queue).name, task.body, task.losses } end
  else
    saveTask(task)
    place(task, 0, false)
    returned = returned + 1
  end
end
flush()
return answer({ returned, dead, letters })`,
)

/** `died` is called with dead letters that no outcome reported, so that they can be shown. */
export function createSweep(link: Link, died: (letters: readonly object[]) => void) {
  return async function sweep({
    lossesMax,
    workerIds = [],
  }: SweepOptions): Promise<{ returned: number; dead: number }> {
    const death = deathOf('', leaseLost(LOSSES))
    const workers = workerIds === 'all' ? [-1] : [workerIds.length, ...workerIds]
    const args = [lossesMax, death, ...workers]
    const [returned, dead, letters] = await link.run<Answer>(SWEEP, {
      op: link.nextOp(),
      hasAnswer: true,
      args: () => args,
    })
    died(letters.map(([queue, body, losses]) => ({ ...taskFrom(queue, body), error: leaseLost(losses) })))
    return { returned, dead }
  }
}
