/** Adds tasks this run has not seen: the arguments for them, and the script that remembers, numbers and places them. */
import { LruSet } from '../../core/lru-set.ts'
import type { NewTask } from '../../core/task.ts'
import { hostOf } from '../../core/url.ts'
import { identityOf, taskOf } from '../shared/intake.ts'
import { bodyOf, queueName } from './lease.ts'
import { BASE, PLACES } from './lua.ts'
import { type Arg, script } from './script.ts'

/** Links repeat: most of the twenty links on a page were also on the page before. */
const RECENT_MAX = 8192

/** Number of queues, their names, number of tasks; hash, queue, time and body of each. */
export const ADMIT = `
local function admit()
  local names, ids = {}, {}
  for i = 1, argNumber() do names[i] = arg() end
  local count, seen, added = argNumber(), total('seen'), 0
  for i = 1, count do
    local hash, index, at, body = arg(), argNumber(), argNumber(), arg()
    if remember('crawled_urls', hash, '') then
      added = added + 1
      local queue = ids[index] or queueNamed(names[index])
      ids[index] = queue
      local task = { seq = seen + added, queue = queue, attempts = 0, losses = 0, body = body }
      saveTask(task)
      place(task, at, true)
    end
  end
  if added > 0 then bump('seen', added) end
  return added
end
`

export const ADD = script(
  'add',
  `${BASE}${PLACES}${ADMIT}
local known = answered()
if known then return known end
local added = admit()
flush()
return answer({ added })`,
)

/** Bytes of SHA-256 that identify a URL. Among 10^9 URLs the chance that two share them is 10^-21. */
const HASH_BYTES = 16

export class Admission {
  /** A hit is correct as long as the server forgets nothing: a seen task stays seen, whichever process added it. */
  readonly #recent = new LruSet(RECENT_MAX)

  /** The arguments of `admit`, without tasks known to be seen. Must be built again when the call is repeated. */
  argsOf(tasks: readonly NewTask[]): Arg[] {
    const queues = new Map<string, number>()
    const rows: Arg[] = []
    let count = 0
    for (const task of tasks) {
      if (this.#recent.has(identityOf(task))) continue
      const filled = taskOf(task)
      const name = queueName(filled, hostOf(filled.url))
      const index = queues.get(name) ?? queues.size + 1
      queues.set(name, index)
      rows.push(hashBytes(filled.id), index, task.notBeforeMs ?? 0, bodyOf(filled))
      count++
    }
    return [queues.size, ...queues.keys(), count, ...rows]
  }

  /**
   * The connection was lost: a server that comes back without its last second (`appendfsync everysec`, a replica that took over)
   * has not seen what we saw, and the links of a page that is processed again would be left out.
   */
  forget(): void {
    this.#recent.clear()
  }

  remember(tasks: readonly NewTask[]): void {
    for (const task of tasks) this.#recent.add(identityOf(task))
  }
}

function hashBytes(id: string): Buffer {
  return Buffer.from(id.slice(0, HASH_BYTES * 2), 'hex')
}
