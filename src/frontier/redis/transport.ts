/** How a ready task gets to the worker that claims it: through queues inside Redis, or a broker. The ledger is the same. */
import type { ClaimRequest, Lease, Outcome } from '../contract.ts'
import { createClaim } from './claim.ts'
import type { Link } from './link.ts'

export interface ReadyTransport {
  claim(request: ClaimRequest): Promise<Lease[]>
  /** Tasks may have become ready. Does not wait for them to be delivered. */
  fed(): void
  /** These leases are over: settled, found stale, or reported as lost. */
  over(leases: readonly (Outcome | Lease)[]): void
  /** Tasks that became dead letters without an outcome from their worker. */
  died(letters: readonly object[]): void
  /** Called when the ledger has nothing left: unread messages of other programs become tasks. */
  readToEnd(): Promise<void>
  close(how: { isFinished: boolean }): Promise<void>
}

/** Ready queues inside Redis: a claim is one script. */
export function redisTransport(link: Link): ReadyTransport {
  return { claim: createClaim(link), fed() {}, over() {}, died() {}, async readToEnd() {}, async close() {} }
}
