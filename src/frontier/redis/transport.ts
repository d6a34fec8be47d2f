/** How a ready task gets to the worker that claims it: through queues inside Redis, or over a broker. The ledger is the same. */
import type { ClaimRequest, Lease, Outcome } from '../contract.ts'
import { createClaim } from './claim.ts'
import type { Link } from './link.ts'

export interface ReadyTransport {
  claim(request: ClaimRequest): Promise<Lease[]>
  /** Tasks may have become ready. Does not wait for them to get anywhere. */
  fed(): void
  /** These leases are over: settled, found stale, or reported as lost. */
  over(leases: readonly (Outcome | Lease)[]): void
  /** Tasks that have become dead letters without an outcome of their holder. */
  died(letters: readonly object[]): void
  /** Called when the ledger has nothing left: messages of other programs that nobody has read become tasks. */
  readToEnd(): Promise<void>
  close(how: { isFinished: boolean }): Promise<void>
}

/** Ready queues inside Redis: a claim is one script. */
export function redisTransport(link: Link): ReadyTransport {
  return { claim: createClaim(link), fed() {}, over() {}, died() {}, async readToEnd() {}, async close() {} }
}
