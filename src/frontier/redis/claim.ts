/** Claims from the ready queues inside Redis: one script. */
import type { ClaimRequest, Lease } from '../contract.ts'
import { LEASE, type LeaseRow, leaseFrom } from './lease.ts'
import type { Link } from './link.ts'
import { BASE, PLACES } from './lua.ts'
import { script } from './script.ts'
import { lanesArg, setArg, TAKE } from './take.ts'

/** Is a repeat, max, worker, lease in ms, lanes, hosts to avoid. */
const CLAIM = script(
  'claim',
  `${BASE}${PLACES}${TAKE}${LEASE}
local isRepeat, max, worker, leaseMs = arg() == '1', argNumber(), arg(), argNumber()
local lanes, avoid = argLanes(), argSet()
if isRepeat then
  local found = leasesOf(op)
  if #found > 0 then return found end
end
if call('HEXISTS', P .. 'totals', 'pause') == 1 then return {} end
promote()
local given = claimSuspect(worker, now + leaseMs, lanes, avoid)
if not given then
  given = {}
  for i, task in ipairs(take(lanes, max, avoid)) do given[i] = lease(task.seq, worker, now + leaseMs, task) end
end
flush()
return given`,
)

export function createClaim(link: Link) {
  return async function claim(request: ClaimRequest): Promise<Lease[]> {
    const { max, workerId, leaseMs, lanes, avoidHosts } = request
    if (max < 1) return []
    const op = link.nextOp()
    const rows = await link.run<LeaseRow[]>(CLAIM, {
      op,
      args: (isRepeat) => [isRepeat ? 1 : 0, max, workerId, leaseMs, ...lanesArg(lanes), ...setArg(avoidHosts)],
    })
    return rows.map((row) => leaseFrom(op, row))
  }
}
